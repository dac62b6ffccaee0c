"""All data sets that have a name, and whether they are on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .builtin import BUILTIN, CHOICE_TOYS, EXAMPLE_SETS, LABEL_TOYS, PAIR_TOYS, SEEN_TOYS, SPAN_TOYS, TAG_TOYS
from .paths import data_folders
from .public import PUBLIC, find_file


@dataclass(frozen=True)
class DataSet:
    name: str
    title: str
    licence: str
    built_in: bool
    at_hand: bool
    how_to_get: str = ""


def catalogue() -> Iterator[DataSet]:
    for name, corpus in BUILTIN.items():
        yield DataSet(name, corpus.title, corpus.licence, built_in=True, at_hand=True)
    for name, title in EXAMPLE_SETS.items():
        if name.startswith("mnist"):
            at_hand = any((folder / "mnist").is_dir() for folder in data_folders())
            how = "put its four files into a folder mnist below SEQWISE_DATA"
            yield DataSet(name, title, "CC BY-SA 3.0", built_in=False, at_hand=at_hand, how_to_get=how)
        else:
            yield DataSet(name, title, "free", built_in=True, at_hand=True)
    for name, title in PAIR_TOYS.values():
        yield DataSet(name, title, "free", built_in=True, at_hand=True)
    for name, title in (LABEL_TOYS | TAG_TOYS).items():
        yield DataSet(name, title, "Unicode" if name in LABEL_TOYS else "PSF", built_in=True, at_hand=True)
    for name, title in (SPAN_TOYS | CHOICE_TOYS | SEEN_TOYS).items():
        yield DataSet(name, title, "free", built_in=True, at_hand=True)
    for name, public in PUBLIC.items():
        at_hand = all(find_file(file) is not None for file in public.files.values())
        how = public.how_to_get or f"seqwise data get {name}"
        yield DataSet(name, public.title, public.licence, built_in=False, at_hand=at_hand, how_to_get=how)
