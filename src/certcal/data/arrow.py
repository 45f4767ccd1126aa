"""pyarrow without its types: it ships none, so here it is ``Any`` once instead of everywhere."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

pa: Any = import_module("pyarrow")
compute: Any = import_module("pyarrow.compute")


def to_numpy(array: Any) -> NDArray[Any]:
    """View a column of numbers without missing values as NumPy; true/false is copied.

    pyarrow's own conversion imports pandas wherever that is installed, which takes longer than reading most tables.
    """
    if pa.types.is_boolean(array.type):
        return np.from_dlpack(array.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(array)


def from_numpy(array: NDArray[Any]) -> Any:
    """View contiguous numbers as a column, and a matrix as a column of lists; true/false is copied."""
    flat = array.reshape(-1)
    plain = flat.view(np.uint8) if flat.dtype == np.bool_ else flat
    column = pa.Array.from_buffers(pa.from_numpy_dtype(plain.dtype), plain.size, [None, pa.py_buffer(plain)])
    column = column.cast(pa.bool_()) if flat.dtype == np.bool_ else column
    return column if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(column, array.shape[1])
