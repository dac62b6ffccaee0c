"""Tagged words out of every layout, entities in one scheme, mistakes told with their lines, and lines written back."""

from __future__ import annotations

import gzip
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.annotated import TaggedData, TaggedRow
from seqwise.data.kinds import task_for
from seqwise.data.tag_files import looks_tagged, open_tagged, open_whole_tagged, words_of, write_tagged
from seqwise.data.tag_layouts import TagLayout, layout_of
from seqwise.data.tag_schemes import entities_of, to_scheme
from seqwise.errors import ConfigError, DataError

RANDOM = random.Random(0)
ROWS = [
    TaggedRow(
        tuple(f"w{n}.{place}" for place in range(length)), tuple(RANDOM.choices(["DET", "NOUN", "VERB"], k=length))
    )
    for n, length in enumerate(RANDOM.choices(range(1, 7), k=60))
]


def entities(length: int) -> tuple[str, ...]:
    """In IOB2."""
    tags = [RANDOM.choice(["O", "O", "B-PER", "B-LOC"]) for _ in range(length)]
    for place, (before, after) in enumerate(pairwise(tags), start=1):
        if before != "O" and after != "O" and RANDOM.random() < 0.5:
            tags[place] = f"I-{tags[place - 1][2:]}"
    return tuple(tags)


ENTITIES = [row._replace(tags=entities(len(row.words))) for row in ROWS]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def in_columns(rows: list[TaggedRow], between: str = " ", middle: str = "", blank: str = "") -> str:
    sentences = ["".join(f"{w}{between}{middle}{t}\n" for w, t in zip(*row[:2], strict=True)) for row in rows]
    return f"{blank}\n".join(sentences)


def in_conllu(rows: list[TaggedRow]) -> str:
    text = ""
    for number, row in enumerate(rows):
        text += f"# sent_id = {number}\n# text = {' '.join(row.words)}\n1-2\tboth\t_\t_\t_\t_\t_\t_\t_\t_\n"
        for place, (word, tag) in enumerate(zip(*row[:2], strict=True), start=1):
            text += f"{place}\t{word}\tlemma\t{tag}\tX{tag}\t_\t0\troot\t_\t_\n"
        text += f"{len(row.words)}.1\tempty\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n"
    return text


def found(data: TaggedData) -> set[TaggedRow]:
    return {row for rows in data.parts.values() for row in rows}


def told(data: TaggedData, sentence: str) -> bool:
    return any(sentence in note for note in data.notes)


# -- layouts -------------------------------------------------------------------------------------------------------


LAYOUTS = {
    "x.conllu": in_conllu(ROWS),
    "x.conll": in_columns(ROWS),
    "x.pos": in_columns(ROWS, "\t"),
    "x.tsv": in_columns(ROWS, "\t"),
    "four.conll": in_columns(ROWS, " ", "X O "),
    "blank.conll": in_columns(ROWS, "\t", blank="\t"),
    "crlf.conll": in_columns(ROWS).replace("\n", "\r\n"),
    "documents.conll": "-DOCSTART- X\n\n" + in_columns(ROWS[:5]) + "\n-DOCSTART- X\n\n" + in_columns(ROWS[5:]),
    "comments.conll": "# id 12 domain=en more\n" + in_columns(ROWS),
    "x.jsonl": "".join(json.dumps({"tokens": row.words, "tags": row.tags}) + "\n" for row in ROWS),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_same_rows_in_every_layout(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, LAYOUTS[name])
    data = open_tagged([path])
    assert found(data) == set(ROWS)
    assert (data.tags, data.scheme, data.labels) == (["DET", "NOUN", "VERB"], "", [])
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 54, "valid": 3, "test": 3}
    assert told(data, "(3: DET, NOUN, VERB)")
    assert looks_tagged([path])
    assert task_for(None, [str(path)]) == "tags"
    assert list(words_of(path)) == [row.words for row in ROWS]
    assert [row.words for row in open_whole_tagged([path], tags=["DET", "NOUN", "VERB"]).parts["whole"]] == [
        row.words for row in ROWS
    ]


