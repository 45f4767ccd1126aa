"""Published recipes, by paper, method and data set: every number with the place where it stands.

A preset is called ``paper:data``, such as ``sun-2025:imagenet``. Facts alone, without torch. What a paper trained to
compare with is in its presets, too. Where a paper's text and code differ, what made its tables has the paper's name,
and the other one a longer name. Places are sections and tables of the paper, or files of its authors' repository.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from certcal._base.checks import InputError
from certcal._base.text import did_you_mean
from certcal.lab.training_methods import METHODS, method_named

Numbers = Mapping[str, Any]

PAPERS = {
    "cohen-2019": "Cohen, Rosenfeld and Kolter, Certified adversarial robustness via randomized smoothing",
    "salman-2019": "smoothing-adversarial/Provably robust deep learning via adversarially trained smoothed classifiers",
    "zhai-2020-macer": "Zhai et al., MACER: attack-free and scalable robust training",
    "jeong-2020-consistency": "Jeong and Shin, Consistency regularization for certified robustness",
    "jeong-2021-smoothmix": "Jeong et al., SmoothMix: training confidence-calibrated smoothed classifiers",
    "jeong-2023-catrs": "Jeong, Kim and Shin, Confidence-aware training of smoothed classifiers",
    "emde-2024": "Emde et al., Certified calibration",
    "sun-2025": "Sun et al. on the average certified radius; the weights of their code and Figure 4, up to 7.2",
    "sun-2025-printed": "Sun et al. with the weights of section 5.2 as printed, up to 1.64",
}
DATA = ("mnist", "fashion-mnist", "svhn", "cifar-10", "cifar-100", "imagenet")
_THREE = (0.25, 0.5, 1.0)
_FOUR = (0.12, *_THREE)
_CALIBRATION = tuple(name for name, each in METHODS.items() if each.fine_tunes and name != "brier-act")


class BySigma(tuple[Any, ...]):
    """A number for each σ of a preset."""

    __slots__ = ()


def _by(*columns: Any) -> BySigma:
    return BySigma(columns)


@dataclass(frozen=True)
class Preset:
    """What one paper did on some data sets by some methods."""

    paper: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    sigmas: tuple[float, ...]
    cited: Mapping[str, Numbers]
    """By place: attributes of a recipe, constants of the method, or ``passes``, the batch times the draws."""
    fine_tunes: bool = False  # whether it begins with trained weights
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    models: int = 0  # how many of the grid were trained; 0 for all

    def numbers(self, sigma: float) -> dict[str, Any]:
        """The numbers at one σ."""
        at = self.sigmas.index(sigma)
        every = {name: value for numbers in self.cited.values() for name, value in numbers.items()}
        return {name: value[at] if isinstance(value, BySigma) else value for name, value in every.items()}

    def sources(self) -> dict[str, str]:
        """Where each number stands."""
        return {name: place for place, numbers in self.cited.items() for name in numbers}


def _paper(paper: str, data: str, methods: str, sigmas: tuple[float, ...], *cited: Mapping[str, Numbers], **more: Any):
    """A preset; numbers cited later take the place of earlier ones."""
    merged: dict[str, dict[str, Any]] = {}
    for each in cited:
        for place, numbers in each.items():
            replaced = {*numbers, *({"batch", "passes"} if {"batch", "passes"} & {*numbers} else ())}
            for known in merged.values():
                for name in replaced:
                    known.pop(name, None)
            merged.setdefault(place, {}).update(numbers)
    places = {place: numbers for place, numbers in merged.items() if numbers}
    return Preset(paper, tuple(data.split()), tuple(methods.split()), sigmas, places, **more)


# Everybody below took over the code of Cohen et al.: SGD, augmentation, and σ whole from the start.
_CODE = {"smoothing/code/train.py": {"momentum": 0.9, "weight_decay": 1e-4, "learning_rate": 0.1, "sigma_warmup": 0}}
_CIFAR = {"smoothing/code/datasets.py": {"augment": "crop+flip"}}
_IMAGENET = {"smoothing/code/datasets.py": {"augment": "resized-crop+flip"}}
_SHORT = {"smoothing/code/train.py: its defaults": {"epochs": 90, "milestones": (30, 60)}}

# SmoothAdv's code descends on every draw, takes a step for each m-th of a batch, and lets ε rise.
_SALMAN_CODE = {"smoothing-adversarial/code/train_pgd.py": {"loss": "draws", "passes": 256, "epsilon_delay": 0}}
_SALMAN_README = {
    "smoothing-adversarial/README.md: jobs.yaml": {"epochs": 150, "milestones": (50, 100), "epsilon_warmup": 10},
    "smoothing-adversarial/README.md: example": {"draws": 2, "attack_steps": 10},
}
_SALMAN_GRID = {"attack_steps": (2, 4, 6, 8, 10), "draws": (1, 2, 4, 8), "epsilon": (0.25, 0.5, 1.0, 2.0)}

# The commands of Jeong and others, whose code takes a step for each m-th of a batch of 256 as well.
_CHUNKS = {"smoothing-consistency/code/train.py: _chunk_minibatch": {"passes": 256, "loss": "draws"}}
_MNIST = {"smoothing-consistency/EXPERIMENTS.MD": {"epochs": 90, "milestones": (30, 60), "learning_rate": 0.01}}
_LONG = {"smoothmix/EXPERIMENTS.MD: CIFAR-10": {"epochs": 150, "milestones": (50, 100), "learning_rate": 0.1}}
_SMOOTHADV_MNIST = {
    "smoothing-consistency/EXPERIMENTS.MD: SmoothAdv": {
        "draws": 4,
        "attack_steps": 10,
        "epsilon_warmup": 10,
        "epsilon_delay": 0,
    },
    "smoothing-consistency/code/train_salman.py": {"epsilon": 255 / 256},
}
_MACER = {"macer/main.py: defaults": {"margin": 8.0, "sharpness": 16.0, "draws": 16, "loss": "smoothed"}}
_MACER_MNIST = {
    "smoothing-consistency/EXPERIMENTS.MD: MACER": {"weight": _by(16.0, 16.0, 6.0), "deferred": 30, "batch": 256}
}
_CONSISTENCY_MNIST = {
    "smoothmix/EXPERIMENTS.MD: Consistency": {"draws": 2},
    "smoothing-consistency/data/certify: names of results": {"weight": _by(10.0, 5.0, 5.0), "entropy": 0.5},
}
_CONSISTENCY_CIFAR = {
    "smoothing-catrs/EXPERIMENTS.MD: Consistency": {"draws": 2, "weight": _by(20.0, 10.0, 10.0)},
    "smoothing-consistency/data/certify: names of results": {"entropy": 0.5},
}
_SMOOTHMIX_CIFAR = {
    "smoothmix/EXPERIMENTS.MD: SmoothMix": {
        "draws": 2,
        "attack_steps": 4,
        "step": _by(0.5, 1.0, 2.0),
        "mixed_weight": 5.0,
    },
    "smoothmix/code/train.py": {"mixed_warmup": 10},
}
_CATRS = {
    "smoothing-catrs/EXPERIMENTS.MD: CAT-RS": {"draws": 4, "attack_steps": 4, "epsilon": 1.0},
    "smoothing-catrs/code/train_catrs.py": {"epsilon_delay": 0, "epsilon_warmup": 0},
    "smoothing-catrs/EXPERIMENTS.MD: preprocessing": {"target_sigma": 0.25},
}


def _catrs_table(paper: str, data: str) -> list[Preset]:
    """The methods of CAT-RS's comparison on CIFAR, of which Sun et al. use models or settings (their section 6)."""
    common = (_CODE, _CIFAR, _CHUNKS, _LONG)
    smoothadv = {
        "smoothing-catrs/EXPERIMENTS.MD: SmoothAdv": {
            **{"draws": _by(4, 8, 2), "attack_steps": 10, "epsilon": _by(1.0, 1.0, 2.0)},
            **{"epsilon_delay": 0, "epsilon_warmup": 10},
        }
    }
    macer = {
        "smoothing-catrs/EXPERIMENTS.MD: MACER (names of its results have 4 for 6)": {"weight": _by(12.0, 6.0, 12.0)},
        "smoothing-catrs/code/train_macer.py": {"deferred": _by(0, 0, 50), "batch": 256},
    }
    one_step = {"smoothing-catrs/EXPERIMENTS.MD: SmoothMix, its mix_step": {"one_step": _by(False, True, True)}}
    high = {"smoothing-catrs/EXPERIMENTS.MD: CAT-RS, its lbd": {"high_weight": _by(0.5, 1.0, 2.0)}}
    return [
        _paper(paper, data, "smoothadv", _THREE, *common, smoothadv),
        _paper(paper, data, "macer", _THREE, *common, _MACER, macer),
        _paper(paper, data, "consistency", _THREE, *common, _CONSISTENCY_CIFAR),
        _paper(paper, data, "smoothmix", _THREE, *common, _SMOOTHMIX_CIFAR, one_step),
        _paper(paper, data, "cat-rs", _THREE, *common, _CATRS, high),
    ]


