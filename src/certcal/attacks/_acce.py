"""The ACCE adversary: ADMM in the batch, with inputs in the place of confidences (Emde et al. 2024, appendix F)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from certcal._base.checks import positive
from certcal.attacks._protocol import Found, Keep, Target
from certcal.attacks.admm import (
    AdmmProgram,
    AdmmState,
    ascend_duals,
    residuals,
    update_assignment,
    update_binary_variables,
)
from certcal.attacks.ball import Ball, wide
from certcal.attacks.confidence import CalibrationAdversary, HeldConfidences, bin_edges, locate

# Where ρ stops growing, and the largest entry of the gradient of a (appendix G.2).
RHO_CEILING = 10.0
GRADIENT_CLIP = 5.0


@dataclass(frozen=True)
class AcceAdversary(CalibrationAdversary):
    """Raises the relaxed calibration error Σ_m |Σ_n a_nm (c_n - z_n)| of a batch over inputs and assignments a.

    Algorithm 2 of Emde et al. (2024). Every step moves the inputs along the gradient for the assignment at hand, then
    takes a gradient step on the assignment (with the clips of appendix G.2), eqs. (28) and (29) for the variables that
    make it binary, and a step on the dual variables. z is the confidence in the class predicted for the clean input
    and c whether that is the true one, both held fixed. Kept as best is the point with the largest plain calibration
    error of the batch, which the relaxed one stands for.

    Attributes
    ----------
    steps
        Number of steps T.
    scale
        Factor v of the step length 2vε/T.
    bins
        Number of equal-width bins.

    Examples
    --------
    >>> target = Target(lambda x: torch.cat((x, torch.zeros_like(x)), 1))
    >>> inputs, labels = torch.tensor([[0.5], [0.75]]), torch.tensor([0, 0])
    >>> found = AcceAdversary(steps=2)(target, inputs, labels, Ball(0.25))
    >>> found.inputs  # both are right, so both confidences are lowered
    tensor([[0.2500],
            [0.5000]])
    """

    sigma: float | None = None
    """Standard deviation of the smoothing noise: bins outside the standard certificate around the clean confidence are
    inaccessible. None for a network that is not smoothed, of which nothing is known: all bins are accessible. (The
    certificate is that of the ℓ2 ball; for ``norm="linf"`` all bins are accessible too.)"""
    rho: float = 0.01
    rho_growth: float = 1.1
    """First ρ of all four constraints, and the factor by which it grows in every step, up to 10. Appendix I.3 tries
    "the factor in the multiplicative schedule" in {.01, .05, .1, .5}, which "governs how early the constraints will be
    enforced"; that is read as the relative increase per step, so factors 1.01 to 1.5 here (appendix G.3 writes 0.4 %
    for 1.004 in the same way)."""
    assignment_rate: float = 0.1
    """Learning rate of a."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rho", "rho_growth", "assignment_rate"):
            positive(getattr(self, name), name)
        if self.sigma is not None:
            positive(self.sigma, "sigma")

    def __call__(self, target: Target, inputs: Tensor, labels: Tensor, ball: Ball, keep: Keep = "best") -> Found:
        """Perturbed inputs; see :class:`Adversary`."""
        held = HeldConfidences(labels)
        admm: Admm | None = None

        def relaxed_error(log_probabilities: Tensor, step: int) -> Tensor:
            nonlocal admm
            confidence = held(log_probabilities)
            if admm is None:
                admm = begin_admm(self, confidence.detach(), held.correct, self._inaccessible_bins(confidence, ball))
            assignment = admm.state.a[0]
            admm.advance(confidence.detach())
            return error_at(assignment, confidence, held.correct).sum()

        found = self.climb(target, inputs, ball, relaxed_error, self.error(held), keep)
        assert admm is not None
        final = admm.state.a[0]
        return Found(found, lambda lp: error_at(final, held(lp), held.correct).sum() / inputs.shape[0])

    def _inaccessible_bins(self, confidence: Tensor, ball: Ball) -> Tensor:
        """Bins that are inaccessible (M, N), from the clean confidences."""
        edges = bin_edges(self.bins, confidence)
        if self.sigma is None or ball.norm != "l2":
            return torch.zeros(self.bins, confidence.shape[0], dtype=torch.bool, device=confidence.device)
        low, high = reachable(confidence, ball.epsilon / self.sigma)
        return inaccessible(low.to(confidence), high.to(confidence), edges)