def test_other_tags_of_the_same_words(tmp_path: Path) -> None:
    path = written(tmp_path, "x.conllu", in_conllu(ROWS))
    assert open_tagged([path], columns=["tags=xpos"]).tags == ["XDET", "XNOUN", "XVERB"]
    assert open_tagged([path], columns=["tags=XPOS"]).columns == ("tags=XPOS",)
    with pytest.raises(ConfigError, match=r'no such field in \.conllu\. Did you mean "xpos"\?'):
        open_tagged([path], columns=["tags=xpo"])
    path = written(tmp_path, "x.conll", in_columns(ENTITIES, " ", "NN XX "))
    with pytest.raises(ConfigError, match=r'it has 4 columns, named by their number; got "9"\. Try tags=4\.'):
        open_tagged([path], columns=["tags=9"])
    rows = [{"toks": row.words, "kinds": row.tags, "topic": "ab"[len(row.words) % 2]} for row in ROWS]
    path = written(tmp_path, "x.jsonl", "\n".join(map(json.dumps, rows)))
    data = open_tagged([path], columns=["text=toks", "tags=kinds", "label=topic"])
    assert found(data) == {row._replace(label="ab"[len(row.words) % 2]) for row in ROWS}


def slots(folder: Path, part: str, rows: list[TaggedRow], *, nested: bool) -> None:
    where = folder / part if nested else folder
    where.mkdir(exist_ok=True)
    front = "" if nested else f"{part}."
    (where / f"{front}seq.in").write_text("".join(" ".join(row.words) + " \n" for row in rows))
    with gzip.open(where / f"{front}seq.out.gz", "wt") as out:
        out.write("".join(" ".join(row.tags) + "\n" for row in rows))
    (where / f"{front}label").write_text("".join(f"{row.label}\n" for row in rows))


@pytest.mark.parametrize("nested", [True, False])
def test_slots_have_tags_and_a_label(nested: bool, tmp_path: Path) -> None:
    rows = [row._replace(label=f"intent {n % 3}") for n, row in enumerate(ENTITIES)]
    for part, some in (("train", rows[:40]), ("valid", rows[40:50]), ("test", rows[50:])):
        slots(tmp_path, part, some, nested=nested)
    data = open_tagged([tmp_path])
    assert data.parts == {"train": rows[:40], "valid": rows[40:50], "test": rows[50:]}
    assert (data.labels, data.scheme) == (["intent 0", "intent 1", "intent 2"], "IOB2")
    assert looks_tagged([tmp_path])
    file = tmp_path / "train" / "seq.in" if nested else tmp_path / "train.seq.in"
    assert found(open_tagged([file])) == set(rows[:40])
    assert list(words_of(file)) == [row.words for row in rows[:40]]


@pytest.mark.parametrize("names", [("eng.train", "eng.testa", "eng.testb"), ("train.txt", "dev.txt", "test.txt")])
def test_parts_of_a_folder(names: tuple[str, ...], tmp_path: Path) -> None:
    cuts = {"train": ENTITIES[:40], "valid": ENTITIES[40:50], "test": ENTITIES[50:]}
    for name, rows in zip(names, cuts.values(), strict=True):
        written(tmp_path, name, in_columns(rows))
    written(tmp_path, "README.md", "about it")
    assert open_tagged([tmp_path]).parts == cuts
    assert task_for(None, [str(tmp_path)]) == "tags"
    (tmp_path / names[1]).unlink()
    data = open_tagged([tmp_path])
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 36, "valid": 4, "test": 10}
    assert told(data, "there is no part to validate on: it is 10 % of the training part")
    written(tmp_path, "train2_train.conll", in_columns(ENTITIES))
    with pytest.raises(DataError, match="cannot tell which file is the train part"):
        open_tagged([tmp_path])


def test_parts_are_the_same_whatever_the_order_and_identical_sentences_are_together(tmp_path: Path) -> None:
    rows = ROWS * 3
    data = open_tagged([written(tmp_path, "x.conll", in_columns(rows))])
    RANDOM.shuffle(rows)
    again = open_tagged([written(tmp_path, "x.conll", in_columns(rows))])
    assert again.parts == data.parts
    words = [{row.words for row in some} for some in data.parts.values()]
    assert not words[0] & words[1] | words[0] & words[2] | words[1] & words[2]


