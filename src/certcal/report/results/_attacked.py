"""What attacks on the confidences of a model have reached, and its forms for machines."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import certcal
from certcal._csv import CsvWriter
from certcal.claims import Estimate
from certcal.report.results._json import as_text, for_json
from certcal.report.results._measured import Part, part_to_dict

if TYPE_CHECKING:
    from certcal.metrics import Reliability


@dataclass(frozen=True)
class AttackLine:
    """What one attack has reached within one distance.

    Attributes
    ----------
    key
        The attack's name in commands and files, such as "plus-true".
    name
        What it is called in papers, such as "(+1, y)-ACE".
    aim
        What it wants, in a few words.
    epsilon, epsilon_text
        The largest length of a perturbation, as a number and as it was asked for.
    part
        What the perturbed predictions measure.
    moved, changed
        How many inputs were perturbed, and how many predicted labels that changed.
    """

    key: str
    name: str
    aim: str
    epsilon: float
    epsilon_text: str
    part: Part
    moved: int
    changed: int = 0


@dataclass(frozen=True)
class AttackedResults:
    """Everything that is printed or written.

    Attributes
    ----------
    source
        What was attacked, in a few words.
    about
        Further facts for machines: model, data, classes.
    description
        The same in a line for people.
    clean
        The measurements without an attack.
    lines
        The attacks, those within one distance after each other.
    conventions
        Norm, box, steps, bins and what else was asked for.
    claims
        What was found, in sentences.
    notes
        How to read the numbers.
    """

    source: str
    about: Mapping[str, Any]
    description: str
    clean: Part
    lines: Sequence[AttackLine]
    conventions: Mapping[str, Any]
    claims: Sequence[str]
    notes: str

    @property
    def strongest(self) -> AttackLine:
        """The attack after which the AdaECE, the ECE with equal-mass bins, is largest."""
        return max(self.lines, key=lambda line: estimate_of(line.part, "equal_mass_ece").value)

    @property
    def changed(self) -> int:
        """The largest number of predicted labels that an attack changed."""
        return max(line.changed for line in self.lines)

    @property
    def by_epsilon(self) -> dict[str, list[AttackLine]]:
        """The attacks within each distance, by the distance as it was asked for."""
        groups: dict[str, list[AttackLine]] = {}
        for line in self.lines:
            groups.setdefault(line.epsilon_text, []).append(line)
        return groups

    @property
    def norm_text(self) -> str:
        """The norm as a symbol."""
        return {"linf": "ℓ∞", "l2": "ℓ2"}[str(self.conventions["norm"])]

    @property
    def diagrams(self) -> dict[str, Reliability]:
        """Without an attack and under each, by title, for :func:`certcal.report.figures.reliability_panels`."""
        titled = {f"{line.name}, ε = {line.epsilon_text} ({self.norm_text})": line.part for line in self.lines}
        return {title: part.reliability for title, part in {"unattacked": self.clean, **titled}.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return for_json(
            {
                "certcal": certcal.__version__,
                "source": self.source,
                **self.about,
                "conventions": dict(self.conventions),
                "claims": list(self.claims),
                "clean": part_to_dict(self.clean),
                "attacks": [
                    {
                        "attack": line.key,
                        "name": line.name,
                        "epsilon": line.epsilon,
                        "moved": line.moved,
                        "labels_changed": line.changed,
                        **part_to_dict(line.part),
                    }
                    for line in self.lines
                ],
            }
        )

    def to_json(self) -> str:
        """Indented JSON."""
        return as_text(self.to_dict())

    def to_csv(self) -> str:
        """One line per attack and metric, with all digits."""
        buffer = io.StringIO(newline="")
        writer = CsvWriter(buffer)
        writer.writerow(["attack", "norm", "epsilon", "metric", "bins", "value", "n"])
        norm = self.conventions["norm"]
        for row in self.clean.rows:
            writer.writerow(["", "", "", row.name, row.settings.get("bins", ""), repr(float(row.value)), row.n])
        for line in self.lines:
            for row in line.part.rows:
                value = [row.name, row.settings.get("bins", ""), repr(float(row.value)), row.n]
                writer.writerow([line.key, norm, repr(line.epsilon), *value])
        return buffer.getvalue()


def estimate_of(part: Part, name: str) -> Estimate:
    """The measurement of that name.

    Examples
    --------
    >>> from certcal.metrics import reliability
    >>> part = Part("all", 2, [Estimate("ece", 0.1, 2)], reliability([0.5, 0.6], [0, 1]))
    >>> estimate_of(part, "ece").value
    0.1
    """
    return next(row for row in part.rows if row.name == name)
