"""Pictures of every mode become pixels; what is no picture, damaged or far too large is named."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seqwise.data.pictures import BARS, decode, fitted, glance
from seqwise.errors import DataError


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def ramp(height: int = 6, width: int = 5, channels: int = 3) -> np.ndarray:
    random = np.random.default_rng(0)
    return random.integers(0, 256, size=(height, width, channels), dtype=np.uint8)


# -- modes ---------------------------------------------------------------------------------------------------------


def test_colour_and_grey_are_as_they_were() -> None:
    pixels = ramp()
    assert np.array_equal(decode(encoded(Image.fromarray(pixels)), "x"), pixels)
    grey = pixels[..., :1]
    assert np.array_equal(decode(encoded(Image.fromarray(grey[..., 0])), "x"), grey)


def test_one_bit_is_black_and_white() -> None:
    image = Image.fromarray(np.array([[0, 255], [255, 0]], dtype=np.uint8)).convert("1")
    assert decode(encoded(image), "x")[..., 0].tolist() == [[0, 255], [255, 0]]


def test_a_palette_is_looked_up() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((1, 0), 1)
    assert decode(encoded(image), "x").tolist() == [[[10, 20, 30], [200, 100, 50]]]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white(mode: str) -> None:
    image = Image.new("RGBA", (2, 1), (0, 0, 0, 255))
    image.putpixel((1, 0), (0, 0, 0, 0))
    if mode == "P":
        image = Image.new("P", (2, 1))
        image.putpalette([0, 0, 0, 9, 9, 9])
        image.putpixel((1, 0), 1)
        content = encoded(image, transparency=1)
    else:
        content = encoded(image.convert(mode))
    found = decode(content, "x")
    assert found.shape == (1, 2, 1 if mode == "LA" else 3)
    assert found[0, 0].tolist() == [0] * found.shape[2]
    assert found[0, 1].tolist() == [255] * found.shape[2]


def test_cmyk_becomes_colour() -> None:
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))  # red
    red, green, blue = decode(encoded(image, "JPEG", quality=100), "x")[4, 4].tolist()
    assert red > 230
    assert green < 40
    assert blue < 40


def test_sixteen_bits_become_eight() -> None:
    values = np.array([[0, 255, 256, 32768, 65535]], dtype=np.uint16)
    found = decode(encoded(Image.fromarray(values)), "x")
    assert found[..., 0].tolist() == [[0, 0, 1, 128, 255]]
    assert glance(encoded(Image.fromarray(values)), "x").is_grey


def test_numbers_that_may_mean_anything_are_refused() -> None:
    with pytest.raises(DataError, match=r"^a.tif: its pixels are 32-bit numbers"):
        decode(encoded(Image.fromarray(np.ones((2, 2), dtype=np.float32)), "TIFF"), "a.tif")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_as_the_camera_noted(orientation: int) -> None:
    """The note says which side of what is seen the first row and the first column stored are."""
    upright = ramp(4, 6)
    turned = upright.transpose(1, 0, 2)
    stored = {
        1: upright,
        2: upright[:, ::-1],  # first column: right
        3: upright[::-1, ::-1],  # first row: bottom, first column: right
        4: upright[::-1],
        5: turned,  # first row: left, first column: top
        6: turned[::-1],  # first row: right, first column: top
        7: turned[::-1, ::-1],
        8: turned[:, ::-1],  # first row: left, first column: bottom
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(Image.fromarray(np.ascontiguousarray(stored)), exif=exif.tobytes())
    assert np.array_equal(decode(content, "x"), upright)
    seen = glance(content, "x")
    assert (seen.height, seen.width) == (4, 6)


@pytest.mark.parametrize("note", [0, 9, 77])
def test_a_note_that_means_nothing_turns_nothing(note: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = note
    assert np.array_equal(decode(encoded(Image.fromarray(ramp()), exif=exif.tobytes()), "x"), ramp())


def test_of_an_animated_picture_the_first_frame_is_read() -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    content = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert glance(content, "x").is_animated
    assert not glance(encoded(frames[0]), "x").is_animated
    assert decode(content, "x")[0, 0].tolist() == [255, 0, 0]


# -- what is wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_a_file_that_is_cut_off_is_named(form: str) -> None:
    content = encoded(Image.fromarray(ramp(64, 64)), form)
    with pytest.raises(DataError, match=r"^photos/7: a damaged or cut-off picture .*Get it again, or leave it out\.$"):
        decode(content[: len(content) // 2], "photos/7")


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "PPM"])
def test_damage_anywhere_is_told_or_read_but_never_ours(form: str) -> None:
    content = encoded(Image.fromarray(ramp(24, 24)), form)
    random, num_read = np.random.default_rng(1), 0
    for _ in range(60):
        broken = bytearray(content)
        for place in random.integers(0, len(broken), size=4).tolist():
            broken[place] = int(random.integers(256))
        with suppress(DataError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            num_read += decode(bytes(broken), "x").dtype == np.uint8
    assert num_read < 60


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"A dog runs across the grass.\n", "it is text"),
        (b"", "it is empty"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "PostScript, which is a program and is not run here"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG drawing"),
        (b"\x00\x00\x00\x20ftypheic", "a film, or a picture of a phone"),
        (b"\x01\x02\x03\x04", "a format that is not known"),
    ],
)
def test_what_is_no_picture_is_told(content: bytes, what: str) -> None:
    with pytest.raises(DataError) as caught:
        decode(content, "7.jpg")
    assert str(caught.value).startswith("7.jpg: is no picture that can be read: ")
    assert what in str(caught.value)


def bomb(width: int, height: int) -> bytes:
    """A small file that claims to be a large picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [9_000, 12_000, 60_000])
