"""DATA -> words with a tag each, in three parts: .conllu, columns, slots, and sets that have a name.

data = open_tagged(["train.conll"], test="test.conll")
data.parts["train"][0]     # TaggedRow(("to", "Rome"), ("O", "B-city"))
data.scheme                # "IOB2": entities in another scheme are converted, and that is said
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError, DataError
from ..wording import counted
from .annotated import TaggedData, TaggedRow
from .builtin import is_tag_toy
from .files import shown
from .label_checks import lines_told, named
from .label_split import CUT_SPLIT, VALID_SHARE, deal
from .public import is_tag_set
from .source import DEFAULT_SPLIT, PART_NAMES, PARTS, part_of, unknown_set
from .tag_layouts import Sentence, TagLayout, is_tag_file, layout_of, read_sentences
from .tag_layouts import write_tagged as write_tagged

CONLL_PARTS = {"testa": "valid", "testb": "test"}  # as in eng.testa
NO_TAG = "_"  # in .conllu
MIN_ROWS = 3
MAX_NAMED = 10  # tags in the sentence on what was found


@dataclass(frozen=True)
class TaggedParts:
    """What a reader found, before it is checked, converted and split."""

    parts: dict[str, list[Sentence]]
    notes: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Which file a part was read from, for messages that name a line."""


def open_tagged(
    sources: Sequence[str | Path],
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
    columns: Sequence[str] = (),
) -> TaggedData:
    """Find words and tags, check them from end to end, convert entities to IOB2, and put the rows into parts.

    `sources` is one or more files, a folder with files for each part, or the name of a data set. `columns` says which
    tags are read where there are several: tags=xpos in .conllu, tags=2 of columns.
    """
    name, found = _find(sources, valid, test, columns)
    notes = found.notes
    sentences = {part: found.parts[part] for part in PARTS if part in found.parts}
    is_split = len(sentences) > 1
    if is_split and split is not None:
        raise ConfigError(f'{name} has parts already, and --split-at "{split}" would make others; drop one.')
    _check_sentences(name, sentences)
    parts, scheme = _converted(sentences, found.files, notes)
    words = "split as given"
    if not is_split:
        parts = _dealt(name, parts["train"], split or DEFAULT_SPLIT)
        words = f"shuffled, split {split or DEFAULT_SPLIT}"
    elif "valid" not in parts:
        cut = _dealt(name, parts["train"], CUT_SPLIT)
        parts = {"train": cut["train"], "valid": cut["valid"], "test": parts["test"]}
        words = f"test as given, valid is {VALID_SHARE} % of what was there to train on, shuffled"
        notes.append(f"there is no part to validate on: it is {VALID_SHARE} % of the training part, shuffled")
    notes += _notes_on(parts)
    return TaggedData(name, parts, scheme, words, notes, tuple(columns))


def open_whole_tagged(
    sources: Sequence[str | Path], columns: Sequence[str] = (), tags: Sequence[str] = ()
) -> TaggedData:
    """Files as one part named "whole", for scoring, with `columns` and `tags` as the run has them.

    Words whose tag the run does not know stay, and count as wrong; a file most of whose tags it does not know is of
    another kind, and a DataError.
    """
    paths = [Path(source) for source in sources]
    name = " and ".join(path.name for path in paths)
    found = read_tag_files({"train": paths}, columns)
    if not found.parts["train"]:
        raise DataError(f"{name}: no sentences with words and tags. Give some to score.")
    notes = found.notes
    parts, scheme = _converted(found.parts, found.files, notes)
    rows = parts["train"]
    _check_known(found, rows, tags, notes)
    return TaggedData(name, {"whole": rows}, scheme, "scored whole", notes, tuple(columns))


