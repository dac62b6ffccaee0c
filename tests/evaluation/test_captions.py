"""Scores of captions: BLEU as sacrebleu counts it, pictures shuffled, pictures found by their captions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from seqwise.data.batch import Batch
from seqwise.data.pair_store import Rows
from seqwise.data.schema import Schema, TokenSpec, caption_schema
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import Pixels, SeenStore, Views
from seqwise.data.specs import ImageSpec, RegionSpec
from seqwise.evaluation.captions import (
    CaptionScore,
    RowNats,
    captions_of,
    nats_per_token,
    retrieve,
    row_nats,
    seen_first,
    shuffled,
    words_of,
)
from seqwise.evaluation.segments import compare_segments
from seqwise.goals.caption import references_of
from seqwise.goals.sequence import search_settings
from seqwise.models import MODELS
from seqwise.text import train_tokenizer

REFERENCES = [["A dog runs .", "The dog is running , fast !"], ["Two men play chess ."], ["A cat ."] * 3]
HYPOTHESES = ["a dog is running fast .", "two men play a game .", "a cat ."]
NAMES = ["1.jpg", "2.jpg", "3.jpg"]


def score_of(hypotheses: list[str], **more: Any) -> CaptionScore:
    rows = np.array([0, 0, 1, 2, 2, 2])
    likelihood = RowNats(np.arange(6.0) + 1, np.array([4, 6, 5, 3, 3, 3]), 12)
    return CaptionScore(NAMES, hypotheses, REFERENCES, likelihood, rows, likelihood, None, "valid", **more)


def test_words_are_lower_case_without_punctuation() -> None:
    assert words_of("A man 's dog, a T-shirt & don't !") == "a man s dog a t-shirt don't"


def test_bleu_with_all_references_is_that_of_sacrebleu() -> None:
    score = score_of(HYPOTHESES)
    plain = [words_of(text) for text in HYPOTHESES]
    streams = [[words_of(texts[place]) if place < len(texts) else None for texts in REFERENCES] for place in range(3)]
    for order, mine in enumerate(score.bleu_by_order, start=1):
        theirs = BLEU(lowercase=True, tokenize="none", max_ngram_order=order).corpus_score(plain, streams)  # type: ignore[arg-type]
        assert mine == pytest.approx(theirs.score)
    assert -score.bleu_segments.value == pytest.approx(score.bleu_4)
    assert (score.bleu_1, score.bleu_2, score.bleu_3) == tuple(score.bleu_by_order[:3])
    assert "nrefs:var" in score.signature
    assert "tok:none" in score.signature


def test_what_a_score_says_of_itself() -> None:
    score = score_of(HYPOTHESES)
    assert score.exact_match == pytest.approx(1 / 3)
    assert score.nats_per_token == pytest.approx(21 / 24)
    assert score.nats_segments.statistics[0].tolist() == [[3, 10], [3, 5], [15, 9]]
    told = dict(score.rows())
    assert told["exact matches"] == "33.33 %"
    assert told["with the pictures shuffled"] == "0.8750 nats per token"
    assert score.to_dict()["pictures"] == 3
    assert score.headline().startswith("CIDEr ")


def test_models_are_compared_in_pairs_though_the_nearest_reference_may_be_another() -> None:
    first, second = score_of(HYPOTHESES), score_of(["a dog", "two men play chess", "a cat is here and sleeps"])
    for (metric, mine), (_, other) in zip(first.comparable, second.comparable, strict=True):
        assert np.isfinite(compare_segments(mine, other).gain), metric.name


def store_and_schema(num: int = 8) -> tuple[SeenStore, Schema]:
    """Pictures whose one region says which word follows; two captions each."""
    words = [f"word{number}" for number in range(num)]
    tokenizer = train_tokenizer("word", [" ".join(words) + " is here\n"] * 2)
    spec = TokenSpec(tokenizer)
    rows = [SeenRow((f"{n}.png",), (f"{words[n]} {tail}",)) for n in range(num) for tail in ("is here", "is")]
    tokens = Rows.of(spec.encode_texts(row.texts)[0] for row in rows)
    views = Views(np.eye(num, dtype=np.float32)[:, None] * 3)
    store = SeenStore(views, np.arange(num).repeat(2), {}, rows, tokens)
    return store, caption_schema(RegionSpec(num, has_boxes=False), spec)


@pytest.fixture(scope="module")
def learned() -> tuple[Any, SeenStore, Schema]:
    store, schema = store_and_schema()
    torch.manual_seed(0)
    row = MODELS["captioner"]
    model = row.build(row.config(model_dim=16, dropout=0.0, label_smoothing=0.0), schema)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    batch = store.batch(slice(None))
    for _ in range(60):
        optimizer.zero_grad()
        model.loss(batch).over({**batch.counts(), **batch.sizes()}).backward()
        optimizer.step()
    return model, store, schema


def test_a_caption_is_its_own_target_one_step_ahead() -> None:
    store, _ = store_and_schema()
    batch = store.batch(np.array([0, 1]))
    assert batch.inputs["tokens"].ids[0, 1:].tolist() == batch.targets["tokens"].ids[0, :-1].tolist()
    assert batch.counts() == {"tokens": 4 + 3}
    assert references_of(store)[2] == ["word2 is here", "word2 is"]


def test_captions_are_scored_row_by_row_and_the_mean_is_that_of_validation(learned: Any) -> None:
    model, store, _ = learned
    found = row_nats(model, store)
    for row in (0, 5):
        batch = store.batch(np.array([row]))
        with torch.no_grad():
            alone = -float(model.score(batch)[0].double().sum())
        assert found.nats[row] == pytest.approx(alone, abs=1e-4)
    assert found.per_token == pytest.approx(nats_per_token(model, store), abs=1e-5)
    assert found.tokens.tolist()[:2] == [4, 3]


def test_shuffled_pictures_cost_what_pictures_tell(learned: Any) -> None:
    model, store, _ = learned
    other = shuffled(store)
    assert other is not None
    assert not (other.picture_of == store.picture_of).any()
    assert sorted(set(other.picture_of.tolist())) == list(range(8))
    assert (other.picture_of[::2] == other.picture_of[1::2]).all()  # captions of one picture stay together
    assert row_nats(model, other).per_token > row_nats(model, store).per_token + 0.5
    assert shuffled(store.take(2)) is None


def test_retrieval_is_what_scoring_every_caption_with_every_picture_finds(learned: Any) -> None:
    model, store, _ = learned
    found = retrieve(model, store, num=5)
    assert found is not None
    assert found.pictures == 5
    assert found.recall(1) == 1.0
    torch.manual_seed(1)
    untrained = MODELS["captioner"].build(MODELS["captioner"].config(model_dim=8), learned[2]).eval()
    for parameter in untrained.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    everything = retrieve(untrained, store, num=8, seed=3)
    assert everything is not None
    rows = np.random.default_rng(3).permutation(len(store))
    _, first = np.unique(store.picture_of[rows], return_index=True)
    chosen = np.sort(rows[np.sort(first)])
    ranks = []
    for row in chosen:
        crossed = replace(store.choose(np.full(8, row)), picture_of=store.picture_of[chosen])
        nats = row_nats(untrained, crossed).nats
        ranks.append(1 + int((nats < nats[list(chosen).index(row)] - 1e-6).sum()))
    assert everything.ranks.tolist() == ranks
    assert everything.median_rank == np.median(ranks)


def test_each_picture_is_seen_once_and_nothing_changes() -> None:
    """Clips of two lengths, three captions each."""
    random = np.random.default_rng(0)
    pixels = Pixels(random.integers(0, 256, (4, 2, 1, 8, 8)).astype(np.uint8), np.array([2, 1, 2, 1]))
    words, schema = store_and_schema()
    schema = replace(schema, specs={**schema.specs, "image": ImageSpec(8, 8, (0.5,), (0.3,), max_frames=2)})
    store = replace(words.choose(np.arange(9)), pictures=pixels, picture_of=np.array([3, 3, 3, 1, 1, 1, 2, 2, 2]))
    torch.manual_seed(0)
    row = MODELS["captioner"]
    model = row.build(row.config(model_dim=8, widths=[4, 8]), schema).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    seen = seen_first(model, store)
    assert isinstance(seen.pictures, Views)
    assert len(seen.pictures) == 3
    np.testing.assert_allclose(row_nats(model, seen).nats, row_nats(model, store).nats, atol=1e-4)
    assert seen_first(model, seen) is seen


def test_a_caption_is_written_for_each_picture_once(learned: Any) -> None:
    model, store, schema = learned
    done: list[int] = []
    written = list(captions_of(model, schema, store, np.arange(8), search_settings(schema, max_tokens=9), done.append))
    assert sum(done) == 8
    for number, text in enumerate(written):
        assert text in (f"word{number} is here", f"word{number} is")
    assert isinstance(store.batch(slice(0, 1)), Batch)
