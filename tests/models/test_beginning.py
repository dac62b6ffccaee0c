"""Targets that begin with a token of their own, a table that two tokenizers share, biases: as Marian has them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from seqwise.data.batch import Batch, Tokens, pad_rows
from seqwise.data.schema import SEQUENCE, Schema, Target, TokenSpec, pair_schema
from seqwise.decoding import DecodingConfig, generate
from seqwise.goals.sequence import search_settings
from seqwise.layers.fused_likelihood import fused_loss
from seqwise.models import MODELS
from seqwise.text.symbols import SymbolTokenizer

VOCAB, BOUNDARY, BEGIN = 6, 0, 5
SOURCES, TARGETS = [[1, 2, 3, 0], [4, 0]], [[0, 1, 2, 0], [0, 3, 0]]
CONFIG = {"model_dim": 8, "num_layers": 2, "num_heads": 2, "norm": "post", "biases": True, "output_bias": True}


def schema_with(special: dict[str, int]) -> Schema:
    spec = TokenSpec(SymbolTokenizer(VOCAB, BOUNDARY), special)
    return Schema({"tokens": spec}, {"source": "tokens", "tokens": "tokens"}, {"tokens": Target("tokens", SEQUENCE)})


def build(special: dict[str, int], **settings: Any) -> Any:
    row = MODELS["transformer"]
    model = row.build(row.config(**{**CONFIG, "dropout": 0.0, **settings}), schema_with(special))
    generator = torch.Generator().manual_seed(5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    return model.eval()


def batch(first: int) -> Batch:
    padded = pad_rows([[first, *row[1:]] for row in TARGETS])
    inputs = {"source": pad_rows(SOURCES), "tokens": Tokens(padded.ids[:, :-1], padded.is_token[:, 1:])}
    return Batch(inputs, {"tokens": Tokens(padded.ids[:, 1:], padded.is_token[:, 1:])})


def test_the_first_place_reads_what_targets_begin_with() -> None:
    """Whatever stands there; and as a model would that begins with the boundary and is given the other token."""
    begins, plain = build({"begin": BEGIN}), build({})
    expected = plain.score(batch(BEGIN))[0]
    torch.testing.assert_close(begins.score(batch(BOUNDARY))[0], expected)
    assert not torch.allclose(plain.score(batch(BOUNDARY))[0], expected)
    assert begins.loss(batch(BOUNDARY)).terms["tokens"].total == plain.loss(batch(BEGIN)).terms["tokens"].total
    torch.testing.assert_close(begins.align(batch(BOUNDARY)), plain.align(batch(BEGIN)))
    assert begins.predict(batch(BOUNDARY)).answers.equal(plain.predict(batch(BEGIN)).answers)


def test_steps_give_the_log_probabilities_of_the_parallel_pass() -> None:
    model, rows = build({"begin": BEGIN}), batch(BOUNDARY)
    found, state = model.start(Batch({"source": rows.inputs["source"]}, {}))
    expected, wanted = model.score(rows)[0], rows.targets["tokens"].ids
    for step in range(wanted.shape[1]):
        torch.testing.assert_close(found.gather(1, wanted[:, step : step + 1])[0, 0], expected[0, step])
        found, state = model.step(wanted[:, step], state)


@pytest.mark.parametrize("method", ["greedy", "beam", "sample", "exhaustive"])
def test_what_begins_a_target_is_never_written(method: str) -> None:
    model, schema = build({"begin": BEGIN}), schema_with({"begin": BEGIN})
    with torch.no_grad():
        model.head.output.bias[BEGIN] = 9.0  # it would be chosen at once
    settings = search_settings(schema, method=method, max_tokens=4)
    assert settings.never == BEGIN
    prompt = Batch({"source": pad_rows(SOURCES)}, {})
    with torch.inference_mode():
        assert all(BEGIN not in best.tokens for (best, *_) in generate(model, prompt, settings))
        freely = DecodingConfig(method="greedy", max_tokens=4, stop=BOUNDARY)
        assert any(BEGIN in best.tokens for (best,) in generate(model, prompt, freely))


def test_two_tokenizers_of_one_list_share_a_table_and_others_do_not() -> None:
    def tables(source: SymbolTokenizer, target: SymbolTokenizer) -> int:
        row = MODELS["transformer"]
        model = row.build(row.config(**CONFIG), pair_schema(source, target))
        return len({id(table) for table in (model.body.source_embedding, model.body.embedding)})

    source, target = SymbolTokenizer(VOCAB), SymbolTokenizer(VOCAB)
    assert tables(source, target) == 2
    source.joint_pieces, target.joint_pieces = list("abcdef"), list("abcdef")  # type: ignore[attr-defined]
    assert tables(source, target) == 1
    target.joint_pieces = list("abcdeg")  # type: ignore[attr-defined]
    assert tables(source, target) == 2


@pytest.mark.parametrize("num_tokens", [50, 3000])
def test_a_bias_of_the_output_is_learned_as_by_the_usual_loss(num_tokens: int) -> None:
    torch.manual_seed(1)
    tensors = [torch.randn(40, 6), 0.3 * torch.randn(num_tokens, 6), torch.randn(num_tokens)]
    targets, found = torch.randint(num_tokens, (40,)), []
    for way in (
        lambda h, w, b: fused_loss(h, w, targets, 0.1, b),
        lambda h, w, b: cross_entropy(h @ w.T + b, targets, reduction="sum", label_smoothing=0.1),
    ):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        loss = way(*leaves)
        loss.backward()
        found.append([loss.detach(), *(leaf.grad for leaf in leaves)])
    for ours, usual in zip(*found, strict=True):
        torch.testing.assert_close(ours, usual, rtol=1e-4, atol=1e-5)


def test_a_scale_of_embeddings_is_what_they_are_multiplied_with() -> None:
    tokens = Tokens(torch.tensor([[1, 2]]))
    once, thrice, usual = (build({}, embedding_scale=scale).body.embedding(tokens) for scale in (1.0, 3.0, None))
    torch.testing.assert_close(thrice, 3 * once)
    torch.testing.assert_close(usual, 8**0.5 * once)
