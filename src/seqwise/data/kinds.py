"""What data is taken for, by its name, its suffix and its beginning: found without anything that computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import DataError
from .builtin import BUILTIN, is_choice_toy, is_example_set, is_label_toy, is_span_toy, is_tag_toy
from .choice_files import looks_like_choices
from .files import kind_of, read_bytes
from .label_files import looks_labelled
from .label_folders import may_be_label_folder
from .labelled import given_roles, has_roles, label_files, reading_of
from .pairs import looks_like_pairs
from .public import PUBLIC, is_label_set, is_pair_set, is_span_set, is_tag_set
from .seen_looks import TASK_OF, given_seen_roles, is_picture_name, is_seen_set, looks_seen
from .source import unknown_set
from .span_files import looks_like_questions
from .tag_files import looks_tagged

NEEDED = {".csv": "a table with one step a row", ".tsv": "a pair on each line", ".jsonl": "an object on each line"}


def task_of(sources: Sequence[str]) -> str:
    """What the data is taken for where nobody said: by the name of the set, by the suffix and beginning of the file."""
    first = str(sources[0])
    if seen := looks_seen(sources):
        return TASK_OF[seen[0]]
    if looks_like_questions(sources):
        return "span"
    if looks_tagged(sources):
        return "tags"
    if looks_like_choices(sources):
        return "choice"
    if looks_labelled(sources) or (not Path(first).exists() and is_example_set(first)):
        return "label"
    if looks_like_pairs([str(source) for source in sources]):
        return "pairs"
    return "numbers" if len(sources) == 1 and kind_of(Path(first)) == ".csv" else "text"


def task_for(asked: str | None, sources: Sequence[str], columns: Sequence[str] = ()) -> str:
    """The task that was asked for, or that the data is taken for; where two readings are possible, a DataError asks."""
    if asked is not None:
        return asked
    if seen := _asked_of_pictures(sources, columns):
        return TASK_OF[seen]
    if has_roles(columns):
        roles = given_roles(columns)
        return "tags" if "tags" in roles else "choice" if "choices" in roles else "label"
    if columns:
        return "label" if _are_text_and_label(sources, columns) else _other_task(sources)
    if not looks_tagged(sources) and not looks_like_questions(sources) and not looks_like_choices(sources):
        for source in map(Path, sources):
            _check_one_reading(source)
    return task_of(sources)


def _asked_of_pictures(sources: Sequence[str], columns: Sequence[str]) -> str | None:
    """What data asks of its pictures, by its columns or by what it holds; None where it has no pictures."""
    if "image" in (roles := given_seen_roles(columns)):
        return next((role for role in ("caption", "answer", "label") if role in roles), None)
    if len(sources) == 1 and is_picture_name(str(sources[0])) and Path(sources[0]).is_file():
        raise DataError(f"{sources[0]}: one picture is nothing to learn from. Give a folder of them, or a table.")
    held = looks_seen(sources)
    if len(held) > 1:
        ways = [f"--task {TASK_OF[one]}" for one in held]
        raise DataError(
            f"{sources[0]}: its pictures may be read for {', '.join(held[:-1])} or {held[-1]}. Say which with "
            f"{', '.join(ways[:-1])} or {ways[-1]}."
        )
    return held[0] if held else None


def _are_text_and_label(sources: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether columns that are named without a role are a text and its label, in this order."""
    found = [reading_of(path, columns) for path in _tables(sources)]
    return bool(found) and all(one is not None and [*one.texts, one.answer] == list(columns) for one in found)


def _other_task(sources: Sequence[str]) -> str:
    """But for labels: whoever names other columns wants another reading."""
    found = task_of(sources)
    if found != "label" or not any(Path(source).exists() for source in sources):
        return found
    if looks_like_pairs([str(source) for source in sources]):
        return "pairs"
    return "numbers" if kind_of(Path(sources[0])) == ".csv" else "text"


def _tables(sources: Sequence[str]) -> Iterator[Path]:
    for source in map(Path, sources):
        yield from label_files(source).values() if source.is_dir() else [source]


def _check_one_reading(path: Path) -> None:
    if path.is_dir() and may_be_label_folder(path):
        raise DataError(
            f"{path}: its folders may be labels, with a text in each file, or all of it one running text. "
            "Say which with --task label or --task text."
        )
    for file in _tables([str(path)]):
        reading = reading_of(file)
        if reading is not None and reading.other_task:
            texts = " and ".join(reading.texts)
            other = {"pairs": "pairs of texts", "numbers": "steps of numbers"}[reading.other_task]
            raise DataError(
                f"{file}: it may hold texts ({texts}) with an answer each ({reading.answer}), or {other}. "
                f"Say which with --task label or --task {reading.other_task}, or name what to read with --columns, "
                f"such as --columns text={_short(reading.texts[0])},label={_short(reading.answer)}."
            )


def _short(name: str) -> str:
    """A column without a name is given by its number."""
    return name.removeprefix("column ")


def check_there(sources: Sequence[str]) -> None:
    """Data that is missing, unknown or empty, told at once. Two parallel files may stand with a comma between.

    Of pipes nothing is read.
    """
    for source in sources:
        if source == "-":
            continue
        if Path(source).exists():
            files = [Path(source)]
        elif "," in source:
            files = [Path(name.strip()) for name in source.split(",")]
        elif _is_known(source):
            continue
        else:
            raise unknown_set(source)
        for file in files:
            if not file.exists():
                raise DataError(f"{file}: no such file or folder.")
            if file.is_file() and not next(read_bytes(file), b""):
                raise DataError(
                    f"{file}: the file is empty. Give {NEEDED.get(kind_of(file), 'some text to learn from')}."
                )


def _is_known(name: str) -> bool:
    is_built_in = name.partition(":")[0] in BUILTIN or is_example_set(name) or is_label_toy(name)
    is_built_in = is_built_in or is_tag_toy(name) or is_span_toy(name) or is_choice_toy(name)
    is_public = is_pair_set(name) or is_label_set(name) or is_tag_set(name) or is_span_set(name) or name in PUBLIC
    return is_built_in or is_public or is_seen_set(name)
