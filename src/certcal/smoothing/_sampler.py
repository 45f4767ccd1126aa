"""Draw noise, ask the model, count: what everything else waits for.

Before it, a model is tried: how many classes it has, and whether the rows of a batch mind each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import (
    ABOVE_ONE,
    SUM_TOLERANCE,
    InputError,
    choice,
    noise_level,
    random_seed,
    to_numpy,
    whole_number,
)
from certcal.smoothing._counts import UNITS, check_thresholds, default_thresholds
from certcal.smoothing._noise import NOISES, ExactNoise, exact_noise, gaussian_scale, grid_levels
from certcal.smoothing._pipeline import draw, free_cores

if TYPE_CHECKING:
    from certcal.data import Rows
    from certcal.models import Model

SELECT, COUNT = 0, 1  # the stages: draws that choose a class, and others that count
LIMIT = 1 << 32  # samples and draws are numbered below this: one word of the counter each
MOST_BATCH = 1 << 24
MOST_THREADS = 1024

_TRIED = 8  # inputs that a model is tried on
_NOISY = 64  # noisy inputs, among which neighbours are chosen
_BATCHES = 8  # compositions of a batch; a model that tosses one coin per batch passes with probability 2^-7
# Differences that are put down to the rounding of floats, relative to the largest output of the row (at least 1).
_ROUNDING = 1e-5


class SamplingError(InputError):
    """A model that fails or returns what cannot be counted. The text names the sample and says what to do."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Votes of the draws that choose a class: ``votes`` (m, K) and ``invalid`` (m,), which sum to n0 in every row."""

    votes: NDArray[np.int64]
    invalid: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tally:
    """What was counted for each sample's class A."""

    votes: NDArray[np.int64]
    """Draws whose prediction is A."""
    invalid: NDArray[np.int64]
    """Draws without a valid prediction; they count against A: no vote, confidence 0."""
    histogram: NDArray[np.int64]
    """Cell j counts draws with t_j <= X < t_{j+1}, X the confidence of A (t_0 = 0; the last cell is X >= t_G)."""
    sums: NDArray[np.int64]
    """Sum of X in units of 2⁻³⁰, each draw rounded down."""
    class_votes: NDArray[np.int64]
    """Draws (m, K) whose prediction is each class."""
    other_histograms: NDArray[np.int64]
    """Histograms (m, L + 1, cells) of L other classes that were asked for, and of the rest; (m, 0, cells) for none."""