_SUN_CODE = {"acr-weakness/code/train.py": {"passes": 256, "loss": "draws"}}
_TABLE_6 = {
    "Table 6": {
        **{"draws": 4, "begin": _by(60, 70, 60), "discard_below": _by(0.5, 0.4, 0.4)},
        **{"sphere_steps": _by(3, 6, 4), "sphere_step": _by(0.25, 0.25, 0.5)},
    },
    "appendix C.1": {
        **{"epochs": 150, "milestones": (50, 100), "discard_draws": 100, "weigh_draws": 16, "weigh_floor": 0.75}
    },
    "section 5.4": {"weigh_every": 10},
    "section 5.2": {"weigh_alpha": 0.1},
}
_STEEP = {"acr-weakness/code/train.py: the bound of 12 of 16 votes": {"weigh_floor": 0.5610780527448468}}
_TABLE_7 = {
    "Table 7": {
        **{"draws": _by(1, 1, 2), "begin": 0, "discard_below": _by(0.2, 0.2, 0.1)},
        **{"sphere_steps": _by(2, 2, 1), "sphere_step": _by(0.5, 1.0, 2.0)},
    },
    # The scripts leave the code's own milestones, 50 and 100.
    "appendix C.1": {"epochs": 90, "milestones": (30, 60), "discard_draws": 50, "weigh_every": 0},
}
# The code of their Gaussian baseline takes a step for each draw of a batch of 256, and adds noise to noise.
_SUN_GAUSSIAN = {"section 6": {"draws": 4}, "appendix C.1": {"epochs": 150, "milestones": (50, 100)}}

