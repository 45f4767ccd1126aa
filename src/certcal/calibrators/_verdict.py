"""Whether recalibrated confidences carry information that survives, in words."""

from __future__ import annotations

from certcal.calibrators._recalibrate import Recalibration
from certcal.claims import short_text


def verdict(found: Recalibration, radius: int = -1) -> str:
    """Say whether the recalibrated confidences are certified to beat one constant confidence on the held-out samples.

    The first sentence is exact about the held-out samples whose certificates hold. What follows about the population is
    the bound of :func:`certcal.calibrators.gain_over`, with the constant that comes from the samples of the fit.

    Parameters
    ----------
    found
        From :func:`certcal.calibrators.recalibrate`.
    radius
        Its place among the radii; the last, the largest, when not given.

    Examples
    --------
    >>> from certcal.calibrators import CertifiedSamples, recalibrate
    >>> samples = CertifiedSamples.from_intervals([0.1, 0.5] * 200, [0.4, 0.9] * 200, [0, 1] * 200, radii=[0.5])
    >>> print(verdict(recalibrate(samples, tradeoff=1)).split(" In the population")[0])
    At radius 0.5, the recalibrated confidences carry information that is certified to survive the attack: on 200
    certified held-out samples they beat every constant confidence, with a certified skill of at least 0.9999 (as they
    were: 0.1738).
    """
    before, after = found.identity.at[radius], found.chosen.at[radius]
    information = after.summary.information
    if information.finding == "undefined":
        return information.verdict_at(after.radius or None)
    where = f"At radius {after.radius}" if after.radius else "Inside the given intervals"
    where += ", the recalibrated confidences"
    samples = f"{information.n:,} certified held-out sample{'' if information.n == 1 else 's'}"
    skill = f"{information.skill.text} (as they were: {before.summary.skill.text})"
    if information.finding != "as they are":
        said = f"{where} are not certified to beat one constant confidence: on {samples} their certified skill is "
        said += f"at least {skill}."
        return f"{said} Nor is any non-decreasing map of them." if information.finding == "nothing" else said
    said = (
        f"{where} carry information that is certified to survive{' the attack' if after.radius else ''}: on {samples} "
        f"they beat every constant confidence, with a certified skill of at least {skill}."
    )
    gain = after.gain
    if gain is None or gain.value <= 0:
        return f"{said} Whether they do in the population is left open by its bound."
    return (
        f"{said} In the population, where certified, their certified Brier score is at least {gain.text} below that of "
        f"one constant, the accuracy of the certified samples of the fit ({gain.settings['constant']:.4f}), except "
        f"with probability {short_text(gain.delta, 'upper')}."
    )
