# pyright: reportUnnecessaryTypeIgnoreComment=true
"""For `make types`: to pyright, and so to editors, every public name is something, and none is a number.

A name of type Any would pass for a number, and what is ignored here would be ignored for nothing.
"""

import certcal


def number(value: int) -> None:
    """Take a number."""


number(certcal.Answer)  # pyright: ignore[reportArgumentType]
number(certcal.Attack)  # pyright: ignore[reportArgumentType]
number(certcal.Bound)  # pyright: ignore[reportArgumentType]
number(certcal.Bounds)  # pyright: ignore[reportArgumentType]
number(certcal.Certificate)  # pyright: ignore[reportArgumentType]
number(certcal.Certification)  # pyright: ignore[reportArgumentType]
number(certcal.CertifiedRecalibration)  # pyright: ignore[reportArgumentType]
number(certcal.ChangeComparison)  # pyright: ignore[reportArgumentType]
number(certcal.Comparison)  # pyright: ignore[reportArgumentType]
number(certcal.Estimate)  # pyright: ignore[reportArgumentType]
number(certcal.InputError)  # pyright: ignore[reportArgumentType]
number(certcal.MappedTable)  # pyright: ignore[reportArgumentType]
number(certcal.Measurement)  # pyright: ignore[reportArgumentType]
number(certcal.Measurements)  # pyright: ignore[reportArgumentType]
number(certcal.PredictionRecalibration)  # pyright: ignore[reportArgumentType]
number(certcal.Predictions)  # pyright: ignore[reportArgumentType]
number(certcal.Progress)  # pyright: ignore[reportArgumentType]
number(certcal.Recalibration)  # pyright: ignore[reportArgumentType]
number(certcal.Reproduction)  # pyright: ignore[reportArgumentType]
number(certcal.Result)  # pyright: ignore[reportArgumentType]
number(certcal.RunSummary)  # pyright: ignore[reportArgumentType]
number(certcal.Training)  # pyright: ignore[reportArgumentType]
number(certcal.Verdict)  # pyright: ignore[reportArgumentType]
number(certcal.Verification)  # pyright: ignore[reportArgumentType]
number(certcal.apply_map)  # pyright: ignore[reportArgumentType]
number(certcal.attack)  # pyright: ignore[reportArgumentType]
number(certcal.attacks)  # pyright: ignore[reportArgumentType]
number(certcal.binning)  # pyright: ignore[reportArgumentType]
number(certcal.bound)  # pyright: ignore[reportArgumentType]
number(certcal.bounds)  # pyright: ignore[reportArgumentType]
number(certcal.calibrators)  # pyright: ignore[reportArgumentType]
number(certcal.certify)  # pyright: ignore[reportArgumentType]
number(certcal.claims)  # pyright: ignore[reportArgumentType]
number(certcal.compare)  # pyright: ignore[reportArgumentType]
number(certcal.data)  # pyright: ignore[reportArgumentType]
number(certcal.decide)  # pyright: ignore[reportArgumentType]
number(certcal.engines)  # pyright: ignore[reportArgumentType]
number(certcal.interop)  # pyright: ignore[reportArgumentType]
number(certcal.lab)  # pyright: ignore[reportArgumentType]
number(certcal.measure)  # pyright: ignore[reportArgumentType]
number(certcal.metrics)  # pyright: ignore[reportArgumentType]
number(certcal.models)  # pyright: ignore[reportArgumentType]
number(certcal.predict)  # pyright: ignore[reportArgumentType]
number(certcal.recalibrate)  # pyright: ignore[reportArgumentType]
number(certcal.report)  # pyright: ignore[reportArgumentType]
number(certcal.reproduce)  # pyright: ignore[reportArgumentType]
number(certcal.sample)  # pyright: ignore[reportArgumentType]
number(certcal.smoothing)  # pyright: ignore[reportArgumentType]
number(certcal.study)  # pyright: ignore[reportArgumentType]
number(certcal.summarize)  # pyright: ignore[reportArgumentType]
number(certcal.torchmetrics)  # pyright: ignore[reportArgumentType]
number(certcal.train)  # pyright: ignore[reportArgumentType]
number(certcal.training)  # pyright: ignore[reportArgumentType]
number(certcal.verification)  # pyright: ignore[reportArgumentType]
number(certcal.verify)  # pyright: ignore[reportArgumentType]
number(certcal.worst_case)  # pyright: ignore[reportArgumentType]
