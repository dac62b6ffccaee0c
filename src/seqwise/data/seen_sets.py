"""Sets of pictures that have a name, as they are published: their parts, their pictures, and what is said of them.

mnist, fashion_mnist    IDX files; the last 5,000 of the training part validate
mnist:translated        each digit somewhere on a black picture of 60 x 60; fashion_mnist too
cifar10                 two archives of folders
flickr8k                five captions a picture
multi30k-images:de      pictures of Flickr8k, in its parts, with the sentence of Multi30k in en, de, fr or cs
easy_vqa                questions on drawn shapes
vqa_rad                 questions on radiology pictures; vqa_rad:closed, those alone that have few possible answers
msvd                    clips as features of their frames; those of five are at hand, none of which has captions
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ..errors import DataError
from ..wording import counted
from .files import lines_of, read_text
from .label_folders import one_line
from .picture_sources import ArrayPictures, DrawnPictures, JoinedPictures, TarPictures, ZipPictures
from .placed_pictures import PlacedPictures
from .public import find_public
from .region_files import RegionFiles
from .scene_questions import SCENE_SETS, scene_rows
from .seen import PictureSource, SeenRow
from .seen_folders import SeenParts, read_idx
from .seen_looks import FEATURE_SUFFIXES, SETS, TASK_OF, files_below

VALID_DIGITS = 5_000  # of the training part of mnist, the last ones
TRANSLATED, TRANSLATED_SIDE = "translated", 60  # pixels
LANGUAGES = ("en", "de", "fr", "cs")
FLICKR_PARTS = {"train": "train", "valid": "dev", "test": "test"}


def read_seen_set(name: str, asks_for: str) -> SeenParts:
    """The rows of a set: labels, captions or answers as it has them; none where pictures are to be painted."""
    kind, _, form = name.partition(":")
    forms = FORMS.get(kind, ("",))
    if asks_for not in SETS[kind]:
        ways = " or ".join(f"--task {TASK_OF[one]}" for one in SETS[kind])
        raise DataError(f'"{name}" has nothing that --task {TASK_OF[asks_for]} asks for. Take it with {ways}.')
    if form not in forms:
        known = ", ".join(f"{kind}:{one}" for one in forms if one) or kind
        raise DataError(f'"{name}": there is no such form of {kind}; there are: {known}.')
    found = READERS[kind](form)
    if asks_for == "picture":
        found.parts = {
            part: [SeenRow(frames, ()) for frames in dict.fromkeys(row.frames for row in rows)]
            for part, rows in found.parts.items()
        }
    return found


def _digits(_: str) -> SeenParts:
    from .clips import digit_pictures

    pixels, labels = digit_pictures()
    rows = [SeenRow((str(row),), (), str(label)) for row, label in enumerate(labels.tolist())]
    return SeenParts({"train": rows}, ArrayPictures(pixels))


def _moving(kind: str) -> Callable[[str], SeenParts]:
    def read(_: str) -> SeenParts:
        from . import clips

        rows = clips.shape_rows() if kind == "shapes" else clips.digit_rows()
        notes = ["the test has combinations of words that no training clip has"]
        return SeenParts(rows, DrawnPictures(clips.draw_clip, f"{kind} {clips.VERSION}"), notes)

    return read


def _idx(name: str) -> Callable[[str], SeenParts]:
    def read(form: str) -> SeenParts:
        found = read_idx(next(iter(find_public(name).values())).parent)
        if form == TRANSLATED:
            found.pictures = PlacedPictures(cast(PictureSource, found.pictures), TRANSLATED_SIDE)
            found.notes.append(f"each picture lies somewhere on a black one of {TRANSLATED_SIDE} x {TRANSLATED_SIDE}")
        rows = found.parts["train"]
        if len(rows) > 2 * VALID_DIGITS:
            found.parts = {**found.parts, "train": rows[:-VALID_DIGITS], "valid": rows[-VALID_DIGITS:]}
            found.notes.append(f"the last {VALID_DIGITS:,} of the training part validate")
        return found

    return read


def _cifar10(_: str) -> SeenParts:
    sources: dict[str, PictureSource] = {}
    parts = {}
    for part, path in find_public("cifar10").items():
        source = TarPictures(path)
        sources[part] = source
        parts[part] = [SeenRow((f"{part}/{name}",), (), name.split("/")[-2]) for name in source.names]
    return SeenParts(parts, JoinedPictures(sources))


def _flickr_pictures(found: dict[str, Path]) -> tuple[JoinedPictures, dict[str, list[str]]]:
    """Archives by part, and the names in each part's list."""
    sources = {part: ZipPictures(found[f"{own} pictures"]) for part, own in FLICKR_PARTS.items()}
    lists = {part: _lines(found[f"{own} names"]) for part, own in FLICKR_PARTS.items()}
    return JoinedPictures(sources), lists


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in lines_of(read_text(path)) if line.strip()]


