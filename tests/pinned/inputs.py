"""Small deterministic inputs, each made when the first case asks for it.

Nothing here comes from the packages that present results, so that the inputs survive a rewrite of those.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from certcal.lab.study import SizeSpace, StudyTable
from certcal.smoothing.robustness import vote_radii
from tests.smoothing.drawing import X, Y, draw, model
from tests.study.zoo import zoo

N = 90
SITES = np.array(["north", "south"])
# What a spreadsheet, a terminal or a browser would act on.
HOSTILE = ("=HYPERLINK(1)", "\x1b[31mred\x1b[2J", "<script>alert(1)</script>")
ARCHITECTURE = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|nor_conv_1x1~2|"


def _csv(path: Path, header: str, rows: Iterable[Iterable[object]]) -> None:
    cells = ([f'"{cell}"' if isinstance(cell, str) else str(cell) for cell in row] for row in rows)
    path.write_text("\n".join([header, *(",".join(row) for row in cells)]) + "\n", "utf-8")


def _confidences(path: Path) -> None:
    rng = np.random.default_rng(8)
    confidence = rng.beta(4, 1.4, N).round(3)
    correct = (rng.random(N) < confidence**1.5).astype(int)
    weight = rng.integers(1, 5, N)
    _csv(
        path,
        "confidence,correct,kg,site",
        zip(confidence, correct, weight, SITES[np.arange(N) % 2].tolist(), strict=True),
    )


def _labels(path: Path) -> None:
    rng = np.random.default_rng(9)
    names = np.array(["cat", "dog", "emu"])
    prediction, other = rng.integers(0, 3, N), rng.integers(0, 3, N)
    confidence = rng.uniform(0.34, 1, N).round(3)
    label = np.where(rng.random(N) < confidence, prediction, other)
    _csv(
        path,
        "confidence,prediction,label",
        zip(confidence, names[prediction].tolist(), names[label].tolist(), strict=True),
    )


def _scores(path: Path) -> None:
    rng = np.random.default_rng(10)
    score = rng.random(N).round(3)
    _csv(path, "score,outcome", zip(score, (rng.random(N) < score**1.5).astype(int), strict=True))


def _two_scores(path: Path) -> None:
    rng = np.random.default_rng(11)
    score = rng.random(N).round(3)
    old = (score**1.4).round(3)
    _csv(path, "old,new,won", zip(old, score, (rng.random(N) < score).astype(int), strict=True))


def _all_classes(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(N, 3))
    shares = np.exp(logits / 2) / np.exp(logits / 2).sum(1, keepdims=True)
    return logits, (rng.random(N)[:, None] > shares.cumsum(1)).sum(1).clip(0, 2)


def _probabilities(path: Path) -> None:
    logits, labels = _all_classes(11)
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    names = ("cat", "dog", "emu")
    rows = ([*(float(value) for value in row), names[label]] for row, label in zip(shares, labels, strict=True))
    _csv(path, "prob_cat,prob_dog,prob_emu,label", rows)


def _logits(path: Path) -> None:
    logits, labels = _all_classes(12)
    np.savez(path, logits=logits, label=labels)


def _intervals(radii: tuple[float, ...], n: int = 60) -> Iterable[tuple[object, ...]]:
    rng = np.random.default_rng(13)
    z = rng.beta(6, 2, n).round(4)
    correct, margin = (rng.random(n) < z).astype(int), rng.random(n)
    for radius in radii:
        lower, upper = np.clip(z - radius / 2, 0, 1).round(6), np.clip(z + radius / 2, 0, 1).round(6)
        for k in range(n):
            certified = int(margin[k] > radius / 2)
            yield radius, f"s{k}", lower[k], upper[k], correct[k], certified, z[k], str(SITES[k % 2])


def _one_radius(path: Path) -> None:
    _csv(path, "lower,upper,correct", (row[2:5] for row in _intervals((0.125,))))


def _radii(path: Path) -> None:
    _csv(path, "radius,sample,lower,upper,correct,certified,confidence,site", _intervals((0.0625, 0.25)))


def _failing(path: Path) -> None:
    rows = ((*row[2:6], 0.001) for row in _intervals((0.125,)))
    _csv(path, "lower,upper,correct,certified,alpha", rows)


def _hostile(path: Path) -> None:
    rng = np.random.default_rng(14)
    score = rng.random(60).round(3)
    _csv(
        path,
        "confidence,correct,<b>=1+1</b>",
        zip(score, (rng.random(60) < score).astype(int), HOSTILE * 20, strict=True),
    )


def _hostile_intervals(path: Path) -> None:
    rows = ((*row[2:5], HOSTILE[place % 3]) for place, row in enumerate(_intervals((0.125,), 30)))
    _csv(path, "lower,upper,correct,group", rows)


def _run(**changes: object) -> Callable[[Path], None]:
    labels = np.where(np.arange(len(X)) % 6 == 0, 0, np.argmax(np.asarray(model()(X)), axis=1))

    def make(path: Path) -> None:
        draw(path, **{"labels": labels, "n": 1000, "unit": 20_000, **changes})

    return make


def _log(path: Path, low: int, sigma: float) -> None:
    votes = np.append(np.random.default_rng(15).integers(low, 1001, 58), [1000, 999])
    rows = ["idx\tlabel\tpredict\tradius\tcorrect\ttime"]
    for index, radius in enumerate(vote_radii(votes, 1000, sigma, 0.001)):
        right = index % 5 != 4
        said = "-1\t0.0\t0" if np.isnan(radius) else f"{3 if right else 1}\t{radius:.3}\t{int(right)}"
        rows.append(f"{index}\t3\t{said}\t0:01")
    path.write_text("\n".join(rows) + "\n")


def _images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    pixels = (40 + 60 * np.eye(3)[labels].repeat(4, axis=1) + rng.normal(0, 40, (40, 12))).clip(0, 255)
    return pixels.astype(np.uint8).reshape(40, 1, 3, 4), labels


def _pictures(path: Path) -> None:
    images, labels = _images()
    np.savez(path, inputs=images, labels=labels)


def _network(path: Path) -> None:
    """Weights by a formula: a network that prefers the bright part, without any training."""
    import torch

    from certcal.models.networks import MLP, save_weights

    network = MLP(12, hidden=(6,), classes=3)
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for weights in network.parameters():
            weights.copy_(torch.from_numpy(0.8 * rng.normal(size=tuple(weights.shape))))
    save_weights(network.eval(), path)


def _study(path: Path) -> None:
    rng = np.random.default_rng(5)
    models = 24
    skill, error = rng.random(models), rng.uniform(0.01, 0.1, models)
    columns: dict[str, object] = {
        "model": [f"net {k}" for k in range(models)] * 2,
        "data": ["digits"] * models + ["fashion"] * models,
        "accuracy": np.tile(0.5 + 0.4 * skill, 2) + rng.normal(0, 0.01, 2 * models),
        "params": np.tile(np.arange(models) * 100.0, 2),
        "fgsm": np.tile(0.3 * skill, 2) + rng.normal(0, 0.02, 2 * models),
        "edge": ["skip", "conv"] * models,
    }
    for stage, size in (("pre", 1.0), ("post", 0.4)):
        for name in ("ece_5", "ece_15", "ks_error"):
            columns[f"{stage}_{name}"] = np.abs(size * np.tile(error, 2) + rng.normal(0, 0.004, 2 * models))
    StudyTable.of(columns).write(path)


def _space(path: Path) -> None:
    rng = np.random.default_rng(0)
    names = list(SizeSpace([1, 2, 3]))
    n = len(names)
    columns = {"model": names, "data": ["digits"] * n, "split": ["test"] * n, "accuracy": rng.random(n)}
    columns |= {"pre_ece_15": 0.3 * rng.random(n), "pre_mmce": 0.1 * rng.random(n), "pre_ks_error": rng.random(n)}
    StudyTable.of(columns).write(path)


def _published(path: Path) -> None:
    path.write_text(f"arch,acc,pre_ECE_15,post_KSCE,params\n{ARCHITECTURE},93.9,4.2,0.7,12\nb,90.1,3.9,0.6,15\n")


def _by_index(path: Path) -> None:
    path.write_text(
        "index,dataset,split,acc,loss,train_accuracy,train_loss,params,flops,epochs,seeds,accuracy_spread\n"
        "1,cifar10,ori-test@12,75.0,0.9,0.8,0.5,500000,7500000,1,1,nan\n"
        "1,cifar100,ori-test@12,75.0,0.9,0.8,0.5,500000,7500000,1,1,nan\n"
    )


def _points(path: Path) -> None:
    np.savez(path, inputs=X, labels=Y)


def _map(source: str, *options: str) -> Callable[[Path], None]:
    """A map that the command line fits to another input, which is beside it."""

    def make(path: Path) -> None:
        from tests.pinned.reading import command

        ensure(path.parent, source)
        ran = command(path.parent, ["recalibrate", "fit", source, *options, "-o", path.name])
        assert ran.code == 0, ran.err

    return make


def _text(content: str | bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return make


def _broken_run(path: Path) -> None:
    path.mkdir()
    (path / "manifest.json").write_text('{"format": 1, "checksum": "')


MAKERS: dict[str, Callable[[Path], None]] = {
    "confidences.csv": _confidences,
    "labels.csv": _labels,
    "scores.csv": _scores,
    "two-scores.csv": _two_scores,
    "probabilities.csv": _probabilities,
    "logits.npz": _logits,
    "one-radius.csv": _one_radius,
    "radii.csv": _radii,
    "failing.csv": _failing,
    "hostile.csv": _hostile,
    "hostile-intervals.csv": _hostile_intervals,
    "run": _run(),
    "run-small": _run(sigma=0.25, seed=8),
    "other": _run(model=model("other"), seed=9),
    "a.tsv": lambda path: _log(path, 700, 0.25),
    "b.tsv": lambda path: _log(path, 300, 1.0),
    "pictures.npz": _pictures,
    "points.npz": _points,
    "net.safetensors": _network,
    "zoo": lambda path: zoo(path) and None,
    "study.parquet": _study,
    "space.parquet": _space,
    "published.csv": _published,
    "by-index.csv": _by_index,
    "architectures.json": _text(f'["8:8:8:8:8", "{ARCHITECTURE}"]'),
    "map-logits.json": _map("logits.npz"),
    "map-scores.json": _map("scores.csv", "--method", "isotonic"),
    "map-radii.json": _map("radii.csv"),
    "map-run.json": _map("run", "--radius", "0.1"),
    "empty.csv": _text(""),
    "header.csv": _text("confidence,correct\n"),
    "words.csv": _text("confidence,correct\n0.5,1\nhigh,0\n"),
    "huge.csv": _text("confidence,correct\n0.5,1\n1e400,0\n"),
    "large.csv": _text("confidence,correct\n0.5,1\n1e308,0\n"),
    "nan.csv": _text("confidence,correct\n0.5,1\nnan,0\n"),
    "strange.csv": _text("a,b\n1,2\n"),
    "bytes.csv": _text(b"confidence,correct\n\xff\xfe\x00,1\n"),
    "broken.parquet": _text(b"PAR1 and no more"),
    "broken.npz": _text(b"PK\x03\x04"),
    "crossed.csv": _text("lower,upper,correct\n0.2,0.8,1\n0.9,0.1,0\n"),
    "huge-intervals.csv": _text("lower,upper,correct\n-1e308,1e308,1\n"),
    "broken-run": _broken_run,
    "broken.tsv": _text("idx\tlabel\tpredict\tradius\tcorrect\ttime\n0\t1\t1\tfar\t1\t0:01\n"),
    "broken-map.json": _text('{"certcal": '),
}


def ensure(folder: Path, name: str) -> None:
    """Make the input of that name, unless it is there."""
    if not (folder / name).exists():
        MAKERS[name](folder / name)


def inputs_of(words: Iterable[str]) -> list[str]:
    """Names of the inputs in a command line, alone or as NAME=INPUT."""
    return [name for word in words if (name := word.rsplit("=", 1)[-1]) in MAKERS]
