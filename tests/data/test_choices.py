"""Questions with choices: how files tell them, what is refused, and rows that stay together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.data.annotated import LabelledRow
from seqwise.data.choice_files import looks_like_choices, open_choices, questions_of, read_choices, which_word
from seqwise.data.choices import ChoiceStore, build_choice_store
from seqwise.data.kinds import task_for
from seqwise.data.schema import LabelSpec, Schema, TokenSpec, choice_schema
from seqwise.data.text_examples import RowBatches
from seqwise.errors import ConfigError, DataError
from seqwise.text.words import WordTokenizer

WORDS = [f"w{n}" for n in range(20)]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


FISH = ("where do fish live", ("in water", "in trees", "in fire"))
LAYOUTS: dict[str, list[dict[str, Any]]] = {
    "letters": [{"question": FISH[0], "choices": list(FISH[1]), "answer": letter} for letter in "ABC"],
    "from 0": [{"ctx": FISH[0], "endings": list(FISH[1]), "label": number} for number in range(3)],
    "from 1": [{"prompt": FISH[0], "options": list(FISH[1]), "label": number + 1} for number in range(3)],
    "texts": [{"question": FISH[0], "choices": list(FISH[1]), "answer": choice} for choice in FISH[1]],
    "columns": [
        {"question": FISH[0], **{f"ending{n}": text for n, text in enumerate(FISH[1])}, "label": number}
        for number in range(3)
    ],
    "lettered columns": [
        {"question": FISH[0], **{f"choice_{c}": text for c, text in zip("abc", FISH[1], strict=True)}, "answer": letter}
        for letter in "abc"
    ],
    "arc": [
        {"question": FISH[0], "choices": {"text": list(FISH[1]), "label": ["1", "2", "3"]}, "answerKey": key}
        for key in "123"
    ],
    "objects": [
        {
            "stem": FISH[0],
            "choices": [{"text": t, "label": c} for t, c in zip(FISH[1], "xyz", strict=True)],
            "gold": key,
        }
        for key in "xyz"
    ],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_questions_are_read_however_they_are_written(layout: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.jsonl", LAYOUTS[layout])
    assert looks_like_choices([path])
    assert task_for(None, [str(path)]) == "choice"
    found = read_choices([path], [])
    assert found.rows == [LabelledRow((FISH[0], *FISH[1]), str(number)) for number in (1, 2, 3)]
    assert [row.texts for row in questions_of(path, found.columns.as_given)] == [(FISH[0], *FISH[1])] * 3


def test_tables_have_a_column_for_each_choice_and_several_for_what_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    lines = [f'"fish, {i}",where {i},water {i},trees,{2 - i % 2}' for i in range(6)]
    path.write_text("\n".join(["context,question,answer1,answer2,label", *lines]) + "\n")
    found = read_choices([path], [])
    assert found.rows[0] == LabelledRow(("fish, 0 where 0", "water 0", "trees"), "2")
    assert "what is asked is in context and question, choices in answer1, answer2" in found.notes[0]
    assert found.notes[0].endswith("the right one in label, counted from 1")


def test_answers_that_are_missing_are_left_out_and_told(tmp_path: Path) -> None:
    rows = [{**LAYOUTS["from 0"][n % 3], "label": -1 if n in (1, 4) else n % 3} for n in range(8)]
    found = read_choices([written(tmp_path / "q.jsonl", rows)], [])
    assert len(found.rows) == 6
    assert found.notes[1] == "q.jsonl: 2 rows have no answer (lines 2 and 5) and are left out"


REFUSED = {
    "an answer that is no choice": ([{**LAYOUTS["letters"][0], "answer": "D"}], r'line 1: the answer "D" is none of'),
    "a number too high": (
        [*LAYOUTS["from 0"], {**LAYOUTS["from 0"][0], "label": 3}],
        r'line 4: the answer "3" is none of its 3 choices',
    ),
    "one choice": ([{"question": "x", "choices": ["a"], "answer": "A"}], "line 1 has 1 choice, and two are the fewest"),
    "no question": ([{"question": "", "choices": ["a", "b"], "answer": "A"}], "line 1 has no question"),
    "no answers": ([{"question": "x", "choices": ["a", "b"]}], r"no column with the right choice.*--columns label="),
    "no choices": ([{"question": "x", "label": 1}], r"no column is known for the choices.*--columns choices=NAME"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_wrong_is_told_with_its_line(what: str, tmp_path: Path) -> None:
    rows, told = REFUSED[what]
    with pytest.raises(DataError, match=told):
        read_choices([written(tmp_path / "q.jsonl", rows)], [])


def test_columns_can_be_named(tmp_path: Path) -> None:
    rows = [{"asked": f"x {n}", "given": ["a", "b"], "which": n % 2} for n in range(4)]
    path = written(tmp_path / "q.jsonl", rows)
    columns = ["text=asked", "choices=given", "label=which"]
    assert task_for(None, [str(path)], columns) == "choice"
    found = read_choices([path], columns)
    assert found.rows[1] == LabelledRow(("x 1", "a", "b"), "2")
    assert found.columns.as_given == tuple(columns)


def test_other_tables_are_not_taken_for_questions(tmp_path: Path) -> None:
    rows = [{"text": f"a film {n}", "answer": "good" if n % 2 else "bad"} for n in range(40)]
    assert not looks_like_choices([written(tmp_path / "reviews.jsonl", rows)])
    rows = [{"question": f"why {n}", "answers": "because", "label": n % 2} for n in range(40)]
    assert not looks_like_choices([written(tmp_path / "answers.jsonl", rows)])


def test_the_same_question_is_in_one_part(tmp_path: Path) -> None:
    rows = [{"question": f"what {n // 4}", "choices": [f"a{n}", f"b{n}"], "answer": "AB"[n % 2]} for n in range(160)]
    data = open_choices([written(tmp_path / "q.jsonl", rows)], split="50/25/25")
    asked = {part: {row.texts[0] for row in found} for part, found in data.parts.items()}
    assert not asked["train"] & (asked["valid"] | asked["test"])
    assert not asked["valid"] & asked["test"]
    assert data.description.startswith("q.jsonl: 160 questions with 2 choices each; shuffled, split 50/25/25 (train")
    with pytest.raises(ConfigError, match="has parts already"):
        open_choices([tmp_path / "q.jsonl"], test=tmp_path / "q.jsonl", split="50/50")


def test_the_toy_has_one_right_answer_each() -> None:
    rows = which_word()
    for row in rows:
        read, choices = row.texts[0].split(), row.texts[1:]
        assert [choice in read for choice in choices] == [str(n + 1) == row.answer for n in range(4)]
    share = np.bincount([int(str(row.answer)) for row in rows])[1:] / len(rows)
    assert abs(share - 0.25).max() < 0.03
    assert task_for(None, ["which-word"]) == "choice"


def schema() -> Schema:
    return choice_schema(TokenSpec(WordTokenizer(WORDS), num_texts=2), LabelSpec(["1", "2", "3", "4"]))


def store(num: int = 12) -> ChoiceStore:
    """Questions of 2 to 4 choices of different lengths; the first word of a question tells its number."""
    rows = []
    for n in range(num):
        choices = [" ".join(WORDS[c : c + 1 + (n + c) % 3]) for c in range(2 + n % 3)]
        rows.append(LabelledRow((" ".join([WORDS[n], *["w19"] * (n % 5)]), *choices), str(n % 2 + 1)))
    return build_choice_store(rows, schema())


def test_a_row_is_what_is_asked_and_one_choice() -> None:
    found, tokenizer = store(), WordTokenizer(WORDS)
    batch = found.batch(np.array([7, 0]))
    assert batch.groups is not None
    assert batch.groups.tolist() == [7, 7, 7, 0, 0]
    assert batch.targets["choice"].is_right.tolist() == [False, True, False, True, False]
    assert (batch.counts()["choice"], batch.sizes()["groups"], len(batch)) == (2, 2, 5)
    tokens = batch.inputs["tokens"]
    for row, (question, choice) in enumerate([(7, 0), (7, 1), (7, 2), (0, 0), (0, 1)]):
        context, *choices = found.rows[question].texts  # type: ignore[union-attr]
        boundary = tokenizer.boundary
        expected = [boundary, *tokenizer.encode(context), boundary, *tokenizer.encode(choices[choice]), boundary]
        assert tokens.ids[row, : len(expected)].tolist() == expected
        assert int(tokens.lengths[row]) == len(expected)
        assert tokens.segments is not None
        first = len(tokenizer.encode(context)) + 2
        assert tokens.segments[row, : len(expected)].tolist() == [0] * first + [1] * (len(expected) - first)


def test_what_is_taken_drawn_and_put_into_batches_are_whole_questions() -> None:
    found = store()
    assert len(found.take(5)) == 5
    chosen = found.choose(np.array([7, 2]))
    torch.testing.assert_close(
        chosen.batch(slice(0, 2)).inputs["tokens"].ids, found.batch(np.array([7, 2])).inputs["tokens"].ids
    )
    assert chosen.answers.tolist() == [1, 0]
    assert len(found.sample(6, seed=0)) == 6
    source, seen = RowBatches(found, batch_size=5, seed=0), []
    for step in range(source.steps_per_epoch):
        batch = source.batch(step)
        for part in batch.split(3):
            assert part.groups is not None
            assert torch.equal(part.groups, part.targets["choice"].groups)
            for group in part.groups.unique_consecutive().tolist():
                seen.append(group)
                assert int((part.groups == group).sum()) == len(found.rows[group].texts) - 1  # type: ignore[union-attr]
    assert sorted(seen) == list(range(12))


def test_more_choices_than_a_model_was_made_for_are_refused() -> None:
    with pytest.raises(DataError, match=r"new\.csv has a question with 5 choices, and the model was made for 4"):
        build_choice_store([LabelledRow(("w1", *WORDS[:5]), "1")], schema(), where="new.csv")
