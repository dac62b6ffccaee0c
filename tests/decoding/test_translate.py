"""Lines in, lines out: order, batches, empty and overlong lines, alignments, and no more memory for more lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.data.schema import pair_schema
from seqwise.decoding import DecodingConfig
from seqwise.decoding import translate as module
from seqwise.errors import ConfigError
from seqwise.evaluation.search_report import report_on_search
from seqwise.models import MODELS
from seqwise.text import train_tokenizer

translate = module.translate
SOURCE, TARGET = (train_tokenizer("char", [letters + "\n"]) for letters in ("abc", "xyz"))
SCHEMA = pair_schema(SOURCE, TARGET)
SEARCH = DecodingConfig(method="beam", beam_width=3, length_penalty=1.0, stop=TARGET.boundary, max_tokens=30)


def tiny(name: str = "transformer", **settings: Any) -> Any:
    row = MODELS[name]
    sizes: dict[str, Any] = {"model_dim": 8, "num_layers": 1}
    if name == "transformer":
        sizes["num_heads"] = 2
    model = row.build(row.config(**{**sizes, **settings}), SCHEMA)
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    return model.eval()


def some_lines(num: int) -> list[str]:
    random = np.random.default_rng(0)
    return ["".join(random.choice(list("abc"), size=n)) for n in random.integers(0, 12, size=num)]


@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
def test_each_line_is_answered_in_order_as_it_would_be_alone(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES", 7)
    monkeypatch.setattr(module, "PLACES", 60)
    model, lines, search = tiny(), some_lines(40), replace(SEARCH, method=method)
    together = list(translate(model, SCHEMA, lines, search, length_ratio=1.5))
    assert [answer.source for answer in together] == lines
    assert "" in lines
    for line, answer in zip(lines, together, strict=True):
        (alone,) = translate(model, SCHEMA, [line + "\n"], search, length_ratio=1.5)
        assert answer.texts == alone.texts
        assert answer.scores == pytest.approx(alone.scores, abs=1e-4)
        assert (answer.text == "") == (answer.hypotheses[0].tokens in ([], [TARGET.boundary]))
        if not line:
            assert (answer.texts, answer.scores) == ([""], [0.0])
        assert len(answer.hypotheses[0].tokens) <= int(1.5 * (len(line) + 1)) + 1 + module.MORE_TOKENS


def test_no_more_lines_are_read_than_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES", 5)
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for line in ["abc", "a", "", "cab", "b"] * 1000:
            read += 1
            yield line

    answers = translate(tiny(), SCHEMA, lines(), replace(SEARCH, method="greedy"), length_ratio=1.0)
    for number in range(1, 23):
        next(answers)
        assert read <= number + 5


def test_several_answers_are_sorted_by_the_score_that_search_maximises() -> None:
    search = replace(SEARCH, num_results=3, length_form="gnmt")
    for answer in translate(tiny(), SCHEMA, ["abc", "ccba"], search, length_ratio=1.0):
        assert len(answer.texts) == len(answer.scores) == 3
        assert answer.scores == sorted(answer.scores, reverse=True)
        for hypothesis, score in zip(answer.hypotheses, answer.scores, strict=True):
            assert score == pytest.approx(hypothesis.log_prob / ((5 + len(hypothesis.tokens)) / 6))


def test_a_line_beyond_learned_positions_is_read_from_its_beginning_and_marked() -> None:
    model = tiny(positions="learned", context=6)
    long, cut, short = translate(model, SCHEMA, ["abcabcabc", "abcab", "ab"], SEARCH, length_ratio=1.0)
    assert [answer.is_cut for answer in (long, cut, short)] == [True, False, False]
    assert long.texts == cut.texts  # the first five characters, and the boundary
    assert all(len(answer.hypotheses[0].tokens) <= 6 for answer in (long, cut, short))


def test_characters_that_were_never_seen_are_read_all_the_same() -> None:
    (answer,) = translate(tiny(), SCHEMA, ["aÿ漢b"], SEARCH, length_ratio=1.0)
    assert isinstance(answer.text, str)


@pytest.mark.parametrize("name", ["seq2seq", "transformer"])
def test_an_alignment_has_a_row_for_each_piece_of_the_best_answer(name: str) -> None:
    model = tiny(name)
    for answer in translate(model, SCHEMA, ["abc", "", "ca"], SEARCH, length_ratio=1.0, with_alignments=True):
        found = answer.alignment
        if not answer.source:
            assert found is None
            continue
        assert found is not None
        assert found.source == list(answer.source)
        tokens = [token for token in answer.hypotheses[0].tokens if token != TARGET.boundary]
        assert found.target == [TARGET.piece(token) for token in tokens]
        assert found.weights.shape == (len(found.target), len(found.source))
        assert (found.weights.sum(dim=1) <= 1 + 1e-5).all()
        links = [tuple(map(int, link.split("-"))) for link in found.links().split()]
        assert [target for _, target in links] == list(range(len(found.target)))
        assert all(int(found.weights[target].argmax()) == source for source, target in links)


def test_a_model_without_attention_has_no_alignment_to_tell() -> None:
    with pytest.raises(ConfigError, match="no attention to read an alignment from"):
        list(
            translate(
                tiny("seq2seq", attention="none"), SCHEMA, ["abc"], SEARCH, length_ratio=1.0, with_alignments=True
            )
        )


def test_the_report_on_search_counts_what_narrow_beams_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MORE_TOKENS", 1)
    model = tiny("seq2seq")
    pairs = [(line, "xy") for line in ("a", "b", "c", "aa", "ab", "bc")]
    search = replace(SEARCH, max_tokens=3, length_penalty=0.0)
    found = report_on_search(model, SCHEMA, pairs, search, length_ratio=0.7, widths=(1, 2, 8))
    assert found.has_exhaustive
    assert found.pairs == 6
    best = translate(model, SCHEMA, [s for s, _ in pairs], replace(search, method="exhaustive"), length_ratio=0.7)
    exact = np.array([answer.scores[0] for answer in best])
    for one in found.widths:
        mine = translate(model, SCHEMA, [s for s, _ in pairs], replace(search, beam_width=one.width), length_ratio=0.7)
        scores = np.array([answer.scores[0] for answer in mine])
        assert (scores <= exact + 1e-4).all()
        assert one.score == pytest.approx(scores.mean())
        assert one.search_errors == pytest.approx((exact - scores > 1e-4).mean())
    assert found.widths[0].search_errors > 0  # else the test would show nothing
    assert [one.search_errors for one in found.widths] == sorted((w.search_errors for w in found.widths), reverse=True)
    assert len(list(found.rows())) == 4
    assert found.to_dict()["widths"][1]["width"] == 2


def test_it_is_told_how_many_answers_there_are_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACES", 60)
    lines, told = some_lines(30), list[int]()
    answers = list(translate(tiny(), SCHEMA, lines, SEARCH, length_ratio=2.0, on_progress=told.append))
    assert len(answers) == 30
    assert sum(told) == 30  # those to empty lines among them, so that progress ends with all of them
    assert len(told) > 2
