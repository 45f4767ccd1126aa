"""Results where a team keeps its own: MLflow, Lightning, Hugging Face's evaluate, torchmetrics.

One module for each, imported by name: ``certcal.interop.mlflow``, ``certcal.interop.lightning``,
``certcal.interop.evaluate``, ``certcal.interop.torchmetrics``. Each needs the extra of its name, such as
``certcal[mlflow]``; torchmetrics needs ``certcal[torch]``.
"""