@pytest.mark.parametrize(
    ("name", "text", "task"),
    [
        ("x.txt", in_columns(ROWS), "text"),  # two words a line, and blank lines between
        ("x.txt", in_columns(ENTITIES), "tags"),
        ("x.txt", in_columns(ENTITIES).replace("\n\n", "\n"), "text"),
        ("x.tsv", in_columns(ROWS, "\t").replace("\n\n", "\n"), "pairs"),
        ("x.tsv", "".join(f"word{n}\tmot{n}\n\n" for n in range(99)), "pairs"),
        ("x.jsonl", '{"source": "a", "target": "b"}\n', "pairs"),
    ],
)
def test_other_files_are_not_taken_for_tagged_words(name: str, text: str, task: str, tmp_path: Path) -> None:
    assert task_for(None, [str(written(tmp_path, name, text))]) == task


# -- entities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES", "BILOU"])
def test_entities_are_converted_and_it_is_said(scheme: str, tmp_path: Path) -> None:
    rows = [row._replace(tags=tuple(to_scheme(row.tags, scheme))) for row in ENTITIES]
    data = open_tagged([written(tmp_path, "x.conll", in_columns(rows))])
    assert found(data) == set(ENTITIES)
    assert data.scheme == "IOB2"
    verb = "and stay so" if scheme == "IOB2" else "and are converted to IOB2"
    assert any(note.startswith(f"entities are marked by {scheme} (") and note.endswith(verb) for note in data.notes)


def test_an_inside_after_none_is_kept_counted_and_told_with_its_line(tmp_path: Path) -> None:
    odd = TaggedRow(("in", "old", "Rome", "now"), ("O", "O", "I-LOC", "I-LOC"))
    path = written(tmp_path, "x.conll", in_columns([*ENTITIES[:2], odd, *ENTITIES[2:]]))
    line = sum(len(row.words) + 1 for row in ENTITIES[:2]) + 1
    data = open_tagged([path])
    assert told(
        data, f"1 tag does not fit that scheme and is kept: I-LOC after O (1, first in {path}, sentence of line {line})"
    )
    kept = next(row for row in found(data) if row.words == odd.words)
    assert kept.tags == ("O", "O", "B-LOC", "I-LOC")
    assert entities_of(kept.tags) == entities_of(odd.tags)


