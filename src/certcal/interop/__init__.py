"""Results where a team keeps its own: MLflow, Lightning, Hugging Face's evaluate.

One module for each, imported by name: ``certcal.interop.mlflow``, ``certcal.interop.lightning``,
``certcal.interop.evaluate``. Each needs the extra of its name, such as ``certcal[mlflow]``.
"""
