"""DATA -> pairs of sequences in three parts: translations, spellings with sounds, turns of talk, texts with summaries.

data = open_pairs(["pairs.tsv"])
data.parts["train"][0]             # ("two dogs run", "zwei Hunde rennen")
data.notes                         # what was found and what was left out, a sentence each
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError, DataError
from ..wording import counted
from .builtin import PAIR_TOYS
from .files import kind_of
from .pair_files import (
    PAIR_SUFFIXES,
    folder_parts,
    is_pair_file,
    is_pair_folder,
    language_of,
    languages_of,
    names_in,
    read_pairs,
)
from .pair_files import Pair as Pair
from .pair_sets import SetParts, read_pair_set
from .pair_split import MAX_HELD_OUT_PAIRS, SOURCE, split_pairs
from .public import is_pair_set
from .source import DEFAULT_SPLIT, PARTS, unknown_set

MIN_SOURCES = 3  # distinct ones
ABSURD_RATIO, ABSURD_DISTANCE = 9, 50  # times as long, and characters apart, as such a source has by rule
MAX_COPIED_SHARE = 0.05


@dataclass(frozen=True)
class PairData:
    """Pairs in up to three parts, read from end to end, known by their fingerprint."""

    name: str
    parts: dict[str, list[Pair]]
    """train, valid and test; or all of it as "whole"."""
    fingerprint: str
    """sha256 of all pairs of all parts."""
    split: str
    """How the parts were made, in words."""
    notes: list[str] = field(default_factory=list)
    """A sentence for each thing that was found or left out."""

    @property
    def description(self) -> str:
        total = sum(len(pairs) for pairs in self.parts.values())
        parts = ", ".join(f"{part} {len(pairs):,}" for part, pairs in self.parts.items())
        return f"{self.name}: {counted(total, 'pair')} of sequences; {self.split} ({parts})"


def open_pairs(
    data: Sequence[str | Path],
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
    columns: Sequence[str] = (),
) -> PairData:
    """Find the pairs, check them from end to end, and put them into parts.

    `data` is a .tsv or .jsonl file, two parallel files, a folder with files for each part, or the name of a data
    set. `valid` and `test` are a file, or two parallel ones with a comma between. `columns` names source and target:
    fields of a .jsonl file, columns of a .tsv file with a header, or languages of a folder.
    """
    name, given, is_set = _find(data, columns)
    notes = given.notes
    parts = dict(given.parts)
    for part, files in (("valid", valid), ("test", test)):
        if files is not None:
            parts[part] = read_pairs(_comma_paths(files), columns, notes)
    is_split = "valid" in parts or "test" in parts
    if is_split and split is not None:
        raise ConfigError(f'{name} has parts already, and --split-at "{split}" would make others; drop one.')
    if is_split and "valid" not in parts:
        raise DataError(f"{name}: there are pairs to test on but none to validate on. Add --valid FILE.")
    parts = {part: _without_empty(part, parts[part], notes) for part in PARTS if part in parts}
    _check_number(name, parts)
    words = "split as given"
    if not is_split:
        parts, words = split_pairs(name, parts["train"], split, side=given.side), _split_words(split, given.side)
    if not is_set:
        parts["train"] = _without_absurd(parts["train"], notes)
    notes += _copies(parts["train"])
    notes += _overlaps(parts)
    return PairData(name, parts, fingerprint(parts), words, notes)


def open_whole_pairs(data: Sequence[str | Path], columns: Sequence[str] = ()) -> PairData:
    """A file, or two parallel ones, as one part named "whole", for scoring."""
    _check_columns(columns)
    notes: list[str] = []
    paths = [Path(one) for one in data]
    parts = {"whole": _without_empty("", read_pairs(paths, columns, notes), notes)}
    if not parts["whole"]:
        raise DataError(f"{_name(paths)}: no pairs in it. Give some with text on both sides.")
    return PairData(_name(paths), parts, fingerprint(parts), "scored whole", notes)


def as_trained(data: Sequence[str], trained_on: Sequence[str], columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Other data for a model of pairs, and the columns to read of it, so that its source is what the model reads.

    `trained_on` and `columns` are the run's. Parallel files are put into its order of languages; of a table its columns
    are read, or its languages where the table names them.
    """
    languages, found = languages_of(trained_on), languages_of(data)
    is_file = len(data) == 1 and kind_of(Path(data[0])) in PAIR_SUFFIXES and Path(data[0]).is_file()
    if is_file:
        if not columns and languages and set(languages) <= names_in(Path(data[0])):
            return list(data), list(languages)
        return list(data), list(columns)
    wanted = tuple(columns) or languages
    if found and wanted and found != wanted:
        if len(data) == 2 and found == wanted[::-1]:
            return [data[1], data[0]], []
        raise DataError(
            f"{' and '.join(data)}: from {found[0]} to {found[1]}, but the model was trained from {wanted[0]} to "
            f"{wanted[1]}. Give pairs of these."
        )
    return list(data), list(columns) if len(data) == 1 and Path(data[0]).is_dir() else []


