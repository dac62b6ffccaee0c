"""Corpora that every Python has, and toys that are made up here: no download, and no file of ours.

They differ between versions of Python, so a run records the fingerprint of the text it saw.
"""

from __future__ import annotations

import os
import platform
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError
from .paths import cache_folder

TOYS_VERSION = "1"  # of the texts in toys.py; a change of them is a new one


@dataclass(frozen=True)
class Builtin:
    title: str
    text: Callable[[int | None], str]
    """Told the number behind the colon of its name, where there is one."""
    depends_on_python: bool = True

    @property
    def licence(self) -> str:
        return "PSF" if self.depends_on_python else "free"


def _language_reference(_: int | None) -> str:
    """English prose with code: the pages behind help('assignment') and its like."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name].strip() + "\n" for name in sorted(topics))


def _library_source(_: int | None) -> str:
    """The top-level modules of the standard library, in the order of their names."""
    folder = Path(sysconfig.get_path("stdlib"))
    sources = (path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.py")))
    return "\n".join(sources)


def _chain(name: str) -> tuple[Callable[[int | None], str], bool]:
    def text(_: int | None) -> str:
        from .toys import chain_text

        return chain_text(name)

    return text, False


def _copy(length: int | None) -> str:
    from .toys import copy_text

    return copy_text(20 if length is None else length)


BUILTIN = {
    "python-reference": Builtin(
        "Python's language reference: English prose and code, about 0.6 MB", _language_reference
    ),
    "python-source": Builtin("Python's standard library: source code, about 4 MB", _library_source),
    "markov": Builtin("Toy: a Markov chain of order 2 over 8 letters; its entropy is known", *_chain("markov")),
    "hidden-markov": Builtin("Toy: 6 hidden states that speak 8 letters; the truth is known", *_chain("hidden-markov")),
    "copy": Builtin("Toy: 8 letters, N dots, the same 8 letters (copy:N; 20 where not said)", _copy, False),
}


EXAMPLE_SETS: dict[str, str] = {
    "adding:200": "Adding problem: the sum of two marked numbers among N; exact answers",
    "parity:32": "Parity of N bits; exact answers",
    "digits-rows": "scikit-learn's 8x8 digits, a row a step",
    "digits-pixels": "scikit-learn's 8x8 digits, a pixel a step",
    "mnist-rows": "MNIST, 28x28 digits, a row a step (where the set is at hand)",
    "mnist-pixels": "MNIST, a pixel a step",
    "mnist-pixels-14": "MNIST shrunk to 14x14, a pixel a step",
}

PAIR_TOYS = {
    "dates": ("dates:en-fr", "Pairs: days in words, any two languages of Babel; exact answers"),
    "numbers": ("numbers:en-de", "Pairs: numbers in words, any two languages of num2words; exact answers"),
}
"""By kind: an example of a name, and a title."""

LABEL_TOYS = {
    "cldr-languages": "Labels: in which of 25 languages a country, language, day or month is named; Unicode's CLDR",
}
TAG_TOYS = {
    "python-roles": "Tags: what each token of Python's standard library is (keyword, name, number, …); exact answers",
}
SPAN_TOYS = {
    "rooms": "Questions: where things are, in 1,000 made-up rooms; a third ask for what is not there; exact answers",
}


def is_span_toy(name: str) -> bool:
    return name in SPAN_TOYS


CHOICE_TOYS = {
    "which-word": "Choices: six words, and four of which one is among them; exact answers",
}


def is_choice_toy(name: str) -> bool:
    return name in CHOICE_TOYS


SEEN_TOYS = {
    "digits8x8": "Pictures: scikit-learn's 1,797 digits of 8 x 8 pixels",
    "moving-shapes": "Clips: a shape that moves, and a caption of it; exact answers, unseen combinations in the test",
    "moving-digits": "Clips: one or two digits that move, and a caption of them; exact answers",
    "scenes": "Pictures: drawn things, and questions about them; exact answers, unseen combinations in the test",
    "scenes-regions": "Pictures as regions with boxes: the same questions",
    "scenes-choices": "Pictures as regions: choose one of four answers, then one of four reasons; exact",
    "scenes-entailment": "Pictures as regions, half of them behind curtains: does a sentence follow? Exact",
    "scenes-captions": "Pictures as regions: a sentence about each, to learn from",
}


def is_label_toy(name: str) -> bool:
    return name in LABEL_TOYS


def is_tag_toy(name: str) -> bool:
    return name in TAG_TOYS


def with_length(name: str) -> tuple[str, int | None]:
    """'adding:200' -> ('adding', 200); 'markov' -> ('markov', None)."""
    kind, colon, length = name.partition(":")
    if not colon:
        return kind, None
    if not (length.isascii() and length.isdecimal()):
        raise DataError(f'"{name}": expected a whole number behind the colon, such as {kind}:100.')
    return kind, int(length)


def is_example_set(name: str) -> bool:
    return name.partition(":")[0] in {known.partition(":")[0] for known in EXAMPLE_SETS}


def builtin_file(name: str) -> Path:
    """The corpus as a text file in the cache, written once, and once per version of Python where it depends on it."""
    kind, number = with_length(name)
    if number is not None and kind != "copy":
        raise DataError(f'"{name}": {kind} has no length to choose; drop the number.')
    corpus = BUILTIN[kind]
    version = platform.python_version() if corpus.depends_on_python else TOYS_VERSION
    path = cache_folder() / "builtin" / f"{name.replace(':', '-')}-{version}.txt"
    write_once(path, lambda: corpus.text(number))
    return path


def write_once(path: Path, text: Callable[[], str]) -> None:
    """Write a file of the cache, whole or not at all, where it does not exist."""
    if path.exists():
        return
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text(), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}. "
            "Free some space, or set SEQWISE_CACHE to a folder on another disk."
        ) from None