def _flickr8k(_: str) -> SeenParts:
    found = find_public("flickr8k")
    pictures, lists = _flickr_pictures(found)
    captions: dict[str, list[str]] = {}
    for line in _lines(found["captions"]):
        name, _, caption = line.partition("\t")
        captions.setdefault(name.partition("#")[0], []).append(caption.strip())
    parts = {
        part: [SeenRow((f"{part}/{name}",), tuple(captions[name])) for name in names if name in captions]
        for part, names in lists.items()
    }
    note = "the test part has 804 of the 1,000 pictures of the published one" if len(lists["test"]) == 804 else ""
    return SeenParts(parts, pictures, [note] if note else [])


def _multi30k(form: str) -> SeenParts:
    """Flickr8k's pictures that Multi30k describes, with its sentence in one language."""
    language = form or "en"
    flickr = find_public("flickr8k")
    texts = find_public("multi30k", [f"{part}.{language}" for part in ("train", "valid", "test")])
    lines = {
        own: list(lines_of(read_text(texts[f"{part}.{language}"])))
        for part, own in (("train", "train"), ("valid", "val"), ("test", "test_2016_flickr"))
    }
    pictures, lists = _flickr_pictures(flickr)
    linked = {}
    for row in _lines(flickr["multi30k"])[1:]:
        name, _, own, line = row.split("\t")
        linked[name] = lines[own][int(line)].strip()
    parts = {
        part: [SeenRow((f"{part}/{name}",), (linked[name],)) for name in names if name in linked]
        for part, names in lists.items()
    }
    note = "parts are those of Flickr8k, whose test pictures occur in the training text of Multi30k"
    return SeenParts(parts, pictures, [note])


def _json(path: Path) -> Any:
    return json.loads("".join(read_text(path)))


def _easy_vqa(_: str) -> SeenParts:
    found = find_public("easy_vqa")
    parts, sources = {}, dict[str, PictureSource]()
    for part in ("train", "test"):
        sources[part] = ZipPictures(found[f"{part} pictures"])
        asked = _json(found[f"{part} questions"])
        parts[part] = [SeenRow((f"{part}/{number}.png",), (question,), answer) for question, answer, number in asked]
    return SeenParts(parts, JoinedPictures(sources))


def _vqa_rad(form: str) -> SeenParts:
    """Answers in lower case: the same ones are written in several ways."""
    found = find_public("vqa_rad")
    parts: dict[str, list[SeenRow]] = {"train": [], "test": []}
    for row in _json(found["questions"]):
        if form == "closed" and row["answer_type"].strip() != "CLOSED":
            continue
        part = "test" if row["phrase_type"].startswith("test") else "train"
        answer = one_line(str(row["answer"])).lower()
        parts[part].append(SeenRow((row["image_name"],), (one_line(row["question"]),), answer))
    return SeenParts(parts, ZipPictures(found["pictures"]), ["answers are in lower case"])


def _msvd(_: str) -> SeenParts:
    """Clips with captions to learn from, as many as there are features of; others only to be described."""
    found = find_public("msvd")
    folder = next(path for name, path in found.items() if name.startswith("features")).parent
    captions = {row["id"]: tuple(map(one_line, row["caption"])) for row in _json(found["captions"])}
    files = [name for name in files_below(folder) if name.endswith(FEATURE_SUFFIXES)]
    rows = [SeenRow((file,), captions.get(file.partition(".npy")[0], ())) for file in files]
    said = [row for row in rows if row.texts]
    notes = [f"features are at hand of {counted(len(rows), 'clip')}, and captions of {len(said)} of them"]
    if not said:
        notes.append("nothing can be learned from clips without captions: they are there to be described")
    parts = {"train": said} if said else {}
    return SeenParts({**parts, "test": [row for row in rows if not row.texts]}, RegionFiles(folder, files), notes)


def _scenes(name: str) -> Callable[[str], SeenParts]:
    def read(_: str) -> SeenParts:
        return SeenParts(*scene_rows(name))

    return read


READERS: dict[str, Callable[[str], SeenParts]] = {
    "digits8x8": _digits,
    "moving-shapes": _moving("shapes"),
    "moving-digits": _moving("digits"),
    "mnist": _idx("mnist"),
    "fashion_mnist": _idx("fashion_mnist"),
    "cifar10": _cifar10,
    "flickr8k": _flickr8k,
    "multi30k-images": _multi30k,
    "easy_vqa": _easy_vqa,
    "vqa_rad": _vqa_rad,
    "msvd": _msvd,
    **{name: _scenes(name) for name in SCENE_SETS},
}
FORMS = {
    "multi30k-images": ("", *LANGUAGES),
    "vqa_rad": ("", "closed"),
    "mnist": ("", TRANSLATED),
    "fashion_mnist": ("", TRANSLATED),
}
