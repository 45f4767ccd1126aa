"""The numbers of the papers, per method."""

from __future__ import annotations

from typing import Any

from certcal.training._recipe import Recipe, check_names, known_method

# Attack a whole batch at once, for which a large one is advisable.
_DISTRIBUTIONAL = ("acce-act", "acce-act-star", "exact-act", "exact-act-star", "exact-act-ahead")
_ADVERSARIAL = ("smoothadv", "brier-act", *_DISTRIBUTIONAL)


def recipe(method: str, *, fine_tune: bool | None = None, **changes: Any) -> Recipe:
    """The published recipe of a method, with changes.

    From scratch these are Salman et al. (2019)'s for CIFAR-10 as Emde et al. changed them for Fashion-MNIST (appendix
    J.1.1): 150 epochs of SGD in batches of 256 with learning rate 0.1, momentum 0.9 and weight decay 0.0001, a tenth of
    the learning rate after every third of the epochs, σ rising over 8 epochs, ε zero for 8 epochs and rising over 8.
    Fine-tuning (appendix I.3) takes 10 epochs with ε whole in the third, learning rate 0.01, a tenth of it every 4
    epochs, and batches of 256, or 2048 for adversaries of the calibration error. With fewer epochs the schedules
    shrink: warm-ups take at most a quarter of the epochs from scratch.

    Parameters
    ----------
    method
        See :class:`Recipe`.
    fine_tune
        Whether training begins with trained weights. By default true for the methods that were published that way
        (``brier-act``, ``acce-act``, ``acce-act-star``, ``exact-act``, ``exact-act-star``,
        ``exact-act-ahead``).
    changes
        Any attributes of :class:`Recipe`.

    Examples
    --------
    >>> recipe("brier-act", sigma=0.5, epsilon=1.0).milestones
    (4, 8)
    >>> scratch = recipe("smoothadv", sigma=0.5, epochs=12)
    >>> scratch.milestones, scratch.sigma_warmup, scratch.epsilon_delay, scratch.epsilon_warmup
    ((4, 8), 3, 3, 3)
    """
    check_names(changes)
    name = known_method(method)
    tuning = name in _ADVERSARIAL[1:] if fine_tune is None else fine_tune
    epochs = changes.get("epochs", 10 if tuning else 150)
    schedule = _schedule(name, tuning, epochs if isinstance(epochs, int) else 1)
    return Recipe.from_dict({"epochs": epochs, **_common(name), **schedule, **changes, "method": name})


def _common(name: str) -> dict[str, Any]:
    noisy: dict[str, Any] = {} if name == "standard" else {"sigma": 0.5}
    if name in _ADVERSARIAL:
        noisy |= {"epsilon": 1.0, "draws": 2}
    return {**noisy, "batch": 2048 if name in _DISTRIBUTIONAL else 256}


def _schedule(name: str, tuning: bool, epochs: int) -> dict[str, Any]:
    adversarial = name in _ADVERSARIAL
    if tuning:
        return {
            "learning_rate": 0.01,
            "milestones": tuple(range(4, epochs, 4)),
            "epsilon_warmup": min(3, max(epochs, 1)) if adversarial else 0,
        }
    warm = min(8, epochs // 4)
    thirds = {third for third in (epochs // 3, 2 * epochs // 3) if third}
    return {
        "learning_rate": 0.1,
        "milestones": tuple(sorted(thirds)),
        "sigma_warmup": 0 if name == "standard" else warm,
        **({"epsilon_delay": warm, "epsilon_warmup": warm, "attack_steps": 2} if adversarial else {}),
    }
