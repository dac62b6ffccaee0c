"""Windows of passages: every token is read, answers stand where they should, characters are found again."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqwise.data.questions import Question, Reference
from seqwise.data.schema import Schema, SpanSpec, TokenSpec, span_schema
from seqwise.data.span_store import WindowBatches, build_span_store, windows_of
from seqwise.text import special_of, train_tokenizer

PASSAGES = [
    "Die Straße führt\nnach Köln. Ein Café — 3,5 km weit — heißt „Zur Brücke“ und liegt am Ufer.",
    "A key is in the box; the lamp isn't on the table. " * 4,
]


def schema_of(kind: str) -> Schema:
    tokenizer = train_tokenizer(
        kind, [f"{passage}\n" for passage in PASSAGES] * 3, **({} if kind == "char" else {"vocab_size": 400})
    )
    return span_schema(TokenSpec(tokenizer, special_of(tokenizer), num_texts=2), SpanSpec())


def questions() -> list[Question]:
    """On every word of each passage."""
    rows = []
    for passage in PASSAGES:
        place = 0
        for word in passage.split():
            place = passage.find(word, place)
            rows.append(Question(f"{len(rows)}", f"Where is {word}?", passage, (Reference(word, place),)))
            place += len(word)
    return rows


@pytest.mark.parametrize(
    ("length", "room", "stride"),
    [(10, 20, None), (50, 20, None), (50, 20, 7), (41, 20, 20), (3, 1, None), (0, 5, None)],
)
def test_windows_cover_a_passage(length: int, room: int, stride: int | None) -> None:
    found = list(windows_of(length, room, stride))
    assert found[0][0] == 0
    assert found[-1][1] == length
    assert {token for first, last in found for token in range(first, last)} == set(range(length))
    assert all(last - first <= room for first, last in found)
    assert all(last == first + room for first, last in found[:-1])


@pytest.mark.parametrize("kind", ["char", "word", "bpe", "wordpiece"])
def test_spans_are_the_characters_of_the_passage(kind: str) -> None:
    store = build_span_store(questions(), schema_of(kind))
    for number, row in enumerate(store.rows):
        begin, end = store.characters(number, *store.answers[number].tolist())
        text, start = row.references[0]
        assert begin <= start
        assert start + len(text) <= end
        assert row.passage[begin:end].strip() == text or kind in ("word", "wordpiece")
        assert text in row.passage[begin:end]


@pytest.mark.parametrize("kind", ["word", "wordpiece", "char"])
def test_rows_are_question_and_window_and_answers_stand_in_them(kind: str) -> None:
    schema = schema_of(kind)
    store, spec = build_span_store(questions(), schema), schema.input("tokens", TokenSpec)
    windows = store.windows(24)
    batch = windows.batch(np.arange(len(windows)))
    tokens, spans, seen = batch.inputs["tokens"], batch.targets["span"], set()
    assert tokens.shape[1] <= 24
    for window, (number, first, last) in enumerate(windows.cuts.tolist()):
        row, length = tokens.ids[window], int(tokens.lengths[window])
        asked = spec.encode(store.rows[number].text)[: windows.question_steps[number]]
        whole = spec.tokenizer.encode(store.rows[number].passage.replace("\n", " "))
        behind = [spec.separator]
        expected = [spec.begin, *asked, *behind, *whole[first:last], *behind]
        assert row[:length].tolist() == expected
        a, b = spans.passages[window].tolist()
        assert row[a : b + 1].tolist() == whole[first:last].tolist()
        assert tokens.segments[window, :length].tolist() == [0] * (2 + len(asked)) + [1] * (last - first + 1)
        start, end = spans.places[window].tolist()
        if (start, end) != (0, 0):
            seen.add(number)
            answer = store.answers[number]
            assert row[start : end + 1].tolist() == whole[answer[0] : answer[1] + 1].tolist()
            assert (start - a + first, end - a + first) == tuple(answer)
        else:
            answer = store.answers[number]
            assert answer[0] < first or answer[1] >= last
    assert torch.equal(batch.groups, torch.from_numpy(windows.question_of.astype(np.int64)))
    if kind == "word":
        assert seen == set(range(len(store)))  # words are one token: each stands in some window


def test_a_passage_is_kept_once() -> None:
    store = build_span_store(questions(), schema_of("word"))
    assert len(store.passages) == 2
    assert len(store.passages.ids) == len(store.offsets)
    some = store.choose(np.array([3, 0]))
    assert [row.id for row in some.rows] == ["3", "0"]
    assert some.passages is store.passages
    assert len(store.take(5)) == 5


def test_long_questions_leave_room_for_the_passage() -> None:
    row = Question("1", "why " * 100, PASSAGES[1], (Reference("key", 2),))
    store = build_span_store([row], schema_of("word"))
    windows = store.windows(31)
    assert windows.question_steps.tolist() == [14]
    assert windows.lengths.max() == 31


def test_what_most_people_answered_is_learned() -> None:
    references = (Reference("key", 2), Reference("lamp", 25), Reference("lamp", 25))
    store = build_span_store([Question("1", "What?", PASSAGES[1], references)], schema_of("word"))
    assert PASSAGES[1][slice(*store.characters(0, *store.answers[0]))] == "lamp"


def test_an_answer_that_stands_nowhere_is_not_looked_for() -> None:
    rows = [
        Question("1", "What?", PASSAGES[1], (Reference("coin", -1),)),
        Question("2", "What?", PASSAGES[1], (Reference("coin", -1), Reference("coin", -1), Reference("key", 2))),
    ]
    store = build_span_store(rows, schema_of("word"))
    assert store.answers[0].tolist() == [-1, -1]
    assert PASSAGES[1][slice(*store.characters(1, *store.answers[1]))] == "key"
    assert len(store.answer_lengths) == 1


def test_every_window_is_read_once_an_epoch_with_others_of_its_length() -> None:
    store = build_span_store(questions(), schema_of("word"))
    windows = store.windows(20)
    batches = WindowBatches(windows, batch_size=4, seed=1)
    for epoch in (0, 1):
        steps = range(epoch * batches.steps_per_epoch, (epoch + 1) * batches.steps_per_epoch)
        groups = torch.cat([batches.batch(step).groups for step in steps])
        assert sorted(groups.tolist()) == sorted(windows.question_of.tolist())
    again = WindowBatches(windows, batch_size=4, seed=1).batch(5)
    assert torch.equal(again.inputs["tokens"].ids, batches.batch(5).inputs["tokens"].ids)
    assert batches.batch(0).split(2)[0].groups is not None
