"""Compiled loops. Nothing here checks its input; import these modules inside functions (numba loads slowly)."""