# -- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.conll", "a DET\nb NOUN\n\nc\n\nd DET\n", r"line 4 has 1 columns, and most lines have 2: \"c\"\."),
        ("x.conll", "a DET\nb NOUN more\n\nd DET\n", r"line 2 has 3 columns, and most lines have 2"),
        ("x.conll", "a\tDET\nb\t\n\nd\tDET\n", r"line 2 has 1 columns|line 2 has no tag"),
        ("x.conll", "a\tDET\n \tNOUN\n\nd\tDET\n", r"line 2 has no word"),
        ("x.conll", "a\nb\n\nc\n", r"one column, so there are words and no tags"),
        ("x.conll", "a O\n\nb O\n\nc O\n", r'all words to train on have the tag "O": there is nothing to learn'),
        ("x.conll", "a O\n\nb DET\n", r"2 sentences with words and tags; 3 are the fewest"),
        ("x.conll", "", r"0 sentences with words and tags"),
        ("x.conllu", "1\ta\t_\tDET\n", r"line 1 has 4 columns, and \.conllu has 10"),
        ("x.conllu", "1\ta\t_\t_\tX\t_\t_\t_\t_\t_\n", r"no tags in UPOS\. Try --columns tags=xpos"),
        ("x.txt", "only words\n", r"no tagged words in it\. Give a \.conllu file"),
        ("x.jsonl", '{"words": ["a"], "tags": ["b", "c"]}\n', r"line 1 has 2 tags, and its sentence has 1 words"),
        ("x.jsonl", '{"words": ["a"], "kinds": ["b"]}\n', r"line 1 has no list in tags or .* --columns tags=NAME"),
    ],
)  # fmt: skip
def test_mistakes_are_told(name: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        open_tagged([written(tmp_path, name, text)])


def test_mistakes_in_slots_are_told(tmp_path: Path) -> None:
    for name, text in (("seq.in", "a b\nc\nd\n"), ("seq.out", "O B-x\nO O\nO\n"), ("label", "p\nq\np\n")):
        written(tmp_path, f"train.{name}", text)
    with pytest.raises(DataError, match=r"train\.seq\.out: line 2 has 2 tags, and its sentence has 1 words"):
        open_tagged([tmp_path])
    written(tmp_path, "train.seq.out", "O B-x\nO\n")
    with pytest.raises(DataError, match=r"seq\.in has 3 lines and .*seq\.out has 2"):
        open_tagged([tmp_path])
    written(tmp_path, "train.seq.out", "O B-x\nO\nO\n")
    written(tmp_path, "train.label", "p\n\np\n")
    with pytest.raises(DataError, match=r"train\.label: line 2 has no label"):
        open_tagged([tmp_path])
    (tmp_path / "train.seq.out").unlink()
    with pytest.raises(DataError, match="no tagged words to train on: expected files such as"):
        open_tagged([tmp_path])


def test_words_without_a_tag_in_conllu_are_left_out_and_counted(tmp_path: Path) -> None:
    text = in_conllu(ROWS) + "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n"
    data = open_tagged([written(tmp_path, "x.conllu", text)])
    assert found(data) == set(ROWS)
    line = text.count("\n")
    assert told(data, f"x.conllu: 1 sentence has a word without a tag (line {line}) and is left out")


def test_what_the_training_part_lacks_is_told(tmp_path: Path) -> None:
    train = written(tmp_path, "train.conll", in_columns(ROWS))
    test = written(tmp_path, "test.conll", in_columns([ROWS[3], TaggedRow(("a", "b"), ("DET", "NEW"))]))
    data = open_tagged([train], test=test, valid=train)
    assert told(data, 'test: 1 word has a tag that the training part lacks ("NEW"), and no model can be right there')
    assert told(data, "test: 1 of 2 sentences stand in the training part too")
    assert data.tags == ["DET", "NOUN", "VERB"]


def test_a_file_with_other_tags_is_told_and_a_few_unknown_ones_stay(tmp_path: Path) -> None:
    path = written(tmp_path, "x.conll", in_columns([*ROWS[:9], TaggedRow(("a", "b"), ("DET", "NEW"))]))
    data = open_whole_tagged([path], (), ["DET", "NOUN", "VERB"])
    assert data.parts["whole"][-1].tags == ("DET", "NEW")
    line = sum(len(row.words) + 1 for row in ROWS[:9]) + 1
    assert told(
        data, f'1 word has a tag that the model does not know (first in {path}, sentence of line {line}: "NEW")'
    )
    with pytest.raises(DataError, match=r"x\.conll: its tags are of another kind than the model's .*line 1.*tags=N"):
        open_whole_tagged([path], (), ["O", "B-PER", "I-PER"])
    with pytest.raises(DataError, match="no sentences with words and tags"):
        open_whole_tagged([written(tmp_path, "y.conll", "\n")])


# -- words to tag, and tagged words ----------------------------------------------------------------------------------


def test_words_alone_are_lines_or_columns(tmp_path: Path) -> None:
    assert list(words_of(written(tmp_path, "x.txt", "to  Rome\n\nand back\n"))) == [("to", "Rome"), (), ("and", "back")]
    assert list(words_of(written(tmp_path, "x.conll", "to\nRome\n\nback\n"))) == [("to", "Rome"), ("back",)]
    assert list(words_of(written(tmp_path, "x.jsonl", '{"words": ["to", "Rome"]}\n'))) == [("to", "Rome")]
    assert list(words_of(written(tmp_path, "train.seq.in", "to Rome\n"))) == [("to", "Rome")]


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("x.conllu", in_conllu(ROWS), []),
        ("x.conllu", in_conllu(ROWS), ["tags=xpos"]),
        ("x.conll", in_columns(ROWS), []),
        ("x.tsv", in_columns(ROWS, "\t"), []),
        ("x.jsonl", LAYOUTS["x.jsonl"], []),
    ],
)
def test_what_is_written_reads_back(name: str, text: str, columns: list[str], tmp_path: Path) -> None:
    layout = layout_of(written(tmp_path, name, text), columns)
    rows = [row._replace(label="some") for row in ROWS]
    again = written(tmp_path, name, "".join(f"{line}\n" for line in write_tagged(rows, layout)))
    assert open_whole_tagged([again], columns).parts["whole"] == ROWS


def test_slots_and_lines_are_written(tmp_path: Path) -> None:
    rows: list[Any] = [TaggedRow(("to", "Rome"), ("O", "B-city")), TaggedRow(("back",), ("O",), "return")]
    assert list(write_tagged(rows, TagLayout("slots"))) == ["O B-city", "return\tO"]
    layout = layout_of(written(tmp_path, "x.txt", "to Rome\n"))
    assert list(write_tagged(rows, layout)) == ["to\tO", "Rome\tB-city", "", "# label = return", "back\tO", ""]
