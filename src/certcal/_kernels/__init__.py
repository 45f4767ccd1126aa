"""Loops over arrays, compiled when that pays. Nothing here checks its input; import these modules inside functions."""

from certcal._kernels._compile import when_compiling

__all__ = ["when_compiling"]
