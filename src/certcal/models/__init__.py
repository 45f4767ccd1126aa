"""Classifiers behind one small protocol: float32 inputs in, a row of probabilities or logits per sample out.

Which of the two comes out is declared, never guessed. Files are treated as hostile: checkpoints are read by
``torch.load(weights_only=True)``, and nothing else is ever unpickled.
Importing this room loads NumPy only; ``certcal.models.networks`` needs the extra ``certcal[torch]``.
"""

from __future__ import annotations

from certcal.models._load import Differentiable, differentiable, find_named, load, wrap
from certcal.models._onnx import export_onnx
from certcal.models.protocol import Model, Source

__all__ = ["Differentiable", "Model", "Source", "differentiable", "export_onnx", "find_named", "load", "wrap"]