@dataclass(eq=False)
class Admm:
    """The assignments of a batch, whose confidences come from the network."""

    program: AdmmProgram
    state: AdmmState

    def advance(self, confidence: Tensor) -> None:
        """The updates of a, q₁, q₂, λ₁ … λ₄ and ρ at the given confidences, in the order of algorithm 2.

        There is no constraint on z here, so its residual and λ₅ stay 0.
        """
        self.state.z = self.state.g = confidence.reshape(1, 1, -1)
        update_assignment(self.program, self.state)
        update_binary_variables(self.state)
        ascend_duals(self.program, self.state)


def begin_admm(settings: AcceAdversary, confidence: Tensor, correct: Tensor, blocked: Tensor) -> Admm:
    """Start of algorithm 2: a = q₁ = q₂ = 1/M, λ = 0; a sample's one confidence stands for its copies in all bins."""

    def number(value: float) -> Tensor:
        return confidence.new_full((1, 1, 1), value)

    k = blocked.to(confidence)
    nothing = torch.zeros_like(k)
    program = AdmmProgram(
        lower=nothing,  # no bounds on z: it is what the network says
        upper=nothing,
        blocked=k,
        correct=correct,
        assignment_rate=number(settings.assignment_rate),
        confidence_rate=number(0.0),
        gradient_clip=number(GRADIENT_CLIP),
        rho_growth=number(settings.rho_growth),
        rho_ceiling=number(RHO_CEILING),
    )
    z = confidence.reshape(1, 1, -1)
    a = torch.full_like(k, 1 / settings.bins).unsqueeze(0)
    residual = residuals(program, a, z, z, a, a)
    first, second, third, fourth, fifth = (torch.zeros_like(each) for each in residual)
    return Admm(
        program, AdmmState(a, z, z, a, a, residual, (first, second, third, fourth, fifth), number(settings.rho))
    )


def error_at(assignment: Tensor, confidence: Tensor, correct: Tensor) -> Tensor:
    """|Σ_n a_nm (c_n - z_n)| of every bin, for assignments (M, N)."""
    return (assignment @ (correct - confidence)).abs()


def inaccessible(low: Tensor, high: Tensor, edges: Tensor) -> Tensor:
    """Whether bin m is out of reach of sample n, (M, N): k of §3.3. The bin that holds the lower end never is."""
    blocked = torch.maximum(low, edges[:-1, None]) >= torch.minimum(high, edges[1:, None])
    return blocked.scatter(0, locate(low, edges).unsqueeze(0), False)


def reachable(confidence: Tensor, shift: float) -> tuple[Tensor, Tensor]:
    """Ends of what a smoothed confidence can become, [Φ(Φ⁻¹(z) - shift), Φ(Φ⁻¹(z) + shift)], shift = distance / σ.

    That is the standard certificate (Kumar et al. 2020) with the confidence taken as it was estimated, from few draws
    and without abstaining: it steers an attack and certifies nothing. Estimates of exactly 0 or 1, which no smoothed
    classifier has, count as 2⁻²⁴ less extreme.
    """
    at = math.sqrt(2) * torch.erfinv(2 * wide(confidence.detach()).clamp(2.0**-24, 1 - 2.0**-24) - 1)
    low, high = (0.5 * torch.erfc((way * shift - at) / math.sqrt(2)) for way in (1, -1))
    return low, high
