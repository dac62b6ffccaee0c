"""Two texts read by one model: what moved, against maps and vectors that are known; and encoders on the page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Terminal
from models.test_vectors import LINES, vector_run
from torch import Tensor, nn

from seqwise.api import TrainedRun, train
from seqwise.data.batch import Batch, Tokens
from seqwise.data.schema import TokenSpec, vector_schema
from seqwise.errors import DataError
from seqwise.inspection.contrast import Seen, aligned, contrast, places_of
from seqwise.inspection.heads import CAUSAL, SELF, AttentionMap
from seqwise.inspection.inspect import compare_texts
from seqwise.inspection.reading import END, START, Reading
from seqwise.inspection.trace import Trace
from seqwise.text import special_of
from seqwise.text.wordpiece import WordPieceTokenizer

FIRST = [START, "the ", "dog ", "saw ", "it ", END]
SECOND = [START, "the ", "cat ", "saw ", "it ", END]


def seen(pieces: list[str], *weights: np.ndarray) -> Seen:
    batch = Batch({"tokens": Tokens(torch.arange(len(pieces)).unsqueeze(0))}, {})
    reading = Reading(pieces, list(range(len(pieces))), [math.nan] * len(pieces), [], batch, Trace(object()))
    return Seen(reading, [AttentionMap(f"body.blocks.{n}.attention", SELF, each) for n, each in enumerate(weights)])


def attention(random: np.random.Generator, num_heads: int, length: int) -> np.ndarray:
    found: np.ndarray = random.dirichlet(np.ones(length), size=(num_heads, length))
    return found


def test_the_head_that_looks_elsewhere_stands_first() -> None:
    before = attention(np.random.default_rng(0), 3, 6)
    after = before.copy()
    after[1, 4] = [0, 0, 1.0, 0, 0, 0]  # "it", of one head
    found = contrast(object(), seen(FIRST, before), seen(SECOND, after), word="it")
    assert [move.head for move in found.moves] == [1, 0, 2]
    assert found.moves[0].moved == pytest.approx(1 - before[1, 4, 2])
    assert [move.moved for move in found.moves[1:]] == [0, 0]
    shift = found.moves[0].shifts[0]
    assert (shift.first, shift.second, shift.after) == ("dog", "cat", 1.0)
    assert shift.before == pytest.approx(before[1, 4, 2])
    assert found.changed == [("dog", "cat")]
    assert contrast(object(), seen(FIRST, before), seen(SECOND, after), word="saw").moves[0].moved == 0


def test_without_a_word_the_mean_over_shared_tokens_is_taken() -> None:
    before, after = (attention(np.random.default_rng(seed), 2, 6) for seed in (0, 1))
    found = contrast(object(), seen(FIRST, before), seen(SECOND, after))
    rows = [1, 3, 4]  # the, saw, it
    for move in found.moves:
        a, b = (each[move.head, rows].mean(axis=0) for each in (before, after))
        assert move.moved == pytest.approx(np.abs(a - b).sum() / 2)
    assert found.moves[0].moved >= found.moves[1].moved


def test_what_stands_in_one_text_only_counts_together() -> None:
    longer = [START, "the ", "big ", "old ", "dog ", "saw ", "it ", END]
    before, after = attention(np.random.default_rng(0), 1, 6), attention(np.random.default_rng(1), 1, 8)
    (move,) = contrast(object(), seen(FIRST, before), seen(longer, after), word="it").moves
    a, b = before[0, 4], after[0, 6]
    same = [(0, 0), (1, 1), (2, 4), (3, 5), (4, 6), (5, 7)]
    gaps = [abs(a[x] - b[y]) for x, y in same]
    assert move.moved == pytest.approx((sum(gaps) + b[2] + b[3]) / 2)


def test_tokens_are_put_side_by_side() -> None:
    assert aligned(FIRST, SECOND) == ([(0, 0), (1, 1), (3, 3), (4, 4), (5, 5)], [(2, 2)])
    assert aligned(["a", "b", "c"], ["a", "c"]) == ([(0, 0), (2, 1)], [])


@pytest.mark.parametrize(
    ("pieces", "word", "places"),
    [
        (FIRST, "It", [4]),
        ([START, "un", "believ", "able ", "story ", END], "unbelievable", [1, 2, 3]),
        ([START, *"a cat sat"], "cat", [3, 4, 5]),
        ([START, "a", " bank", "er", " and", " bank"], "bank", [5]),
    ],
)
def test_a_word_is_found_in_its_pieces(pieces: list[str], word: str, places: list[int]) -> None:
    assert places_of(pieces, word) == places
    with pytest.raises(DataError, match='"street" does not stand in'):
        places_of(pieces, "street")


class TwoLayers(nn.Module):
    """Below, vectors of the ids alone; above, turned by how long the text is."""

    def layers(self, batch: Batch) -> tuple[Tensor, ...]:
        ids = batch.inputs["tokens"].ids.double()
        length = torch.tensor(float(ids.shape[1]))
        plain = torch.stack([ids + 1, torch.ones_like(ids)], dim=-1)
        turn = torch.stack([torch.stack([length.cos(), length.sin()]), torch.stack([-length.sin(), length.cos()])])
        return plain, plain @ turn.double()


def test_the_similarity_of_a_word_is_told_by_layer() -> None:
    pieces = [START, "a ", "bank "], [START, "a ", "bank ", "and "]
    found = contrast(TwoLayers(), seen(pieces[0]), seen(pieces[1]), word="bank")
    np.testing.assert_allclose(found.by_layer, [1.0, math.cos(1.0)], atol=1e-6)
    np.testing.assert_allclose(found.others_by_layer, [1.0, math.cos(1.0)], atol=1e-6)
    assert found.moves == []
    everything = contrast(TwoLayers(), seen(pieces[0]), seen(pieces[1]))
    np.testing.assert_allclose(everything.by_layer, [1.0, math.cos(1.0)], atol=1e-6)


# -- encoders ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    tokenizer = WordPieceTokenizer.train(["\n".join(LINES)], vocab_size=80)
    schema = vector_schema(TokenSpec(tokenizer, special_of(tokenizer)))
    run = vector_run(tmp_path_factory.mktemp("encoder") / "run", schema, num_layers=3, shared_layers=True)
    for weight in run.model.parameters():
        nn.init.normal_(weight, std=0.3)
    run.run.save_model(run.model)
    return run


def test_an_encoder_sees_both_ways_and_shared_layers_stand_one_by_one(encoder: TrainedRun, tmp_path: Path) -> None:
    found = encoder.inspect("the dog ran far")
    assert [one.site for one in found.attention] == [f"body.blocks.{layer}.attention" for layer in range(3)]
    assert {one.kind for one in found.attention} == {SELF}
    assert all(one.weights.shape == (2, 6, 6) for one in found.attention)
    np.testing.assert_allclose(found.attention[2].weights.sum(axis=-1), 1, atol=1e-5)
    assert found.attention[0].heads()[0].on_the_one_behind > 0
    streams = [one for one in found.over_text if one.what == "stream"]
    batch = found.reading.batch
    with torch.inference_mode():
        layers = encoder.model.layers(batch)[1:]
    assert [one.site for one in streams] == [f"body.blocks.{layer}" for layer in range(3)]
    for stream, layer in zip(streams, layers, strict=True):
        np.testing.assert_allclose(stream.values, layer[0].numpy(), atol=1e-5)
    assert found.positions is not None
    np.testing.assert_allclose(found.positions.vectors, encoder.model.body.positions.weight.detach().numpy(), atol=1e-6)


def test_who_reads_on_is_still_causal(tmp_path: Path) -> None:
    (tmp_path / "cats.txt").write_text("the cat sat on the mat\n" * 40)
    settings = ["model.model_dim=8", "model.num_layers=1", "model.num_heads=2", "model.context=16"]
    run = train(tmp_path / "cats.txt", "gpt", out=tmp_path / "run", steps=1, overrides=settings)
    (found,) = run.inspect("the cat").attention
    assert found.kind == CAUSAL
    assert found.heads()[0].on_the_one_behind == 0


def test_two_texts_of_an_encoder_stand_side_by_side(encoder: TrainedRun, terminal: Terminal) -> None:
    texts = ["--text", "the dog ran far", "--text", "the cat ran far"]
    found = json.loads(terminal.done("inspect", encoder.path, *texts, "--word", "ran", "--json")[0])["results"]
    between = found[0]["contrast"]
    assert (between["word"], len(between["moves"]), len(between["by_layer"])) == ("ran", 6, 4)
    assert between["by_layer"][0] == pytest.approx(1.0)
    assert between["by_layer"][-1] < 1.0
    moved = [move["moved"] for move in between["moves"]]
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > 0
    terminal.done("inspect", encoder.path, *texts, "--out", "page.html")
    assert "Heads that moved most" in Path("page.html").read_text()
    assert "--word compares a word" in terminal.refuses("inspect", encoder.path, "--text", "a dog", "--word", "dog")
    assert "does not stand in" in terminal.refuses("inspect", encoder.path, *texts, "--word", "street")


def test_the_same_text_twice_moves_nothing(encoder: TrainedRun) -> None:
    first, second = (encoder.inspect("the dog ran") for _ in range(2))
    compare_texts(encoder.model, first, second, word="dog")
    assert first.contrast is not None
    assert max(move.moved for move in first.contrast.moves) == 0
    np.testing.assert_allclose(first.contrast.by_layer, 1)


def test_the_page_of_two_texts_works_in_a_browser(encoder: TrainedRun, show: Callable[..., Any]) -> None:
    first, second = encoder.inspect("the dog ran far"), encoder.inspect("the cat ran far")
    compare_texts(encoder.model, first, second, word="ran")
    page = show(first, second)
    page.get_by_role("tab", name="Between").click()
    assert page.locator("#between table.moves tbody tr").count() == 6
    assert page.locator("#between figure").count() == 1
    page.get_by_role("tab", name="Reading").click()
    assert page.get_by_text("Nothing is guessed here").count() == 2


def test_layers_of_an_encoder_are_probed(encoder: TrainedRun, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    texts = [f"{'a' * (1 + n // 2)} {'cat' if n % 2 else 'dog'} sat" for n in range(80)]
    file.write_text("text,label\n" + "".join(f"{text},{'pet' if 'cat' in text else 'no'}\n" for text in texts))
    found = encoder.probe(file, split="valid")
    assert len(found.layers) == 4
    assert found.layers[0].accuracy > found.baseline


def test_of_tagged_rows_that_are_too_long_the_beginning_is_probed(encoder: TrainedRun, tmp_path: Path) -> None:
    """22 words fit beside [CLS] and [SEP] into 24 places; the 23rd stands where [SEP] would."""
    rows = [
        "".join(f"{'cat' if n == row % 3 else 'dog'}\t{'P' if n == row % 3 else 'O'}\n" for n in range(30 + row % 2))
        for row in range(60)
    ]
    (tmp_path / "tags.conll").write_text("\n".join(rows))
    found = encoder.probe(tmp_path / "tags.conll", split="valid")
    assert {len(layer.is_right) % 23 for layer in found.layers} == {0}
    assert found.layers[0].accuracy == 1.0
