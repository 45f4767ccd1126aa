"""Serving perturbed scores: the noise that a bound on them assumes, kept in one object with the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from certcal._base.checks import InputError, confidences, score_pair
from certcal.bounds import choose_bandwidth, perturb, smooth
from certcal.calibrators._base import Calibrator, number
from certcal.calibrators.scores import Floats
from certcal.claims import Bound
from certcal.models import Model, wrap

_LIMITS = (1e-9, 1000.0)  # of a bandwidth, as for bounds.perturb
# Tells the stream of a given seed from that of scores drawn with the same one.
_SERVED = 2


class PerturbedScores(Calibrator):
    """Scores with fresh noise on each, by :func:`certcal.bounds.perturb`: what :func:`certcal.bounds.smooth` is about.

    The bound on perturbed scores says nothing about those before the noise, so the scores that are *used* need the same
    noise. This keeps its bandwidth and scale; :func:`certcal.calibrators.save` writes them to a file, and
    :meth:`bound` bounds what is served and nothing else. Every call draws new noise: answer each request once, and keep
    the answer, since averaging over several undoes what is claimed.

    Parameters
    ----------
    bandwidth
        h. By default ``fit`` chooses the largest that costs little: :func:`certcal.bounds.choose_bandwidth`.
    tolerance
        Largest fall of AUROC, where the bandwidth is chosen.
    scale
        Scale of the noise: "probability" or "logit".
    seed
        None for noise that nobody can foresee; a whole number to repeat a study.

    Attributes
    ----------
    bandwidth_
        That of the noise. Samples that it was chosen with must not be those of :meth:`bound`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(40_000)
    >>> y = rng.random(s.size) < s
    >>> noise = PerturbedScores(seed=1).fit(s[:10_000], y[:10_000])
    >>> served = noise.predict(s[10_000:])
    >>> round(noise.bandwidth_, 3), bool(abs(served - s[10_000:]).max() > 0.1)
    (0.014, True)
    >>> print(noise.bound(s[10_000:], y[10_000:]).text)
    0.0310
    """

    _choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"scale": ("probability", "logit")}
    _kept: ClassVar = {"bandwidth": _LIMITS}

    def __init__(
        self,
        bandwidth: float | None = None,
        tolerance: float = 0.001,
        scale: str = "probability",
        seed: int | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.tolerance = tolerance
        self.scale = scale
        self.seed = seed

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take the bandwidth that was given, or choose one.

        Parameters
        ----------
        scores
            Probabilities of outcome 1 before the noise.
        y
            Outcomes, 0 or 1.
        sample_weight
            None: a bandwidth is chosen with samples of equal weight.
        """
        scale = self._check_choice("scale")
        s, outcomes, weight = score_pair(scores, y, sample_weight)
        if weight is not None:
            raise InputError("a bandwidth is chosen with samples of equal weight; leave the weights out")
        h = self.bandwidth
        if h is None:
            h = choose_bandwidth(s, outcomes, self.tolerance, scale=scale).bandwidth
        perturb(s[:1], h, 0, scale=scale)  # which checks it
        self.bandwidth_, self._generator = float(h), None
        return self

    def predict(self, scores: Any) -> Floats:
        """Scores with noise, new in every call.

        Parameters
        ----------
        scores
            Probabilities of outcome 1, one per sample.
        """
        self._require_fitted()
        if self._generator is None:
            self._generator = np.random.default_rng(None if self.seed is None else [self.seed, _SERVED])
        return perturb(confidences(scores, "scores"), self.bandwidth_, self._generator, scale=self.scale)

    def bound(self, scores: Any, outcomes: Any, delta: float = 0.05, *, seed: int = 0) -> Bound:
        """:func:`certcal.bounds.smooth` of the classifier that serves these perturbed scores.

        Parameters
        ----------
        scores
            Before the noise, of samples that had no part in training or in the choice of the bandwidth.
        outcomes
            0 or 1.
        delta
            Probability with which the bound may fail.
        seed
            Of the noise on these samples.
        """
        self._require_fitted()
        return smooth(scores, outcomes, self.bandwidth_, delta, perturb=True, seed=seed, scale=self.scale)

    @classmethod
    def _param(cls, name: str, value: Any) -> Any:
        if name == "bandwidth" and value is not None:
            return number({name: value}, name, *_LIMITS)
        if name == "seed" and value is not None and (type(value) is not int or value < 0):
            raise InputError(f"seed is {value!r}; expected a whole number from 0, or none")
        return super()._param(name, value)

    _generator: np.random.Generator | None = None


class PerturbedModel:
    """A model of two classes that answers with perturbed scores: a :class:`certcal.models.Model` itself.

    Parameters
    ----------
    model
        Anything that :func:`certcal.models.wrap` takes, or a model that :func:`certcal.models.load` gave.
    noise
        A fitted :class:`PerturbedScores`, or a bandwidth.
    outputs
        What the model returns, where it does not say so itself.

    Examples
    --------
    >>> served = PerturbedModel(lambda batch: np.array([[0.0, 2.0]] * len(batch)), 0.05, outputs="logits")
    >>> served(np.zeros((3, 1), np.float32)).shape, served.description.partition(", ")[2]
    ((3, 2), 'scores perturbed with bandwidth 0.05')
    """

    outputs: Literal["probabilities"] = "probabilities"
    source: None = None

    def __init__(
        self, model: object, noise: PerturbedScores | float, outputs: Literal["probabilities", "logits"] | None = None
    ) -> None:
        self.model = model if isinstance(model, Model) and outputs is None else wrap(model, outputs)
        self.noise = noise if isinstance(noise, PerturbedScores) else PerturbedScores(noise).fit([0.5, 0.5], [0, 1])
        self.noise._require_fitted()  # pyright: ignore[reportPrivateUsage]

    @property
    def description(self) -> str:
        """The model's, with the noise."""
        where = " on the logit scale" if self.noise.scale == "logit" else ""
        return f"{self.model.description}, scores perturbed with bandwidth {self.noise.bandwidth_:g}{where}"

    def scores(self, batch: Any) -> Floats:
        """Probabilities of the second class before the noise: for :meth:`PerturbedScores.bound`, not for use."""
        found = np.asarray(self.model(np.asarray(batch, np.float32)), np.float64)
        if found.ndim != 2 or found.shape[1] != 2:
            raise InputError(
                f"the model gives outputs of shape {found.shape}; give one with two columns, one per class"
            )
        if self.model.outputs == "probabilities":
            return found[:, 1].clip(0.0, 1.0)
        return np.asarray(1 / (1 + np.exp((found[:, 0] - found[:, 1]).clip(-700, 700))), np.float64)

    def __call__(self, batch: Any) -> NDArray[Any]:
        """Probabilities of the two classes, the second one perturbed."""
        found = self.noise.predict(self.scores(batch))
        return np.stack((1 - found, found), axis=1)

    def fingerprint(self, probe: NDArray[np.float32]) -> str:
        """Fingerprint of the model and its noise."""
        about = [self.model.fingerprint(probe), self.noise.bandwidth_, self.noise.scale]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()