_EMDE = {
    "appendix I.3": {
        **{"epochs": 10, "batch": 256, "weight_decay": 1e-4, "milestones": (4, 8), "decay": 0.1},
        **{"epsilon_warmup": 3, "epsilon_delay": 0},
    },
    "appendix I.3: the first of those tried": {"learning_rate": 0.01},
    "equation 7": {"loss": "smoothed"},
}
_EMDE_ACCE = {"appendix I.3": {"batch": 2048}, "appendix J.4.1": {"rho": 0.01}}
_EMDE_WARMUPS = {
    "appendix J.1.1": {"sigma_warmup": 8, "epsilon_delay": 8, "epsilon_warmup": 8},
    "smoothing-adversarial/README.md: jobs.yaml": {"epochs": 150, "milestones": (50, 100), "batch": 256},
    "equation 7": {"loss": "smoothed"},
}
_BRIER_GRID = {"attack_scale": (0.01, 0.1, 1.0, 2.0), "learning_rate": (0.01, 0.05), "attack_steps": (1, 4)}
# The factor "in the multiplicative schedule of ρ" is read as the increase per step; see AcceAdversary.
_ACCE_GRID = {**_BRIER_GRID, "attack_steps": (1, 4, 10, 20), "rho_growth": (1.01, 1.05, 1.1, 1.5)}
_IMAGENET_GRID = {"learning_rate": (0.001, 0.005, 0.01), "attack_scale": (1.0, 5.0)}


