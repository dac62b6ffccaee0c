"""Public data sets as texts with labels and as words with tags: how each is laid out, and which part is which.

Where the part to test on has no labels, or is not at hand, another takes its place, and the notes say so.
Behind a colon stands what is asked for where a set has several answers: qc:fine, sick:number, ud-ewt:xpos.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import DataError, did_you_mean
from .annotated import LabelledRow
from .files import lines_of, read_bytes, read_text
from .label_files import LabelledParts, read_label_files
from .label_folders import one_line
from .public import find_public
from .source import PARTS
from .tag_files import TaggedParts, read_tag_files
from .tag_layouts import Sentence, blocks_of
from .text_tables import read_table

VARIANTS = {
    "qc": ("coarse", "fine"),
    "sick": ("label", "number"),
    "ud-ewt": ("upos", "xpos"),
    "conll2003": ("ner", "pos", "chunk"),
    "conll2000": ("chunk", "pos"),
}
"""What may stand behind the colon; the first is meant where there is none."""
COLUMN = {"pos": 2, "chunk": 3, "ner": 4}  # of conll2000 and conll2003
ROLES = {
    "sst2": {"text": "1", "label": "2"},
    "sst5": {"text": "sentence", "label": "sentiment"},
    "imdb": {"text": "text", "label": "label"},
    "cola": {"text": "4", "label": "2"},
    "mrpc": {"text": "#1 String", "text2": "#2 String", "label": "Quality"},
    "rte": {"text": "sentence1", "text2": "sentence2", "label": "label"},
    "snli": {"text": "sentence1", "text2": "sentence2", "label": "gold_label"},
    "stsb": {"text": "sentence1", "text2": "sentence2", "number": "similarity"},
    "qqp_small": {"text": "sentence1", "text2": "sentence2", "label": "is_duplicate"},
    "sick:label": {"text": "sentence_A", "text2": "sentence_B", "label": "entailment_judgment"},
    "sick:number": {"text": "sentence_A", "text2": "sentence_B", "number": "relatedness_score"},
}
"""Of sets that are tables."""
AG_NEWS = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
DEV_TESTS = "the published part to test on has no labels: the dev part tests"
NO_AGREEMENT = "-"  # in SNLI


def read_label_set(name: str) -> LabelledParts:
    """'qc:fine' -> its parts; a set of one part is split by who asked."""
    kind, variant = _variant(name)
    if kind in LABEL_READERS:
        return LABEL_READERS[kind](variant)
    files = {part: [path] for part, path in find_public(kind).items()}
    if "test_other" in files:
        files["test"] += files.pop("test_other")
    found = read_label_files(files, ROLES.get(f"{kind}:{variant}") or ROLES[kind])
    found.notes.extend(NOTES.get(kind, ()))
    return _without_disagreement(found) if kind == "snli" else found


def read_tag_set(name: str) -> TaggedParts:
    kind, variant = _variant(name)
    if kind in TAG_READERS:
        return TAG_READERS[kind](variant)
    files = {part.removesuffix("_words"): [path] for part, path in find_public(kind).items()}
    files = {part: some for part, some in files.items() if part in PARTS}  # tags and labels of slots are found beside
    columns: list[str] = []
    if kind == "ud-ewt":
        columns = [f"tags={variant}"]
    elif kind == "conll2003":
        columns = [f"tags={COLUMN[variant]}"]
    found = read_tag_files(files, columns)
    return _without_language(found) if kind == "wikiann" else found


def _variant(name: str) -> tuple[str, str]:
    kind, colon, variant = name.partition(":")
    known = VARIANTS.get(kind, ())
    if not colon:
        return kind, known[0] if known else ""
    if not known:
        raise DataError(f'"{name}": {kind} has nothing to choose; drop ":{variant}".')
    if variant not in known:
        names = [f"{kind}:{one}" for one in known]
        raise DataError(f'"{name}": no such answers in this set. {did_you_mean(name, names)}')
    return kind, variant


NOTES = {
    "sst2": ["labels: 0 is bad, 1 is good; whole sentences alone, without the phrases that are labelled too"],
    "sst5": ["labels: from 0, very bad, to 4, very good", DEV_TESTS],
    "imdb": ["labels: 0 is bad, 1 is good; the part to test on has 22,963 of the published 25,000 reviews"],
    "cola": ["labels: 0 is not acceptable, 1 is acceptable", f"{DEV_TESTS}, in domain and out of it"],
    "mrpc": ["labels: 1 is a paraphrase, 0 is none"],
    "rte": [DEV_TESTS],
    "snli": ["the published part to train on is not at hand: the dev part trains"],
    "stsb": [DEV_TESTS],
    "sick": ["the trial part validates"],
    "qqp_small": ["labels: 1 is the same question, 0 is another", "one part of the published set, split here"],
}


# -- texts with labels ---------------------------------------------------------------------------------------------


def _without_disagreement(found: LabelledParts) -> LabelledParts:
    for part, rows in found.parts.items():
        kept = [row for row in rows if row.answer != NO_AGREEMENT]
        found.notes.append(f"{part}: {len(rows) - len(kept):,} pairs on which people did not agree are left out")
        found.parts[part] = kept
    return found


def _ag_news(_: str) -> LabelledParts:
    """Title and text are one column in one file, and two in the other."""
    parts = {}
    for part, path in find_public("ag_news").items():
        rows = (row.cells for row in read_table(path).rows)
        parts[part] = [LabelledRow((one_line(" ".join(map(str, texts))),), AG_NEWS[str(n)]) for n, *texts in rows]
    return LabelledParts(
        parts, "label", ["title and text are joined; 5,000 of the published rows are there to train on"]
    )


def _movie_reviews(_: str) -> LabelledParts:
    path = find_public("movie_review_polarity")["train"]
    rows = []
    try:
        with tarfile.open(fileobj=io.BytesIO(b"".join(read_bytes(path))), mode="r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.name.endswith(".txt") else None
                if file is not None:
                    rows.append(LabelledRow((one_line(file.read().decode()),), Path(member.name).parent.name))
    except (tarfile.TarError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not the expected archive ({error}). Get it again.") from None
    return LabelledParts({"train": rows}, "label", ["each folder is a label, each file a text; split here"])


def _subjectivity(_: str) -> LabelledParts:
    path = find_public("subjectivity")["train"]
    files = {"objective": "plot.tok.gt9.5000", "subjective": "quote.tok.gt9.5000"}
    lines = {label: _unzipped(path, f"subjectivity/{file}").split("\n") for label, file in files.items()}
    rows = [LabelledRow((line.strip(),), label) for label, some in lines.items() for line in some if line.strip()]
    return LabelledParts(
        {"train": rows}, "label", ["sentences of plots are objective, of reviews subjective; split here"]
    )


def _questions(variant: str) -> LabelledParts:
    """'DESC:manner How did …': kind and finer kind of the answer, then the question."""
    path = find_public("qc")["train"]
    parts = {}
    for part in ("train", "test"):
        lines = _unzipped(path, f"qc/{part}.txt", encoding="latin-1").split("\n")
        found = [line.split(maxsplit=1) for line in lines if line.strip()]
        parts[part] = [
            LabelledRow((text.strip(),), label if variant == "fine" else label.partition(":")[0])
            for label, text in found
        ]
    kinds = "finer kinds" if variant == "fine" else "kinds"
    return LabelledParts(parts, "label", [f"labels are {kinds} of what is asked for"])


def _names(_: str) -> LabelledParts:
    rows = [
        LabelledRow((line.strip(),), language)
        for language, path in find_public("names-nationality").items()
        for line in lines_of(read_text(path))
        if line.strip()
    ]
    return LabelledParts({"train": rows}, "label", ["each file is a label, each line a name; split here"])


# -- words with tags -----------------------------------------------------------------------------------------------


def _without_language(found: TaggedParts) -> TaggedParts:
    """Each word of WikiANN has its language before it, as in en:Rome."""
    for part, sentences in found.parts.items():
        found.parts[part] = [
            one._replace(words=tuple(word.removeprefix("en:") for word in one.words)) for one in sentences
        ]
    found.notes.append("the prefix en: of each word is dropped")
    return found


def _brown(_: str) -> TaggedParts:
    """A sentence on each line, as The/at jury/nn said/vbd."""
    path = find_public("brown")["train"]
    sentences = []
    for name in sorted(_names_in(path)):
        if len(Path(name).name) != 4 or not name.startswith("brown/c"):
            continue
        for number, line in enumerate(_unzipped(path, name).split("\n"), start=1):
            pairs = [word.rpartition("/") for word in line.split()]
            if pairs:
                words, tags = tuple(word for word, _, _ in pairs), tuple(tag for _, _, tag in pairs)
                sentences.append(Sentence(number, words, tags))
    return TaggedParts({"train": sentences}, ["500 texts with tags of their own, split here by sentence"])


def _conll2000(variant: str) -> TaggedParts:
    path = find_public("conll2000")["train"]
    parts = {part: list(_conll2000_part(path, part, COLUMN[variant] - 1)) for part in ("train", "test")}
    return TaggedParts(parts, [], {part: f"{path}, {part}.txt" for part in parts})


def _conll2000_part(path: Path, part: str, place: int) -> Iterator[Sentence]:
    for block in blocks_of(_unzipped(path, f"conll2000/{part}.txt").split("\n")):
        cells = [line.split() for _, line in block]
        yield Sentence(block[0][0], tuple(row[0] for row in cells), tuple(row[place] for row in cells))


# -- archives ------------------------------------------------------------------------------------------------------


def _names_in(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not the expected archive ({error}). Get it again.") from None


def _unzipped(path: Path, name: str, *, encoding: str = "utf-8") -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name).decode(encoding)
    except (OSError, zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not the expected archive ({error}). Get it again.") from None


LABEL_READERS: dict[str, Callable[[str], LabelledParts]] = {
    "ag_news": _ag_news,
    "movie_review_polarity": _movie_reviews,
    "subjectivity": _subjectivity,
    "qc": _questions,
    "names-nationality": _names,
}
TAG_READERS: dict[str, Callable[[str], TaggedParts]] = {"brown": _brown, "conll2000": _conll2000}