class Sampler:
    """Counts of a model's predictions under noise, the same bits however the work is cut.

    Draw d of stage s of sample i is a pure function of (seed, i, s, d). Batches are filled with draws of several
    samples and are always of full size (the last is padded and the padding ignored), so that a model sees one shape
    only. For every model whose output for a row depends on that row alone, the counts do not depend on the order of
    samples, nor on the calls they are spread over, nor on the batch size, nor ever on the number of threads.

    Parameters
    ----------
    model
        A :class:`certcal.models.Model`: batch of float32 inputs to one row of outputs per input, with ``outputs``
        saying whether those are ``"logits"`` or ``"probabilities"``.
    sigma
        Standard deviation of the noise in every coordinate. Gaussian noise has the next float32 that is not smaller.
    seed
        From 0 to 2⁶⁴ - 1.
    noise
        ``"gaussian"``, or ``"exact"`` for inputs on k/255 (see docs/certificates.md).
    thresholds
        Where confidences are counted; strictly increasing in (0, 1).
    batch
        Inputs per call of the model.
    noise_threads
        Threads that make noise, and count, while the model computes in the caller's thread; 0 to take turns. As many
        as there are cores for a model on a device, one less for one on the CPU, unless given.

    Examples
    --------
    >>> class Sign:  # predicts class 1 right of zero
    ...     outputs = "probabilities"
    ...
    ...     def __call__(self, batch):
    ...         right = (batch[:, 0] > 0).astype(np.float64)
    ...         return np.stack([1 - right, right], axis=1)
    >>> sampler = Sampler(Sign(), sigma=0.5, seed=0)
    >>> points, numbers = np.array([[0.5], [-2.0]], np.float32), np.array([0, 1])
    >>> chosen = sampler.select(points, numbers, n0=100).votes.argmax(axis=1)
    >>> chosen
    array([1, 0])
    >>> tally = sampler.count(points, numbers, chosen, 0, 10_000)
    >>> tally.votes / 10_000  # the first is about Φ(1) = .8413
    array([0.845, 1.   ])
    """

    def __init__(
        self,
        model: Model,
        *,
        sigma: float,
        seed: int,
        noise: str = "gaussian",
        thresholds: Any = None,
        batch: int = 500,
        noise_threads: int | None = None,
    ) -> None:
        if not callable(model) or getattr(model, "outputs", None) not in ("logits", "probabilities"):
            raise InputError(
                f"model ({type(model).__name__}) does not say whether it returns logits or probabilities; "
                'wrap it: certcal.models.wrap(model, outputs="logits")'
            )
        self.model = model
        self.sigma = noise_level(sigma)
        self.seed = random_seed(seed)
        self.noise = choice(noise, NOISES, "noise")
        self.thresholds = default_thresholds() if thresholds is None else check_thresholds(thresholds)
        self.batch = whole_number(batch, 1, MOST_BATCH, "batch", "pass a whole number of inputs per batch, at least 1")
        self.noise_threads = check_threads(noise_threads)
        self._spare: list[NDArray[np.float32]] = []
        self._scale = gaussian_scale(self.sigma)
        self._exact: ExactNoise | None = exact_noise(self.sigma) if self.noise == "exact" else None

    def select(self, inputs: Any, indices: Any, n0: int) -> Selection:
        """Votes for every class from the ``n0`` draws that choose each sample's class.

        Parameters
        ----------
        inputs
            Samples, shape (m, …), finite.
        indices
            Their numbers: each sample's stream of noise belongs to its number.
        n0
            Draws per sample.
        """
        from certcal._kernels.counting import add_votes

        n0 = whole_number(n0, 1, LIMIT, "n0", "pass a number of draws from 1 to 2**32")
        points, numbers = self._check_inputs(inputs, indices)
        invalid = np.zeros(len(points), np.int64)
        votes = np.zeros((len(points), 0), np.int64)

        def add(outputs: NDArray[Any], first: int, rows: int) -> None:
            nonlocal votes
            votes = votes if first else np.zeros((len(points), outputs.shape[1]), np.int64)
            add_votes(outputs, rows, first, n0, self._logits, ABOVE_ONE, _tolerance(outputs), votes, invalid)

        self._draw(points, numbers, SELECT, 0, n0, add)
        return Selection(votes, invalid)

    def count(self, inputs: Any, indices: Any, classes: Any, start: int, stop: int, others: Any = None) -> Tally:
        """Votes and confidences of each sample's class from its counting draws number start … stop - 1.

        Parameters
        ----------
        inputs, indices
            As for :meth:`select`.
        classes
            The class A of each sample, chosen without looking at these draws.
        start, stop
            Half-open range of draws; tallies of neighbouring ranges add up to that of the whole.
        others
            Further classes (m, L) of each sample, also chosen beforehand, whose confidences are counted too.
        """
        from certcal._kernels.counting import add_confidences

        stop = whole_number(stop, 1, LIMIT, "stop", "pass a number of draws from 1 to 2**32")
        start = whole_number(start, 0, stop - 1, "start", f"pass a whole number from 0 to stop - 1 = {stop - 1}")
        points, numbers = self._check_inputs(inputs, indices)
        chosen = _whole_numbers(classes, len(points), "classes")
        further = np.empty((len(points), 0), np.int64) if others is None else np.array(others, np.int64, order="C")
        sums, invalid = np.zeros(len(points), np.int64), np.zeros(len(points), np.int64)
        cells, votes = self.thresholds.size + 1, np.zeros((len(points), 0), np.int64)
        histogram = np.zeros((len(points), cells), np.int64)
        more = np.zeros((len(points), further.shape[1] + 1 if further.size else 0, cells), np.int64)

        def add(outputs: NDArray[Any], first: int, rows: int) -> None:
            nonlocal votes
            votes = votes if first else np.zeros((len(points), outputs.shape[1]), np.int64)
            if first == 0 and chosen.max() >= outputs.shape[1]:
                place = int(chosen.argmax())
                raise InputError(
                    f"classes[{place}] is {chosen[place]}, but the model has {outputs.shape[1]} classes; "
                    f"pass numbers from 0 to {outputs.shape[1] - 1}"
                )
            how = (self._logits, ABOVE_ONE, _tolerance(outputs), chosen, further, self.thresholds, float(UNITS))
            add_confidences(outputs, rows, first, stop - start, *how, votes, invalid, sums, histogram, more)

        self._draw(points, numbers, COUNT, start, stop, add)
        return Tally(votes[np.arange(len(points)), chosen], invalid, histogram, sums, votes, more)

    @property
    def _logits(self) -> bool:
        return self.model.outputs == "logits"

    def _check_inputs(self, inputs: Any, indices: Any) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        points = np.ascontiguousarray(to_numpy(inputs, "inputs"), dtype=np.float32)
        if points.ndim < 2 or points.size == 0:
            raise InputError(f"inputs has shape {points.shape}; pass one row of coordinates per sample")
        numbers = _whole_numbers(indices, len(points), "indices")
        finite = np.isfinite(points)
        if not finite.all():
            place = np.unravel_index(int(np.argmin(finite)), finite.shape)
            raise InputError(f"sample {numbers[place[0]]} has a coordinate {points[place]}; drop it or repair it")
        return points, numbers

    def _fill(
        self, points: NDArray[np.float32], numbers: NDArray[np.int64], stage: int, start: int, draws: int
    ) -> Callable[[int, NDArray[np.float32]], None]:
        """A function that fills rows with noisy samples from a position in the sequence of all (sample, draw) on."""
        from certcal._kernels import noise

        keys = noise.key_schedule(np.uint64(self.seed))
        if self._exact is None:
            flat, scale = points.reshape(len(points), -1), self._scale
            return lambda first, rows: noise.add_gaussian(flat, numbers, keys, stage, start, draws, first, scale, rows)
        levels, exact = grid_levels(points, numbers).reshape(len(points), -1), self._exact
        table = (exact.upper, exact.lower, exact.guide, exact.shift)
        return lambda first, rows: noise.add_exact(levels, numbers, keys, stage, start, draws, first, *table, rows)

    def _draw(
        self,
        points: NDArray[np.float32],
        numbers: NDArray[np.int64],
        stage: int,
        start: int,
        stop: int,
        add: Callable[[NDArray[Any], int, int], None],
    ) -> None:
        """Pass the model's outputs on, with the position of the first row and the number of rows that count."""
        draws, width, threads = stop - start, 0, self.noise_threads

        def ask(batch: NDArray[np.float32], first: int) -> NDArray[Any]:
            nonlocal width
            outputs = self._ask(batch, numbers, first, draws)
            if width and outputs.shape[1] != width:
                raise SamplingError(
                    f"the model returned {outputs.shape[1]} classes for sample {numbers[first // draws]} and {width} "
                    "before; it must return the same number for every batch"
                )
            width = outputs.shape[1]
            return outputs

        draw(
            len(points) * draws,
            self.batch,
            points.shape[1:],
            fill=self._fill(points, numbers, stage, start, draws),
            ask=ask,
            count=add,
            threads=free_cores(getattr(self.model, "device", "cpu")) if threads is None else threads,
            spare=self._spare,
            host_buffer=getattr(self.model, "host_buffer", None),
        )

    def _ask(self, batch: NDArray[np.float32], numbers: NDArray[np.int64], first: int, draws: int) -> NDArray[Any]:
        try:
            returned = self.model(batch)
        except Exception as error:
            places = np.minimum(np.arange(first, first + len(batch)) // draws, len(numbers) - 1)
            culprit = self._culprit(batch, numbers[places])
            if isinstance(error, InputError):  # a sentence that says what to do
                raise SamplingError(f"the model failed on {culprit}: {error}") from error
            raise SamplingError(
                f"the model failed on {culprit}: {_first_line(error)}; "
                f"check that it accepts float32 batches of shape {batch.shape}"
            ) from error
        sample = numbers[first // draws]
        try:
            outputs = to_numpy(returned, "the model's output")
        except InputError as error:
            raise SamplingError(f"sample {sample}: {error}") from error
        if outputs.ndim != 2 or outputs.shape[0] != len(batch) or outputs.shape[1] < 2:
            raise SamplingError(
                f"the model returned shape {outputs.shape} for a batch of {len(batch)} inputs that begins with sample "
                f"{sample}; it must return one row per input and one column per class"
            )
        # A copy: it is counted while the model may already write its next answer to the same place.
        short = outputs.dtype.kind == "f" and outputs.dtype != np.float64
        return np.array(outputs, np.float32 if short else np.float64, order="C")

    def _culprit(self, batch: NDArray[np.float32], samples: NDArray[np.int64]) -> str:
        """Which sample the model fails on, found by asking for one sample at a time."""
        several: list[int] = list(dict.fromkeys(samples.tolist()))
        for sample in several:
            own = np.resize(np.flatnonzero(samples == sample), len(batch))
            try:
                self.model(batch[own])
            except Exception:
                return f"sample {sample}"
        return f"a batch of samples {several[0]} to {several[-1]}" if len(several) > 1 else f"sample {several[0]}"


def _tolerance(outputs: NDArray[Any]) -> float:
    return SUM_TOLERANCE[outputs.dtype]


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def check_threads(value: Any) -> int | None:
    """A number of threads beside the caller's own; None stands for the cores that are free."""
    remedy = f"pass a number of threads from 0 to {MOST_THREADS}"
    return None if value is None else whole_number(value, 0, MOST_THREADS, "noise_threads", remedy)


def _whole_numbers(value: Any, count: int, name: str) -> NDArray[np.int64]:
    array = to_numpy(value, name)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise InputError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; pass {count} whole numbers, one per sample"
        )
    bad = (array < 0) | (array >= LIMIT)
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(f"{name}[{place}] is {array[place]}; pass whole numbers from 0 to 2**32 - 1")
    return np.ascontiguousarray(array, dtype=np.int64)


# --- trying a model before it is sampled ------------------------------------------------------------------------------


def spread(samples: int) -> NDArray[np.int64]:
    """Numbers of the samples that are tried: from all over the data, which may be sorted."""
    return np.unique(np.linspace(0, samples - 1, _TRIED).astype(np.int64))


def number_of_classes(sampler: Sampler, inputs: NDArray[np.float32] | Rows) -> int:
    """Classes of the model, from one draw for each of a few inputs; a model that cannot be sampled fails here."""
    rows = spread(len(inputs))
    tried = sampler.select(inputs[rows], rows, 1)
    if tried.invalid.sum() == len(rows):
        raise SamplingError(
            f"all {len(rows)} outputs that were tried are invalid (NaN, infinite, or not probabilities of sum 1); "
            "mend the model, or declare outputs as logits if that is what they are"
        )
    return tried.votes.shape[1]


def noisy_inputs(probe: NDArray[np.float32], *, sigma: float, seed: int, noise: str) -> NDArray[np.float32]:
    """Several draws of noise around each of a few inputs, as the model will see them; those of one input together."""
    seen: list[NDArray[np.float32]] = []

    class Listener:
        outputs = "logits"

        def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float64]:
            seen.append(batch.copy())
            return np.zeros((len(batch), 2))

    draws = -(-_NOISY // len(probe))
    listener: Any = Listener()
    sampler = Sampler(listener, sigma=sigma, seed=seed, noise=noise, batch=draws * len(probe))
    sampler.select(probe, np.arange(len(probe)), draws)
    return seen[0]


def check_rows(model: Model, noisy: NDArray[np.float32], batch: int) -> bool:
    """Refuse a model whose answer to an input depends on the other inputs of a full batch, or on the call.

    Every bound here is about independent votes. Noise draws are independent; votes are so if each is a function of its
    own draw. A few inputs are asked in several full batches with other neighbours each time, and in other places.
    Differences of the size of rounding pass: they change a vote only where two outputs all but tie.
    """
    random = np.random.default_rng(0)
    own = np.linspace(0, len(noisy) - 1, _TRIED).astype(np.int64)
    most = 0.0
    for watched in np.array_split(own, -(-_TRIED // max(1, batch // 2))):
        first, *others = _watched_batches(random, watched, len(noisy), batch)
        expected = _ask(model, noisy, *first)
        apart = max(_output_distance(expected, _ask(model, noisy, *each)) for each in others)
        if apart > _ROUNDING:
            again = _output_distance(expected, _ask(model, noisy, *first))
            if again > _ROUNDING:
                raise SamplingError(
                    "the model answers the same batch differently from call to call (relative difference "
                    f"{again:.2g}), so that no draw could be repeated; put it in evaluation mode (dropout in training "
                    "mode does this), or take what is random out of it"
                )
            raise SamplingError(
                "the model's answer to an input changes with the other inputs of its batch (relative difference "
                f"{apart:.2g}), so that votes would not be independent and no certificate would hold; put it in "
                "evaluation mode (batch normalisation in training mode does this), or sample with a batch of 1"
            )
        most = max(most, apart)
    return most == 0


def _watched_batches(
    random: np.random.Generator, watched: NDArray[np.int64], inputs: int, batch: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Numbers of the inputs in each of several batches, and the places of those watched."""
    batches: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for number in range(_BATCHES):
        others = random.integers(0, inputs, batch - len(watched))
        if number % 2:
            others[:] = others[:1]  # copies of one input: as far from a mixture as can be
        places = random.permutation(batch)
        rows = np.empty(batch, np.int64)
        rows[places] = np.concatenate([watched, others])
        batches.append((rows, places[: len(watched)]))
    return batches


def _ask(
    model: Model, noisy: NDArray[np.float32], rows: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The model's outputs in some places of a batch."""
    batch = noisy[rows]
    try:
        return to_numpy(model(batch), "the model's output").astype(np.float64)[places]
    except Exception as error:
        raise SamplingError(f"the model failed on a batch of noisy inputs of shape {batch.shape}: {error}") from error


def _output_distance(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """How far outputs are apart, relative to the row's largest where that is above 1; no number is far from any."""
    if one.shape != two.shape:
        return np.inf
    with np.errstate(invalid="ignore"):
        gap = np.abs(one - two)
    gap[(one == two) | (np.isnan(one) & np.isnan(two))] = 0.0
    gap[~np.isfinite(gap)] = np.inf
    size = np.where(np.isfinite(one), np.abs(one), 0.0).max(axis=1, keepdims=True)
    return float((gap / np.maximum(1.0, size)).max())


def same_in_every_batch(model: Model, probe: NDArray[np.float32], batches: set[int], *, tried: bool = False) -> bool:
    """Whether an input gets the same bits in every place, beside every neighbour, and in batches of the given sizes.

    ``tried`` says that :func:`check_rows` found it so within these sizes: then each is asked once, against its half.
    Only some compositions can be tried; a model for which the answer is no is sampled just as well, but its result
    belongs to the batch size it was computed with.

    Examples
    --------
    >>> from certcal.models import wrap
    >>> probe = np.array([[1.0, 2.0], [0.5, 3.0]], np.float32)
    >>> same_in_every_batch(wrap(lambda batch: batch, outputs="logits"), probe, {4})
    True
    >>> same_in_every_batch(wrap(lambda batch: batch * len(batch), outputs="logits"), probe, {4})
    False
    """
    seen: dict[int, NDArray[Any]] = {}
    for size in sorted({*batches, *(max(1, size // 2) for size in batches)}):
        mixed = np.arange(size) % len(probe)
        for rows in (mixed,) if tried and size in batches else (mixed, mixed[::-1], np.zeros_like(mixed)):
            outputs = np.asarray(model(probe[rows]))
            for row in range(len(probe)):
                found = outputs[rows == row]
                if not len(found):
                    continue
                expected = seen.setdefault(row, found[0])
                if not np.array_equal(found, np.broadcast_to(expected, found.shape), equal_nan=True):
                    return False
    return True
