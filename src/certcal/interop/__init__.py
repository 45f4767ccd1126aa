"""Results where a team keeps its own, and its models: scikit-learn, MLflow, Lightning, evaluate, torchmetrics.

One module for each, imported by name: ``certcal.interop.sklearn``, ``certcal.interop.mlflow``,
``certcal.interop.lightning``, ``certcal.interop.evaluate``, ``certcal.interop.torchmetrics``. Each needs the extra of
its name, such as ``certcal[mlflow]``; torchmetrics needs ``certcal[torch]``.
"""