def looks_like_pairs(data: Sequence[str]) -> bool:
    """Whether data is taken for pairs where nobody said so: by its name, its suffix or its fields."""
    paths = [Path(one) for one in data]
    if len(paths) == 2:
        languages = {language_of(path) for path in paths}
        return (len(languages) == 2 and None not in languages) or all(kind_of(path) == ".tsv" for path in paths)
    if len(paths) != 1:
        return False
    if paths[0].is_dir():
        return is_pair_folder(paths[0])
    return is_pair_file(paths[0]) or (not paths[0].exists() and is_pair_set(str(data[0])))


def fingerprint(parts: dict[str, list[Pair]]) -> str:
    digest = hashlib.sha256()
    for part, pairs in parts.items():
        digest.update(f"<{part} {len(pairs)}>".encode())
        for source, target in pairs:
            digest.update(f"{len(source)} {len(target)} {source}{target}".encode())
    return digest.hexdigest()


def _find(data: Sequence[str | Path], columns: Sequence[str]) -> tuple[str, SetParts, bool]:
    """Name, parts, and whether it is a data set with a name, which is taken as it was published."""
    _check_columns(columns)
    paths = [Path(one) for one in data]
    if len(paths) == 1 and not paths[0].exists():
        name = str(data[0])
        if not is_pair_set(name):
            raise unknown_set(name)
        if columns:
            raise ConfigError(f'--columns goes with files; "{name}" names its languages itself. Drop it.')
        if name.partition(":")[0] in PAIR_TOYS:
            from .pair_toys import toy_parts

            return name, SetParts(toy_parts(name)), True
        return name, read_pair_set(name), True
    notes: list[str] = []
    if len(paths) == 1 and paths[0].is_dir():
        files = folder_parts(paths[0], columns, notes)
        parts = {part: read_pairs(some, columns if len(some) == 1 else (), notes) for part, some in files.items()}
    else:
        parts = {"train": read_pairs(paths, columns, notes)}
    return _name(paths), SetParts(parts, notes=notes), False


def _name(paths: Sequence[Path]) -> str:
    return " and ".join(path.name for path in paths)


def _check_columns(columns: Sequence[str]) -> None:
    if len(columns) not in (0, 2):
        raise ConfigError(f"--columns of pairs are two, source and target, such as en,de; got {len(columns)}.")


def _comma_paths(files: str | Path) -> list[Path]:
    if Path(files).exists():
        return [Path(files)]
    return [Path(file.strip()) for file in str(files).split(",")]


def _check_number(name: str, parts: dict[str, list[Pair]]) -> None:
    if not any(parts.values()):
        raise DataError(f"{name}: no pairs in it. Give some with text on both sides.")
    for part, pairs in parts.items():
        if not pairs:
            raise DataError(f"{name}: the {part} part has no pairs with text on both sides.")
    num_sources = len({source for pairs in parts.values() for source, _ in pairs})
    if num_sources < MIN_SOURCES:
        raise DataError(
            f"{name}: too few pairs: {num_sources} distinct sources, and {MIN_SOURCES} are the fewest to train, "
            "validate and test on. A model needs some hundred at least."
        )


def _split_words(split: str | None, side: int) -> str:
    words = f"split by {'source' if side == SOURCE else 'target'} {split or DEFAULT_SPLIT}"
    return words if split else f"{words}, at most {MAX_HELD_OUT_PAIRS:,} each to valid and test"


def _without_empty(part: str, pairs: list[Pair], notes: list[str]) -> list[Pair]:
    kept = [pair for pair in pairs if pair[0] and pair[1]]
    if len(kept) < len(pairs):
        where = f"{part}: " if part else ""
        notes.append(f"{where}{len(pairs) - len(kept):,} of {len(pairs):,} pairs have an empty side and are left out")
    return kept


def _without_absurd(pairs: list[Pair], notes: list[str]) -> list[Pair]:
    """Targets far longer or shorter than targets of such sources are: summaries are short by rule, and stay."""
    rule = statistics.median_low(len(target) / len(source) for source, target in pairs)
    kept = [pair for pair in pairs if not _is_absurd(rule * len(pair[0]), len(pair[1]))]
    if len(kept) < len(pairs):
        notes.append(
            f"train: {len(pairs) - len(kept):,} of {len(pairs):,} pairs differ absurdly in length "
            f"(more than {ABSURD_RATIO} times as long as by rule) and are left out"
        )
    return kept


def _is_absurd(expected: float, found: int) -> bool:
    longer, shorter = max(expected, found), min(expected, found)
    return longer > ABSURD_RATIO * shorter and longer - shorter > ABSURD_DISTANCE


def _copies(train: list[Pair]) -> Iterator[str]:
    num_copies = len(train) - len(set(train))
    if num_copies > MAX_COPIED_SHARE * len(train):
        share = 100 * num_copies / len(train)
        yield f"train: {num_copies:,} of {len(train):,} pairs ({share:.0f} %) are copies of others"


def _overlaps(parts: dict[str, list[Pair]]) -> Iterator[str]:
    known = {source for source, _ in parts["train"]}
    for part, pairs in parts.items():
        num_known = sum(source in known for source, _ in pairs)
        if part != "train" and num_known:
            yield f"{part}: the source of {num_known:,} of {len(pairs):,} pairs stands in the training part too"