def _emde() -> list[Preset]:
    """Fine-tuning on five data sets, and the baselines that Emde et al. trained themselves."""
    calibration, result = " ".join(_CALIBRATION), list[Preset]()
    for data, look in (("cifar-10 cifar-100", _CIFAR), ("fashion-mnist svhn", {})):
        brier = {"fine_tunes": True, "grid": _BRIER_GRID}
        result.append(_paper("emde-2024", data, "brier-act", _FOUR, look, _EMDE, **brier))
        acce = {"fine_tunes": True, "grid": _ACCE_GRID, "models": 16}
        result.append(_paper("emde-2024", data, calibration, _FOUR, look, _EMDE, _EMDE_ACCE, **acce))
    # Appendix I.5: "the same hyperparameters as for Brier-ACT".
    result.append(replace(result[0], data=("cifar-10",), methods=("smoothadv",)))
    result.append(_paper("emde-2024", "cifar-100", "smoothadv", _FOUR, _CODE, _CIFAR, _EMDE_WARMUPS))
    result.append(_paper("emde-2024", "fashion-mnist svhn", "smoothadv", _FOUR, _CODE, _EMDE_WARMUPS))
    large = {"fine_tunes": True, "grid": _IMAGENET_GRID}
    theirs = {
        "smoothing-adversarial/data/certify/imagenet/PGD_1step": {"draws": 1},
        "appendix J.4.1: the last of those tried": {"learning_rate": 0.01},
    }
    result.append(_paper("emde-2024", "imagenet", "brier-act", _THREE, _IMAGENET, _EMDE, theirs, **large))
    more = {"appendix J.4.1": {"batch": 1024, "rho": 0.01}}
    result.append(_paper("emde-2024", "imagenet", calibration, _THREE, _IMAGENET, _EMDE, theirs, more, **large))
    return result


