"""Pictures of samples: every byte comes back, and what is no picture is refused."""

import base64
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from certcal import InputError
from certcal.report.html.png import image, pixels_of, png_of
from tests.report.parsed import parsed


def decoded(content: bytes) -> np.ndarray:
    """The pixels of a PNG file with unfiltered lines, read from its specification."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        kind, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        (check,) = struct.unpack(">I", content[place + 8 + size : place + 12 + size])
        assert check == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, rest) == (8, [0, 0, 0])
    channels = {0: 1, 2: 3}[colour]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert (lines[:, 0] == 0).all()
    pixels = lines[:, 1:].reshape(height, width, channels)
    return pixels[:, :, 0] if channels == 1 else pixels


SHAPES = st.one_of(
    st.tuples(st.integers(1, 9), st.integers(1, 9)), st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3))
)


@given(SHAPES.flatmap(lambda shape: arrays(np.uint8, shape)))
def test_every_pixel_of_a_written_picture_comes_back(pixels: np.ndarray) -> None:
    assert (decoded(png_of(pixels)) == pixels).all()


@pytest.mark.parametrize("pixels", [np.zeros((2, 2, 4)), np.zeros(4, np.uint8), np.zeros((0, 3), np.uint8)])
def test_what_is_no_picture_is_refused(pixels: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"a picture has shape .*pass \(height, width\)"):
        pixels_of(pixels)


def test_a_picture_that_would_swell_the_page_is_thinned() -> None:
    tall = np.arange(1025, dtype=np.uint8)[:, None].repeat(2, axis=1)
    assert (pixels_of(tall) == tall[::3]).all()


def test_channels_may_come_first_or_last() -> None:
    colour = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    assert (pixels_of(colour) == colour).all()
    assert (pixels_of(np.moveaxis(colour, 2, 0)) == colour).all()
    grey = np.arange(20, dtype=np.uint8).reshape(4, 5)
    for shaped in (grey, grey[None], grey[:, :, None]):
        assert (pixels_of(shaped) == grey).all()


def test_values_are_stretched_to_the_full_range_and_missing_ones_are_black() -> None:
    values = np.array([[-1.0, 0.0], [1.0, np.nan]])
    assert pixels_of(values).tolist() == [[0, 128], [255, 0]]
    assert pixels_of(np.full((2, 2), 0.5)).tolist() == [[0, 0], [0, 0]]
    assert pixels_of(np.full((1, 1), np.nan)).tolist() == [[0]]


def test_a_picture_stands_inside_the_page_with_words_in_its_place() -> None:
    found = parsed(image(np.eye(4, 2), 'sample "3" <b>', size=50)).one("img")
    assert found.attributes["alt"] == 'sample "3" <b>'
    assert (found.attributes["width"], found.attributes["height"]) == ("50", "100")
    address = found.attributes["src"] or ""
    pixels = decoded(base64.b64decode(address.removeprefix("data:image/png;base64,")))
    assert (pixels == np.eye(4, 2) * 255).all()