def test_a_bomb_is_not_unpacked(side: int) -> None:
    """Below and above the limits at which Pillow warns or refuses by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for read in (decode, glance):
            with pytest.raises(
                DataError, match=r"^b.png: .* more than 80,000,000\. Make it smaller, or leave it out\.$"
            ):
                read(bomb(side, side), "b.png")


# -- sizes ---------------------------------------------------------------------------------------------------------


def test_a_panorama_and_a_single_pixel_are_fitted() -> None:
    panorama = np.full((40, 20_000, 3), 200, dtype=np.uint8)
    found = fitted(decode(encoded(Image.fromarray(panorama), "JPEG"), "x"), 128, 128, 3, "contain")
    rows = np.flatnonzero((found != BARS).any(axis=(1, 2)))
    assert rows.tolist() == [63]
    assert found.shape == (128, 128, 3)
    one = np.array([[[7, 8, 9]]], dtype=np.uint8)
    assert (fitted(decode(encoded(Image.fromarray(one)), "x"), 16, 16, 3, "contain") == one).all()


@pytest.mark.parametrize("fit", ["contain", "cover", "stretch"])
def test_pictures_of_the_right_size_are_not_touched(fit: str) -> None:
    pixels = ramp(8, 8)
    assert fitted(pixels, 8, 8, 3, fit) is pixels


def test_fits_keep_all_of_it_or_its_middle_or_its_edges() -> None:
    wide = np.zeros((10, 20, 3), dtype=np.uint8)
    wide[:, :5], wide[:, 5:15], wide[:, 15:] = (250, 0, 0), (0, 250, 0), (0, 0, 250)
    contained, covered, stretched = (fitted(wide, 20, 20, 3, fit) for fit in ("contain", "cover", "stretch"))
    assert (contained[:5] == BARS).all()
    assert (contained[15:] == BARS).all()
    assert np.array_equal(contained[5:15], wide)
    assert (covered[:, 5:-5] == (0, 250, 0)).all()
    assert (stretched[:, :3] == (250, 0, 0)).all()
    assert (stretched[:, -3:] == (0, 0, 250)).all()


def test_colour_is_dropped_or_made_up() -> None:
    colour = ramp(4, 4)
    grey = fitted(colour, 4, 4, 1, "contain")
    weights = colour @ np.array([0.299, 0.587, 0.114])  # ITU-R 601
    assert np.abs(grey[..., 0] - weights).max() <= 1
    assert np.array_equal(fitted(grey, 4, 4, 3, "contain"), grey.repeat(3, axis=2))


def test_a_large_jpeg_is_decoded_to_about_what_is_needed() -> None:
    content = encoded(Image.fromarray(np.full((512, 640, 3), 90, dtype=np.uint8)), "JPEG")
    assert decode(content, "x").shape == (512, 640, 3)
    height, width, _ = decode(content, "x", (64, 64)).shape
    assert 64 <= height < 512
    assert 64 <= width < 640