_GAUSSIAN_400 = {"smoothing/experiments.MD": {"batch": 400}}
_ONE_DRAW = {"smoothing-catrs/code/train_cohen.py": {"draws": 1, "batch": 256}}
_CATRS_IMAGENET = {
    "smoothing-catrs/EXPERIMENTS.MD: ImageNet": {
        **{"draws": 2, "attack_steps": 1, "epochs": 90, "milestones": (30, 60, 85), "high_weight": 2.0},
        **{"confidence": "soft", "double_from": 80},  # their confidence_mask and warmup
    }
}
PRESETS: list[Preset] = [
    _paper("cohen-2019", "cifar-10", "gaussian", _FOUR, _CODE, _CIFAR, _SHORT, _GAUSSIAN_400),
    _paper("cohen-2019", "imagenet", "gaussian", _THREE, _CODE, _IMAGENET, _SHORT, _GAUSSIAN_400),
    _paper(
        *("salman-2019", "cifar-10", "smoothadv", _FOUR, _CODE, _CIFAR, _SALMAN_CODE, _SALMAN_README), grid=_SALMAN_GRID
    ),
    _paper(
        *("salman-2019", "imagenet", "smoothadv", _THREE, _CODE, _IMAGENET, _SHORT, _SALMAN_CODE),
        {"smoothing-adversarial/code/train_pgd.py: its defaults": {"epsilon_warmup": 1}},
        {"smoothing-adversarial/data/certify/imagenet/PGD_1step": {"draws": 1, "attack_steps": 1}},
        grid={"epsilon": (0.5, 1.0, 2.0, 4.0, 8.0)},
    ),
    _paper(
        *("zhai-2020-macer", "cifar-10", "macer", _THREE, _CODE, _CIFAR, _MACER),
        {
            "macer/main.py: defaults": {
                **{"epochs": 440, "batch": 64, "milestones": (200, 400)},
                **{"learning_rate": 0.01, "weight_decay": 5e-4},
            },
            "macer/main.py; names of results and commands of others, see Macer": {
                **{"weight": _by(12.0, 4.0, 12.0), "deferred": _by(0, 0, 200)}
            },
        },
    ),
    _paper(
        *("jeong-2020-consistency", "mnist", "gaussian", _THREE, _CODE, _CHUNKS, _MNIST),
        {"smoothing-consistency/code/train_cohen.py": {"draws": 1}},
    ),
    _paper("jeong-2020-consistency", "mnist", "smoothadv", _THREE, _CODE, _CHUNKS, _MNIST, _SMOOTHADV_MNIST),
    _paper("jeong-2020-consistency", "mnist", "macer", _THREE, _CODE, _CHUNKS, _MNIST, _MACER, _MACER_MNIST),
    _paper("jeong-2020-consistency", "mnist", "consistency", _THREE, _CODE, _CHUNKS, _MNIST, _CONSISTENCY_MNIST),
    _paper(
        *("jeong-2020-consistency", "cifar-10", "consistency", _THREE, _CODE, _CIFAR, _CHUNKS),
        *({"appendix A.1": {"epochs": 150, "milestones": (50, 100)}}, _CONSISTENCY_CIFAR),
    ),
    _paper(
        *("jeong-2020-consistency", "imagenet", "consistency", (0.5, 1.0), _CODE, _IMAGENET, _CHUNKS),
        {
            "appendix A.1": {"epochs": 90, "milestones": (30, 60), "draws": 2, "passes": 200},
            "smoothing-consistency/data/certify: names of results": {"weight": 5.0, "entropy": _by(0.5, 0.1)},
        },
    ),
    _paper(
        *("jeong-2021-smoothmix", "mnist", "smoothmix", _THREE, _CODE, _CHUNKS, _MNIST, _SMOOTHMIX_CIFAR),
        {"smoothmix/EXPERIMENTS.MD: SmoothMix (MNIST)": {"draws": 4, "attack_steps": _by(2, 4, 8), "step": 1.0}},
    ),
    _paper(*("jeong-2021-smoothmix", "cifar-10", "smoothmix", _THREE, _CODE, _CIFAR, _CHUNKS, _LONG), _SMOOTHMIX_CIFAR),
    _paper(*("jeong-2023-catrs", "cifar-10 cifar-100", "gaussian", _THREE, _CODE, _CIFAR, _CHUNKS, _LONG), _ONE_DRAW),
    *_catrs_table("jeong-2023-catrs", "cifar-10 cifar-100"),
    _paper(
        *("jeong-2023-catrs", "mnist", "cat-rs", (0.25,), _CODE, _CHUNKS, _LONG, _CATRS),
        {"smoothing-catrs/EXPERIMENTS.MD: MNIST": {"learning_rate": 0.01, "high_weight": 1.0}},
    ),
    _paper(
        *("jeong-2023-catrs", "mnist fashion-mnist", "gaussian", (0.25,), _CODE, _CHUNKS, _LONG, _ONE_DRAW),
        {"smoothing-catrs/EXPERIMENTS.MD: MNIST": {"learning_rate": 0.01}},
    ),
    _paper(*("jeong-2023-catrs", "imagenet", "cat-rs", (1.0,), _CODE, _IMAGENET, _CHUNKS, _CATRS), _CATRS_IMAGENET),
    _paper("jeong-2023-catrs", "imagenet", "gaussian", (0.25,), _CODE, _IMAGENET, _SHORT, _ONE_DRAW),
    *_emde(),
    _paper("sun-2025", "cifar-10", "acr", _THREE, _CODE, _CIFAR, _SUN_CODE, _TABLE_6, _STEEP),
    _paper("sun-2025-printed", "cifar-10", "acr", _THREE, _CODE, _CIFAR, _SUN_CODE, _TABLE_6),
    _paper("sun-2025", "imagenet", "acr", _THREE, _CODE, _IMAGENET, _SUN_CODE, _TABLE_7),
    _paper("sun-2025", "cifar-10", "gaussian", _THREE, _CODE, _CIFAR, _SUN_CODE, _SUN_GAUSSIAN),
    *_catrs_table("sun-2025", "cifar-10"),
]


