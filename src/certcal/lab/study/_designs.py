"""What the columns of a published table are: roles by their names, and designs by the names of the architectures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from certcal._base.checks import InputError
from certcal.lab.study._spaces import Cell, SizeSpace, TopologySpace
from certcal.lab.study._table import AUROC, StudyTable

# Accuracies under attack as Jung et al. (2023) name them, with the strength in 255ths: fgsm_Linf_acc1_0.
_ATTACKED = re.compile(r"(?:fgsm|pgd|aa_\w+)_(?:linf|l2)_acc\d+_\d+", re.IGNORECASE)
# Accuracies on corrupted images (Hendrycks and Dietterich 2019).
_CORRUPTED = (
    *("brightness", "contrast", "defocus_blur", "elastic_transform", "fog", "frost", "gaussian_noise", "glass_blur"),
    *("impulse_noise", "jpeg_compression", "motion_blur", "pixelate", "shot_noise", "snow", "zoom_blur"),
)
# Those of Figures 41 to 49 of the benchmark study, which a review takes where a table has them.
_FIGURES = (
    *("fgsm_Linf_acc1_0", "pgd_Linf_acc1_0", "aa_apgd_ce_Linf_acc1_0", "aa_square_Linf_acc1_0"),
    *("gaussian_noise", "shot_noise", "frost", "glass_blur", "snow"),
)
# Numbers of rows, and mean confidences: neither sizes of a model nor its robustness.
INDEX = ("config", "index", "arch_index", "idx")
_NO_SIZES = (*INDEX, "correct_confidence", "incorrect_confidence")
# A 3 × 3 convolution has nine weights for each pair of channels, a 1 × 1 convolution one.
_WEIGHTS = {"nor_conv_3x3": 9, "nor_conv_1x1": 1}


def is_robustness(name: str) -> bool:
    """Whether a column of this name is an accuracy under attack or corruption."""
    return name in _CORRUPTED or _ATTACKED.fullmatch(name) is not None


def is_size(name: str) -> bool:
    """Whether a column of numbers may be a size of the models, as far as its name tells."""
    return name.lower() not in _NO_SIZES and not is_robustness(name)


def robustness_columns(table: StudyTable, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that were asked for, or else those of the published figures, or all; and areas under ROC curves."""
    areas = [name for name in table.columns if name.startswith(AUROC)]
    if asked is not None:
        return tuple(dict.fromkeys((*match_columns(table, asked, "robustness", numbers=True), *areas)))
    found = [name for name in table.given if is_robustness(name) and table[name].dtype != object]
    return (*areas, *([name for name in _FIGURES if name in found] or found))


def match_columns(table: StudyTable, asked: Iterable[str], argument: str, *, numbers: bool) -> tuple[str, ...]:
    """Columns by name or by pattern (``pgd_*``), in the order asked for; patterns for numbers pass over text."""
    found: list[str] = []
    for name in asked:
        if name in table or not any(sign in name for sign in "*?["):
            try:
                _ = table.numbers([name]) if numbers else table[name]
            except InputError as error:
                raise InputError(str(error), argument=argument) from None
            found.append(name)
            continue
        fits = [each for each in table.columns if fnmatchcase(each, name)]
        fits = [each for each in fits if not numbers or table[each].dtype != object]
        if not fits:
            raise InputError(f"no column fits {name!r}", argument=argument, remedy=f"the table has {table.has}")
        found += fits
    return tuple(dict.fromkeys(found))


def architecture_columns(models: Sequence[str]) -> dict[str, list[Any]]:
    """Columns that NATS-Bench's names tell: edges and parameters of cells, widths of sizes; none for other names.

    ``cell_parameters`` counts the weights of a cell's convolutions per pair of channels, nine or one each, as in the
    benchmark study's Figure 8; ``kernels`` is the sum of the five widths (Figure 7), and ``width`` that of all layers
    where they are equally wide (Figure 9).
    """
    topology, sizes = TopologySpace(), SizeSpace()
    rows: list[Mapping[str, Any]] = []
    for name in models:
        if name in topology:
            operations = Cell.parse(name).operations
            edges = {f"edge_{edge}": operation for edge, operation in enumerate(operations, 1)}
            rows.append({**edges, "cell_parameters": sum(_WEIGHTS.get(each, 0) for each in operations)})
        elif name in sizes:
            widths = sizes.parse(name)
            layers = {f"width_{layer}": width for layer, width in enumerate(widths, 1)}
            rows.append({"kernels": sum(widths), "width": widths[0] if len(set(widths)) == 1 else None, **layers})
        else:
            rows.append({})
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(key for row in rows for key in row)}


def first_equal_models(models: Sequence[str], rule: str) -> dict[str, str]:
    """For each model the first one that is the same cell by a rule; a model that is no cell is itself."""
    topology, first = TopologySpace(), dict[str, str]()
    return {
        name: first.setdefault(getattr(Cell.parse(name), rule), name) if name in topology else name
        for name in dict.fromkeys(models)
    }
