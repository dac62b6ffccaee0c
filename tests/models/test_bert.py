"""BERT: published sizes, a reference by torch, padding, hidden words, and what it learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

import seqwise
from seqwise.data.batch import Batch, Labels, Tokens
from seqwise.data.masking import MaskedStore, Masking
from seqwise.data.schema import LabelSpec, Schema, TokenSpec, answer_schema, masked_schema
from seqwise.data.store import TokenStore
from seqwise.errors import ConfigError, DataError
from seqwise.inspection.trace import record
from seqwise.models import MODELS
from seqwise.models.bert import SIZES, BERTBody, BERTConfig
from seqwise.text.symbols import SymbolTokenizer

VOCAB = 20
SMALL: dict[str, Any] = {"context": 24, "num_layers": 2, "model_dim": 16, "num_heads": 2, "pooling": "first"}
SETTINGS = [{}, {"shared_layers": True}, {"embed_dim": 6}, {"positions": "rotary"}]


def schema(*, next_sentence: bool = True) -> Schema:
    return masked_schema(SymbolTokenizer(VOCAB), next_sentence=next_sentence)


def build(**settings: Any) -> Any:
    torch.manual_seed(0)
    row = MODELS["bert"]
    model = row.build(row.config(**{**SMALL, **settings}), schema())
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def batch_of(num: int = 6, *, share: float = 0.4) -> Batch:
    random = np.random.default_rng(0)
    ids = np.concatenate([np.append(random.integers(1, VOCAB, size=size), [0, 0]) for size in (14, 30, 9, 25, 18)])
    store = MaskedStore(TokenStore(np.append(0, ids), len(ids)), schema().input("tokens", TokenSpec), has_pairs=True)
    rows = store.rows(SMALL["context"])
    return rows.batch(np.arange(min(num, len(rows))), Masking(share=share), (0, 0))


@pytest.mark.parametrize(
    ("size", "parameters"),
    [("tiny", 4_385_920), ("mini", 11_170_560), ("small", 28_763_648), ("base", 109_482_240), ("large", 335_141_888)],
)
def test_published_sizes_have_published_counts(size: str, parameters: int) -> None:
    """With the pooler, 30,522 pieces of words and 512 places."""
    with torch.device("meta"):
        body = BERTBody(BERTConfig(**SIZES[size]), masked_schema(SymbolTokenizer(30_520), next_sentence=True))
    assert sum(parameter.numel() for parameter in body.parameters()) == parameters


@pytest.mark.parametrize("settings", [*SETTINGS, {"num_layers": 1}, {"pooler_activation": "relu"}])
def test_the_first_place_alone_is_what_it_is_among_all(settings: dict[str, Any]) -> None:
    """Value and gradient, padded and not: computing the top for one place changes neither."""
    body = build(**settings).double().body
    is_there = torch.tensor([[True] * 7, [True] * 4 + [False] * 3, [True] * 6 + [False]])
    ids, segments = torch.randint(1, VOCAB, (3, 7)), (torch.arange(7) > 2).long().expand(3, 7)
    for field in (Tokens(ids, is_there, segments=segments), Tokens(ids, segments=segments)):
        found = []
        for encoded in (body.encode({"tokens": field}), body.encode_first({"tokens": field})):
            body.zero_grad()
            encoded.stream.pooled.square().sum().backward()
            found.append([encoded.stream.pooled, *(each.grad.clone() for each in body.parameters())])
        for all_places, one_place in zip(*found, strict=True):
            torch.testing.assert_close(one_place, all_places, atol=1e-10, rtol=1e-10)


def test_heads_that_read_the_first_place_ask_for_no_other() -> None:
    row, labels = MODELS["bert"], LabelSpec(["a", "b"])
    shapes = {}
    for pooling in ("first", "mean"):
        model = row.build(
            row.config(**{**SMALL, "pooling": pooling}), answer_schema(TokenSpec(SymbolTokenizer(VOCAB)), labels)
        ).eval()
        batch = Batch({"tokens": Tokens(torch.randint(1, VOCAB, (2, 9)))}, {"label": Labels(torch.zeros(2).long())})
        top = model.body.blocks[-1]
        top.register_forward_hook(lambda module, args, out, pooling=pooling: shapes.update({pooling: out.shape[1]}))
        quick = model.score(batch)[0]
        if pooling == "first":
            with record(model):  # who looks inside sees all places, and the same answer
                torch.testing.assert_close(model.score(batch)[0], quick)
            assert shapes.pop(pooling) == 9
            model.score(batch)
    assert shapes == {"first": 1, "mean": 9}


def test_layers_are_those_of_torch() -> None:
    model = build().double()
    block, tokens = model.body.blocks[0], torch.randn(3, 7, 16, dtype=torch.float64)
    peer = torch.nn.TransformerEncoderLayer(
        16, 2, 64, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True, dtype=torch.float64
    ).eval()
    names = {
        "self_attn.in_proj_weight": block.attention.qkv.weight,
        "self_attn.in_proj_bias": block.attention.qkv.bias,
        "self_attn.out_proj.weight": block.attention.to_output.weight,
        "self_attn.out_proj.bias": block.attention.to_output.bias,
        "linear1.weight": block.feed_forward.up.weight,
        "linear1.bias": block.feed_forward.up.bias,
        "linear2.weight": block.feed_forward.down.weight,
        "linear2.bias": block.feed_forward.down.bias,
        "norm1.weight": block.attention_norm.weight,
        "norm1.bias": block.attention_norm.bias,
        "norm2.weight": block.feed_forward_norm.weight,
        "norm2.bias": block.feed_forward_norm.bias,
    }
    peer.load_state_dict(names)
    is_there = torch.tensor([[True] * 7, [True] * 4 + [False] * 3, [True] * 6 + [False]])
    ours, theirs = block(tokens, is_there[:, None, None]), peer(tokens, src_key_padding_mask=~is_there)
    torch.testing.assert_close(ours[is_there], theirs[is_there])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@torch.no_grad()
def test_padding_and_other_rows_change_nothing(settings: dict[str, Any]) -> None:
    model, batch = build(**settings), batch_of()
    together, _ = model.score(batch)
    tokens, wanted = batch.inputs["tokens"], batch.targets["tokens"]
    for row in range(len(batch)):
        length = int(tokens.lengths[row])
        alone = Batch(
            {"tokens": Tokens(tokens.ids[row : row + 1, :length], None, tokens.segments[row : row + 1, :length])},
            {"tokens": Tokens(wanted.ids[row : row + 1, :length], is_scored=wanted.is_scored[row : row + 1, :length])},
        )
        torch.testing.assert_close(model.score(alone)[0][0], together[row, :length], atol=1e-5, rtol=0)


@torch.no_grad()
def test_every_place_sees_both_sides_and_only_hidden_ones_count() -> None:
    model, batch = build(), batch_of(2)
    before, _ = model.score(batch)
    hidden = batch.targets["tokens"].is_scored
    assert (before[~hidden] == 0).all()
    assert (before[hidden] < 0).all()
    changed = batch.inputs["tokens"].ids.clone()
    changed[:, 3] = (changed[:, 3] + 1) % VOCAB
    tokens = batch.inputs["tokens"]
    after, _ = model.score(Batch({"tokens": Tokens(changed, tokens.is_token, tokens.segments)}, batch.targets))
    places = torch.arange(hidden.shape[1])
    assert (after != before)[hidden & (places < 3)].all()
    assert (after != before)[hidden & (places > 3)].all()


def test_two_terms_micro_batches_and_a_saved_model() -> None:
    model, batch = build(), batch_of()
    terms = model.loss(batch).terms
    assert set(terms) == {"tokens", "next"}
    assert terms["tokens"].count == int(batch.targets["tokens"].is_scored.sum())
    assert terms["next"].count == len(batch)
    log_probs, _ = model.score(batch)
    assert float(terms["tokens"].total.detach()) == pytest.approx(-float(log_probs.detach().sum()), rel=1e-5)
    row = MODELS["bert"]
    copy = row.build(row.config(**SMALL), schema()).eval()
    copy.load_state_dict(load(save({name: weight.contiguous().clone() for name, weight in model.state_dict().items()})))
    assert torch.equal(copy.score(batch)[0], log_probs)


def test_shared_layers_are_one_and_narrow_embeddings_are_widened() -> None:
    assert len(build(shared_layers=True, num_layers=5).body.blocks) == 1
    narrow = build(embed_dim=6)
    assert narrow.body.embedding.weight.shape == (VOCAB + 2, 6)
    assert narrow.head.tokens.transform.weight.shape == (6, 16)


@torch.no_grad()
def test_rotary_positions_tell_the_order_and_how_far_apart_tokens_are_alone() -> None:
    """Without segments and marks, a row that is read further on gives the same; turned round, another."""
    body = build(positions="rotary").double().body
    assert body.positions is None
    assert "turns" not in body.state_dict()
    x = torch.randn(2, 9, 16, dtype=torch.float64)
    here, further, no_places = (body.blocks[0](x, None, turn) for turn in (body.turns[:9], body.turns[5:14], None))
    torch.testing.assert_close(here, further)
    assert (here - no_places).abs().max() > 0.01
    ids = torch.randint(1, VOCAB, (1, 7))
    ahead, back = (body.encode({"tokens": Tokens(each)}).stream.hidden for each in (ids, ids.flip(1)))
    assert (ahead - back.flip(1)).abs().max() > 1e-4  # without places nothing but rounding


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_heads": 3}, "num_heads=3 does not divide model_dim=16"),
        ({"context": 2}, "model.context = 2 should be at least 3"),
        ({"characters": "conv"}, "bert reads its tokens alone"),
        ({"positions": "rotary", "model_dim": 6}, "rotary positions need an even head width"),
    ],
)
def test_settings_that_do_not_fit_are_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BERTConfig(**{**SMALL, **settings})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A language in which the middle of three words follows from both words beside it."""
    folder, random = tmp_path_factory.mktemp("bert"), np.random.default_rng(0)
    documents = []
    for _ in range(160):
        lines = []
        for _ in range(6):
            a, b = random.integers(3), random.integers(3)
            lines.append(f"a{a} m{a}{b} b{b}")
        documents.append("\n".join(lines))
    (folder / "text.txt").write_text("\n\n".join(documents) + "\n")
    settings = ["model.model_dim=32", "model.num_heads=2", "model.num_layers=2", "model.context=14"]
    settings += ["training.learning_rate=0.006", "training.warmup_steps=30", "training.context=14"]
    settings += ["training.batch_size=32", "training.masked_share=0.25", "data.next_sentence=false"]
    text, out = folder / "text.txt", folder / "run"
    return seqwise.train(text, "bert", out=out, tokenizer="word", steps=600, overrides=settings)