def preset_names(method: str) -> dict[str, Preset]:
    """The presets of a method by their names, ``paper:data``."""
    name = method_named(method).name
    return {f"{each.paper}:{data}": each for each in PRESETS if name in each.methods for data in each.data}


def complete_name(method: str, preset: Any, data: str = "") -> Any:
    """A preset with its data set: the one that the data are called after, or the only one; else as it was."""
    known = [name for name in preset_names(method) if name.partition(":")[0] == preset]
    called = re.sub(r"[^a-z0-9]", "", data.lower())
    fits = [name for name in known if re.sub(r"[^a-z0-9]", "", name.partition(":")[2]) in called]
    best = max(fits, key=len, default=None)  # CIFAR-100's name has CIFAR-10's in it, and Fashion-MNIST's MNIST's
    return best or (known[0] if len(known) == 1 else preset)


def preset_named(method: str, preset: Any) -> tuple[str, Preset]:
    """A preset of a method with its whole name; raise with the names there are."""
    known, called = preset_names(method), method_named(method).name
    name = complete_name(method, preset)
    if isinstance(name, str) and name in known:
        return name, known[name]
    if not known:
        raise InputError(f"preset is {preset!r}, which is unknown: {called} has none; leave it out")
    several = [each for each in known if preset in each.split(":")]
    if preset in DATA and several:
        raise InputError(
            f"preset is {preset!r}, a data set; name the paper too: pass {' or '.join(map(repr, several))}"
        )
    if several:
        raise InputError(
            f"preset is {preset!r}, which is for several data sets; pass {' or '.join(map(repr, several))}"
        )
    papers = list(dict.fromkeys(each.partition(":")[0] for each in known))
    hint = did_you_mean(preset, [*known, *papers], f"{called} has {', '.join(map(repr, known))}")
    raise InputError(f"preset is {preset!r}, which is unknown: {hint}")


def preset_sources(method: str, preset: str) -> dict[str, str]:
    """Where each number of a preset stands: a place in its paper or in its authors' code.

    Examples
    --------
    >>> preset_sources("acr", "sun-2025:imagenet")["discard_below"]
    'Table 7'
    """
    return preset_named(method, preset)[1].sources()


def preset_grid(method: str, preset: str, *, seed: int = 0) -> list[dict[str, Any]]:
    """The hyperparameters that a paper tried, as changes of the preset's recipe; one empty change if it tried none.

    Where a paper drew some of a product without saying which (ACCE-ACT: 16 of 128), these are drawn from ``seed``.

    Examples
    --------
    >>> grid = preset_grid("brier-act", "emde-2024:cifar-10")
    >>> len(grid), grid[0]
    (16, {'attack_scale': 0.01, 'learning_rate': 0.01, 'attack_steps': 1})
    """
    chosen = preset_named(method, preset)[1]
    every = [dict(zip(chosen.grid, values, strict=True)) for values in product(*chosen.grid.values())]
    if not chosen.models:
        return every
    from random import Random

    return [every[k] for k in sorted(Random(seed).sample(range(len(every)), chosen.models))]