def words_of(path: str | Path, columns: Sequence[str] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each sentence, to be tagged: of the formats above, whose tags are not read, or of plain lines."""
    layout = layout_of(Path(path), columns)
    yield from (sentence.words for sentence in read_sentences(Path(path), layout, columns, tagged=False))


def looks_tagged(sources: Sequence[str | Path]) -> bool:
    """Whether data is taken for tagged words where nobody said so."""
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not paths[0].exists():
        return is_tag_set(str(sources[0])) or is_tag_toy(str(sources[0]))
    if len(paths) == 1 and paths[0].is_dir():
        return "train" in tag_files(paths[0])
    return bool(paths) and all(is_tag_file(path) for path in paths)


def tag_files(folder: Path) -> dict[str, list[Path]]:
    """The tagged files of a folder, or of folders for the parts in it, by part."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        part = _part(path)
        files = sorted(path.iterdir()) if path.is_dir() and path.name.lower() in PART_NAMES else [path]
        if part is not None:
            found.setdefault(part, []).extend(file for file in files if file.is_file() and is_tag_file(file))
    return {part: found[part] for part in PARTS if found.get(part)}


def _part(path: Path) -> str | None:
    words = path.name.lower().replace("-", ".").replace("_", ".").split(".")
    return part_of(path) or next((CONLL_PARTS[word] for word in words if word in CONLL_PARTS), None)


# -- finding the sentences -----------------------------------------------------------------------------------------


def _find(
    sources: Sequence[str | Path], valid: str | Path | None, test: str | Path | None, columns: Sequence[str]
) -> tuple[str, TaggedParts]:
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not paths[0].exists():
        if valid or test or columns:
            raise ConfigError(f'"{sources[0]}" brings its own parts and columns; drop --valid, --test and --columns.')
        return str(sources[0]), _named_set(str(sources[0]))
    name = " and ".join(path.name for path in paths)
    files: dict[str, list[Path]] = {"train": paths}
    if len(paths) == 1 and paths[0].is_dir():
        files = tag_files(paths[0])
        if "train" not in files:
            raise DataError(
                f"{paths[0]}: no tagged words to train on: expected files such as train.conllu and test.conllu, or "
                "train.seq.in, train.seq.out and train.label."
            )
        for part, some in files.items():
            if len(some) > 1:
                names = ", ".join(file.name for file in some)
                raise DataError(
                    f"{paths[0]}: cannot tell which file is the {part} part: {names}. Give them one by one."
                )
    files |= {part: [Path(file)] for part, file in (("valid", valid), ("test", test)) if file is not None}
    return name, read_tag_files(files, columns)


def _named_set(name: str) -> TaggedParts:
    if is_tag_toy(name):
        from .annotated_toys import role_sentences

        return TaggedParts({"train": role_sentences()}, ["each line is there once, whatever it stands in"])
    if is_tag_set(name):
        from .annotated_sets import read_tag_set

        return read_tag_set(name)
    raise unknown_set(name)


def read_tag_files(files: dict[str, list[Path]], columns: Sequence[str]) -> TaggedParts:
    parts: dict[str, list[Sentence]] = {}
    notes: list[str] = []
    for part in PARTS:
        for path in files.get(part, ()):
            layout = layout_of(path, columns)
            sentences = _without_missing(path, layout, read_sentences(path, layout, columns), notes)
            if not parts:
                notes.append(_taken_for(path, layout, columns, sentences))
            parts.setdefault(part, []).extend(sentences)
    names = {part: " and ".join(str(path) for path in some) for part, some in files.items()}
    return TaggedParts(parts, notes, names)


def _without_missing(path: Path, layout: TagLayout, sentences: list[Sentence], notes: list[str]) -> list[Sentence]:
    """.conllu has _ where a word was given no tag."""
    if layout.kind != "conllu":
        return sentences
    kept = [sentence for sentence in sentences if NO_TAG not in sentence.tags]
    if sentences and not kept:
        other = "xpos" if layout.tags == "upos" else "upos"
        raise DataError(f"{path}: no tags in {layout.tags.upper()}. Try --columns tags={other}.")
    if len(kept) < len(sentences):
        lines = [sentence.line for sentence in sentences if NO_TAG in sentence.tags]
        many = counted(len(lines), "sentence has a word", "sentences have words")
        notes.append(f"{path.name}: {many} without a tag ({lines_told(lines)}) and {_are(lines)} left out")
    return kept


def _are(lines: Sequence[int]) -> str:
    return "is" if len(lines) == 1 else "are"


def _taken_for(path: Path, layout: TagLayout, columns: Sequence[str], sentences: Sequence[Sentence]) -> str:
    found = sorted({tag for sentence in sentences for tag in sentence.tags})
    tags = f"{len(found)}: {', '.join(found[:MAX_NAMED])}{', …' if len(found) > MAX_NAMED else ''}"
    if layout.kind == "conllu":
        how = f"tags are {layout.tags.upper()} ({tags})"
    elif layout.kind == "slots":
        label = " and a label for each line" if sentences and sentences[0].label is not None else ""
        how = f"a sentence on each line, with tags of its words ({tags}){label}"
    elif layout.kind == "objects":
        how = f"lists of words and of their tags ({tags})"
    else:
        given = f" ({', '.join(columns)})" if columns else ""
        how = f"a word and its tag on each line{given} ({tags})"
    return f"{path.name}: {how}"


# -- checks, entities, parts ---------------------------------------------------------------------------------------


def _check_sentences(name: str, parts: dict[str, list[Sentence]]) -> None:
    total = sum(len(some) for some in parts.values())
    if total < MIN_ROWS:
        raise DataError(
            f"{name}: {counted(total, 'sentence')} with words and tags; {MIN_ROWS} are the fewest to train, "
            "validate and test on. A model needs some hundred at least."
        )
    for part, some in parts.items():
        if not some:
            raise DataError(f"{name}: the {part} part has no sentences with words and tags.")
    tags = {tag for sentence in parts["train"] for tag in sentence.tags}
    if len(tags) == 1:
        raise DataError(f"{name}: all words to train on have the tag {shown(tags.pop())}: there is nothing to learn.")


def _converted(
    parts: dict[str, list[Sentence]], files: dict[str, str], notes: list[str]
) -> tuple[dict[str, list[TaggedRow]], str]:
    """Entities of all parts in IOB2, and the name of that scheme; tags of other kinds as they are."""
    from .tag_schemes import MAX_SHOWN, detect_scheme, to_iob2

    everything = [(part, sentence) for part, some in parts.items() for sentence in some]
    detected = detect_scheme([sentence.tags for _, sentence in everything])
    if detected.scheme:
        verb = "and stay so" if detected.scheme == "IOB2" else "and are converted to IOB2"
        notes.append(f"entities are marked by {detected.scheme} ({detected.reason}), {verb}")
    if detected.odd:
        told = []
        for odd in detected.odd[:MAX_SHOWN]:
            part, sentence = everything[odd.row]
            told.append(
                f"{odd.what} ({odd.count:,}, first in {files.get(part, part)}, sentence of line {sentence.line})"
            )
        total, more = sum(odd.count for odd in detected.odd), ", …" if len(detected.odd) > MAX_SHOWN else ""
        many = counted(total, "tag does", "tags do")
        notes.append(
            f"{many} not fit that scheme and {'is' if total == 1 else 'are'} kept: {', '.join(told)}{more}; "
            "entities are read as conlleval reads them: an I- that follows none of its type begins one"
        )
    rows = {
        part: [
            TaggedRow(one.words, tuple(to_iob2(one.tags)) if detected.scheme else one.tags, one.label) for one in some
        ]
        for part, some in parts.items()
    }
    return rows, "IOB2" if detected.scheme else ""


def _dealt(name: str, rows: Sequence[TaggedRow], split: str) -> dict[str, list[TaggedRow]]:
    return deal(name, rows, key=lambda row: " ".join(row.words), label=lambda row: row.label or "", split=split)


def _notes_on(parts: dict[str, list[TaggedRow]]) -> Iterator[str]:
    known_tags = {tag for row in parts["train"] for tag in row.tags}
    known_labels = {row.label for row in parts["train"]}
    known_rows = {row.words for row in parts["train"]}
    for part, rows in parts.items():
        if part == "train":
            continue
        if unseen := Counter(tag for row in rows for tag in row.tags if tag not in known_tags):
            many = counted(sum(unseen.values()), "word has", "words have")
            tags = f"a tag that the training part lacks ({named(sorted(unseen))})"
            yield f"{part}: {many} {tags}, and no model can be right there"
        if lacking := Counter(row.label for row in rows if row.label not in known_labels):
            many = counted(sum(lacking.values()), "row has", "rows have")
            labels = f"a label that the training part lacks ({named(sorted(map(str, lacking)))})"
            yield f"{part}: {many} {labels}, and no model can be right there"
        if num_known := sum(row.words in known_rows for row in rows):
            yield f"{part}: {num_known:,} of {len(rows):,} sentences stand in the training part too"


def _check_known(found: TaggedParts, rows: Sequence[TaggedRow], tags: Sequence[str], notes: list[str]) -> None:
    if not tags:
        return
    known, total = set(tags), Counter(tag for row in rows for tag in row.tags)
    unknown = {tag: count for tag, count in total.items() if tag not in known}
    if not unknown:
        return
    first, tag = next((place, tag) for place, row in enumerate(rows) for tag in row.tags if tag not in known)
    where = f"first in {found.files['train']}, sentence of line {found.parts['train'][first].line}: {shown(tag)}"
    marked = sum(count for tag, count in total.items() if tag != "O")
    if 2 * sum(unknown.values()) > marked:
        raise DataError(
            f"{found.files['train']}: its tags are of another kind than the model's ({where}; the model knows "
            f"{named(sorted(known))}). Name the column of the tags with --columns tags=N."
        )
    many = counted(sum(unknown.values()), "word has", "words have")
    notes.append(f"{many} a tag that the model does not know ({where}), and it cannot be right there")