def test_a_word_that_both_sides_tell_is_filled_in(trained: Any) -> None:
    (found,) = trained.fill("a1 [MASK] b2")
    assert found.words[0][0] == "m12"
    assert found.words[0][1] > 0.6
    first, second = trained.fill("[MASK] m20 [MASK]", num=3)
    assert (first.words[0][0], second.words[0][0]) == ("a2", "b0")
    assert trained.evaluate(split="valid").pseudo_perplexity < 2.5


def test_its_body_is_kept_by_what_comes_next(trained: Any, tmp_path: Path) -> None:
    rows = [f"a{i % 3} m{i % 3}{j} b{j} n{i},{'low' if i % 3 < 1 else 'high'}" for i in range(42) for j in range(3)]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    run = seqwise.train(tmp_path / "rows.csv", "bert", out=tmp_path / "run", steps=60, start_from=trained.path)
    assert run.run.config.model.model_dim == 32
    assert run.evaluate(split="valid").accuracy > 0.9


def test_mistakes_are_told(trained: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"leaves nothing out: write \[MASK\]"):
        trained.fill("a1 m12")
    with pytest.raises(ConfigError, match="the model reads 14; give a shorter one"):
        trained.fill("x " * 40 + "[MASK]")
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 40)
    other = seqwise.train(tmp_path / "text.txt", "ngram", out=tmp_path / "ngram")
    with pytest.raises(ConfigError, match="it fills in no hidden words"):
        other.fill("the [MASK]")
