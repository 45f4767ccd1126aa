"""Where the tests keep what they log: MLflow's own stores, in a folder."""

from pathlib import Path

import pytest


def use_store(patch: pytest.MonkeyPatch, uri: str) -> None:
    """Point MLflow at a store for a test, through its environment, as users do."""
    patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    patch.setenv("MLFLOW_TRACKING_URI", uri)
    for name in ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"):
        patch.delenv(name, raising=False)


def use_folder(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The store that is cheapest to set up; MLflow wants to be told that it is meant."""
    patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    use_store(patch, folder.as_uri())
