"""Several texts as one, where some of them are data sets by name: each part is made of theirs, one behind the other.

A blank line parts documents: models that tell whether one piece of text follows another draw the others from elsewhere.
In a text without blank lines every line is a document (data/masking.py), and gets one behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .files import lines_of, writing
from .paths import cache_folder
from .source import PARTS, TextData, open_text

FOLDER = "joined-texts"


def join_texts(texts: Sequence[TextData]) -> TextData:
    """Their parts of one name together, written once into the cache; the others as they are."""
    fingerprint = hashlib.sha256("".join(text.fingerprint for text in texts).encode()).hexdigest()
    folder, files = cache_folder() / FOLDER, {}
    folder.mkdir(parents=True, exist_ok=True)
    has_blank = [any(not line.strip() for line in lines_of(text.parts["train"].blocks())) for text in texts]
    for part in (part for part in PARTS if any(part in text.parts for text in texts)):
        files[part] = folder / f"{fingerprint[:24]}-{part}.txt"
        if not files[part].exists():
            with writing(files[part]) as file:
                for text, has in zip(texts, has_blank, strict=True):
                    if part in text.parts:
                        file.writelines(_documents(text, part, has_blank=has))
    found = open_text(files["train"], valid=files["valid"], test=files.get("test"))
    splits = "; ".join(f"{text.name}: {text.split}" for text in texts)
    notes = [sentence for text in texts for sentence in text.notes]
    return replace(found, name=" and ".join(text.name for text in texts), split=splits, notes=notes)


def _documents(text: TextData, part: str, *, has_blank: bool) -> Iterator[bytes]:
    behind = "\n" if has_blank else "\n\n"
    for line in lines_of(text.parts[part].blocks()):
        yield f"{line}{behind}".encode()
    if has_blank:
        yield b"\n"
