"""Small pictures as PNG, written by hand so that a page needs no image library."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from certcal._base.checks import InputError
from certcal.report.html.elements import Raw, element
from certcal.report.html.markup import SENTENCE, clip_middle

_MOST_PIXELS = 512


def image(pixels: Any, alternative: str, *, size: int = 96) -> Raw:
    """A picture as markup, inside the page itself."""
    values = pixels_of(pixels)
    address = "data:image/png;base64," + base64.b64encode(png_of(values)).decode("ascii")
    height = max(1, round(size * values.shape[0] / values.shape[1]))
    return element(
        "img", src=address, alt=clip_middle(alternative, SENTENCE), width=size, height=height, class_="pixels"
    )


def pixels_of(given: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Grey or colour as bytes: the darkest is 0 and the brightest 255, unless they are bytes already."""
    array = np.asarray(given)
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = np.moveaxis(array, 0, 2)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)) or 0 in array.shape:
        raise InputError(f"a picture has shape {array.shape}; pass (height, width) with one or three channels, or none")
    step = -(-max(array.shape[:2]) // _MOST_PIXELS)
    array = array[::step, ::step]
    if array.dtype == np.uint8:
        return array
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    scaled = np.nan_to_num((values - low) / ((high - low) or 1.0), nan=0.0, posinf=1.0, neginf=0.0)
    return np.round(np.clip(scaled, 0, 1) * 255).astype(np.uint8)


def png_of(array: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Pixels as a PNG file."""
    height, width = array.shape[:2]
    lines = np.zeros((height, 1 + array[0].size), np.uint8)  # each line begins with 0: unfiltered
    lines[:, 1:] = array.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if array.ndim == 2 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
