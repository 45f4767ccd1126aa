"""Small pictures of samples as PNG, written by hand so that a page needs no image library."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from certcal._checks import InputError
from certcal._html import Raw, element

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST_PIXELS = 512


def png(pixels: Any) -> bytes:
    r"""A picture as the bytes of a PNG file.

    Parameters
    ----------
    pixels
        Bytes of shape (height, width) for grey or (height, width, 3) for colour, up to 512 in each direction.

    Examples
    --------
    >>> import numpy as np
    >>> png(np.zeros((2, 3), np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    array = np.asarray(pixels)
    shaped = array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)
    if array.dtype != np.uint8 or not shaped or 0 in array.shape:
        raise InputError(
            f"pixels have shape {array.shape} and type {array.dtype}; pass uint8 of shape (height, width) or "
            "(height, width, 3)"
        )
    height, width = array.shape[:2]
    if max(height, width) > _MOST_PIXELS:
        raise InputError(f"pixels have shape {array.shape}; pass at most {_MOST_PIXELS} in each direction")
    flat = np.ascontiguousarray(array).reshape(height, -1)
    lines = np.concatenate((np.zeros((height, 1), np.uint8), flat), axis=1)  # every line unfiltered
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if array.ndim == 2 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def to_pixels(image: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Values of an image as bytes for :func:`png`: grey or colour, with the channels first or last.

    Values are stretched so that the darkest is 0 and the brightest 255, unless they are bytes already.

    Examples
    --------
    >>> to_pixels([[[0.0, 0.5], [0.25, 1.0]]]).tolist()
    [[0, 128], [64, 255]]
    """
    array = np.asarray(image)
    if array.ndim == 3 and array.shape[0] in (1, 3) and not (array.shape[2] in (1, 3) and array.shape[0] > 3):
        array = np.moveaxis(array, 0, 2)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.dtype == np.uint8:
        return array
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    span = high - low if high > low else 1.0
    scaled = np.nan_to_num((values - low) / span, nan=0.0, posinf=1.0, neginf=0.0)
    return np.round(np.clip(scaled, 0, 1) * 255).astype(np.uint8)


def image(pixels: Any, alternative: str, *, size: int = 96) -> Raw:
    """A picture as markup, inside the page itself.

    Parameters
    ----------
    pixels
        As for :func:`to_pixels`.
    alternative
        Words that stand for it.
    size
        Width at which it is shown; single pixels stay sharp.

    Examples
    --------
    >>> image([[0, 255]], "two pixels").startswith('<img src="data:image/png;base64,')
    True
    """
    values = to_pixels(pixels)
    address = "data:image/png;base64," + base64.b64encode(png(values)).decode("ascii")
    height = max(1, round(size * values.shape[0] / values.shape[1]))
    return element("img", src=address, alt=alternative, width=size, height=height, class_="pixels")
