"""A picture file -> its pixels, (H, W, C) uint8, C being 1 (grey) or 3 (colour).

Formats   those that Pillow decodes by itself; none that starts another program, as EPS starts Ghostscript
modes     palettes and CMYK become red, green and blue; transparent parts become white; 16 bits become 8
turned    by the orientation that a camera noted
animated  the first frame; `glance` says so
too large more than 80 million pixels are not unpacked

Shapes: H height, W width, C channels.
"""

from __future__ import annotations

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
from PIL import Image, UnidentifiedImageError

from ..errors import DataError

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")

UNCOMPRESSED = (".bmp", ".ppm", ".pgm", ".pbm", ".tif", ".tiff", ".npy")
MAX_PIXELS = 80_000_000
GREY_MODES = ("1", "L", "LA", "La", "I", "F")
"""And those of 16 bits, which begin with I;16."""
BARS = 128  # what is beside a picture that has another shape: neither dark nor bright
ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""By the orientation that is noted: what makes it upright."""
OTHERS = {  # what files of other kinds begin with
    b"%!PS": "PostScript, which is a program and is not run here",
    b"\xc5\xd0\xd3\xc6": "PostScript, which is a program and is not run here",
    b"%PDF": "a PDF document",
    b"<svg": "an SVG drawing",
    b"<?xml": "XML, perhaps an SVG drawing",
    b"PK\x03\x04": "a .zip archive",
    b"\x00\x00\x00": "a film, or a picture of a phone (HEIC, AVIF)",
}
DAMAGES = (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, struct.error, zlib.error)
"""What decoders raise on files that are damaged."""

_filters = threading.Lock()


@dataclass(frozen=True)
class Glance:
    """What the beginning of a file tells."""

    width: int
    height: int
    """As it is seen: turned, where the file says so."""
    is_grey: bool
    is_animated: bool = False


def glance(content: bytes, name: str) -> Glance:
    with _opened(content, name) as image:
        width, height = image.size
        if _orientation(image) >= 5:
            width, height = height, width
        return Glance(width, height, _is_grey(image), bool(getattr(image, "is_animated", False)))


def decode(content: bytes, name: str, at_least: tuple[int, int] | None = None) -> np.ndarray:
    """The pixels of a file, (H, W, C). Where `at_least` (height, width) is all that is needed, a JPEG is decoded to
    about that size, which is faster."""
    with _opened(content, name) as image:
        if at_least is not None and image.format == "JPEG":
            side = max(at_least)  # it may still be turned
            image.draft(None, (side, side))
        image.load()
        turn = TURNS.get(_orientation(image))
        pixels = np.asarray(_plain(image if turn is None else image.transpose(turn), name))
    return pixels[..., None] if pixels.ndim == 2 else pixels


@contextmanager
def _opened(content: bytes, name: str) -> Iterator[Image.Image]:
    """A file of a known format and a sensible size; what goes wrong until it is closed is told with its name."""
    try:
        with _quietly():  # what would be warned of is refused below
            image = Image.open(io.BytesIO(content), formats=FORMATS)
        with image:
            if image.width * image.height > MAX_PIXELS:
                raise _too_large(name, f"{image.width:,} x {image.height:,} pixels")
            if min(image.size) < 1:
                raise DataError(f"{name}: a picture of {image.width} x {image.height} pixels has nothing to be seen.")
            yield image
    except DataError:
        raise
    except Image.DecompressionBombError:
        raise _too_large(name, "so many pixels that it may be made to fill the memory:") from None
    except UnidentifiedImageError:
        raise DataError(f"{name}: is no picture that can be read: {_found_in(content)}. {_ADVICE}") from None
    except DAMAGES as error:
        raise DataError(f"{name}: a damaged or cut-off picture ({error}). Get it again, or leave it out.") from None


@contextmanager
def _quietly() -> Iterator[None]:
    """Without Pillow's warnings of odd notes in a file. Filters are shared by all workers: one of them at a time."""
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _orientation(image: Image.Image) -> int:
    """As the camera noted it, 1 to 8; 1 is upright, and what is assumed where the note is damaged."""
    with _quietly(), suppress(*DAMAGES):
        found = image.getexif().get(ORIENTATION, 1)
        return found if found in TURNS else 1
    return 1


_ADVICE = "Pictures are read from JPEG, PNG, GIF, BMP, WebP, TIFF and PPM; convert it, or leave it out."


def _too_large(name: str, found: str) -> DataError:
    return DataError(f"{name}: {found}, more than {MAX_PIXELS:,}. Make it smaller, or leave it out.")


def _found_in(content: bytes) -> str:
    if not content:
        return "it is empty"
    for beginning, what in OTHERS.items():
        if content.lstrip()[: len(beginning)] == beginning:
            return f"it is {what}"
    start = content[:200]
    is_text = all(byte >= 32 or byte in b"\t\r\n" for byte in start)
    return "it is text" if is_text else "it is of a format that is not known"


def _is_grey(image: Image.Image) -> bool:
    return image.mode in GREY_MODES or image.mode.startswith("I;16")


def _plain(image: Image.Image, name: str) -> Image.Image:
    """In mode L or RGB."""
    if image.mode in ("L", "RGB"):
        if "transparency" not in image.info:
            return image
    elif image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _eight_bits(image, name)
    grey = _is_grey(image)
    if image.mode in ("LA", "La", "RGBA", "RGBa", "PA") or "transparency" in image.info:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, "white")
        return Image.alpha_composite(white, seen).convert("L" if grey else "RGB")
    return image.convert("L" if grey else "RGB")


def _eight_bits(image: Image.Image, name: str) -> Image.Image:
    values = np.asarray(image)
    if image.mode == "F" or values.min(initial=0) < 0 or values.max(initial=0) > 65_535:
        raise DataError(f"{name}: its pixels are 32-bit numbers, which may mean anything. Convert it to 8 or 16 bits.")
    is_wide = image.mode.startswith("I;16") or values.max(initial=0) > 255
    return Image.fromarray((values >> 8 if is_wide else values).astype(np.uint8))


def fitted(pixels: np.ndarray, height: int, width: int, channels: int, fit: str) -> np.ndarray:
    """A picture (H, W, C) in another size and colour: (height, width, channels).

    contain: all of it, between bars; cover: its middle; stretch: all of it, out of proportion.
    """
    if pixels.shape == (height, width, channels):
        return pixels
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    image = image.convert("L" if channels == 1 else "RGB")
    if image.size != (width, height):
        image = FITTINGS[fit](image, width, height)
    return np.asarray(image).reshape(height, width, channels)


def _contain(image: Image.Image, width: int, height: int) -> Image.Image:
    share = min(width / image.width, height / image.height)
    w, h = (max(1, min(most, round(side * share))) for side, most in zip(image.size, (width, height), strict=True))
    canvas = Image.new(image.mode, (width, height), BARS if image.mode == "L" else (BARS,) * 3)
    canvas.paste(_resized(image, w, h), ((width - w) // 2, (height - h) // 2))
    return canvas


def _cover(image: Image.Image, width: int, height: int) -> Image.Image:
    share = max(width / image.width, height / image.height)
    w, h = min(image.width, width / share), min(image.height, height / share)  # what is left of it, in its own pixels
    left, top = (image.width - w) / 2, (image.height - h) / 2
    return image.resize((width, height), Image.Resampling.BICUBIC, box=(left, top, left + w, top + h))


def _resized(image: Image.Image, width: int, height: int) -> Image.Image:
    return image.resize((width, height), Image.Resampling.BICUBIC)


FITTINGS = {"contain": _contain, "cover": _cover, "stretch": _resized}
