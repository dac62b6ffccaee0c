"""Pictures and words read together: who may look at whom in each shape, controls, and what both sides are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.data.batch import Batch, Choices, Labels, Regions, Tokens
from seqwise.data.schema import (
    LabelSpec,
    RegionSpec,
    Schema,
    TokenSpec,
    seen_choice_schema,
    seen_masked_schema,
    seen_schema,
    with_mask,
)
from seqwise.errors import ConfigError
from seqwise.inspection import record
from seqwise.layers.co_attention import CoAttention, Looking
from seqwise.models import MODELS
from seqwise.models.crossmodal import SHAPES, with_area, with_whole
from seqwise.text.symbols import SymbolTokenizer

T, N, F, VOCAB = 4, 3, 5, 9
SMALL: dict[str, Any] = {"context": 8, "num_layers": 2, "model_dim": 8, "num_heads": 2, "cross_layers": 1}
REGIONS, WORDS = RegionSpec(F, ["cat", "dog"], True, N), TokenSpec(SymbolTokenizer(VOCAB))
QUESTIONS = seen_schema(REGIONS, LabelSpec(["no", "yes"]), WORDS)
each_shape = pytest.mark.parametrize("shape", SHAPES)


def build(schema: Schema = QUESTIONS, **settings: Any) -> Any:
    torch.manual_seed(0)
    row = MODELS["crossmodal"]
    model = row.build(row.config(**{**SMALL, **settings}), schema).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def inputs(num: int = 2) -> dict[str, Any]:
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(1, VOCAB, (num, T), generator=random)
    boxes = torch.rand(num, N, 4, generator=random).sort(dim=-1).values
    features = torch.randn(num, N, F, generator=random)
    return {"image": Regions(features, boxes), "tokens": Tokens(ids)}


def padded(found: dict[str, Any]) -> dict[str, Any]:
    """A token and a region behind the end of each row."""
    image, tokens = found["image"], found["tokens"]
    num = len(tokens.ids)
    is_token = torch.arange(T + 1).expand(num, -1) < T
    is_region = torch.arange(N + 1).expand(num, -1) < N
    features = torch.cat([image.features, torch.full((num, 1, F), 7.0)], dim=1)
    boxes = torch.cat([image.boxes, torch.ones(num, 1, 4)], dim=1)
    ids = torch.cat([tokens.ids, torch.full((num, 1), 5)], dim=1)
    return {"image": Regions(features, boxes, is_region), "tokens": Tokens(ids, is_token)}


def looks(model: Any, found: dict[str, Any]) -> list[torch.Tensor]:
    """Attention (B, H, T, S) of each layer, in the order in which it was computed."""
    with record(model) as trace, torch.no_grad():
        model.body.encode(found)
    return [value for _, value in trace.all("attention")]


# who asks and who answers, layer by layer, as published; W words, R regions, P regions with the whole picture
PATTERNS = {
    "two-streams": ["W W", "W P", "P W", "W W", "P P"],  # a block of words, both look at once, a block of each
    "three-encoders": ["W W", "W W", "R R", "W R", "R W", "W W", "R R"],  # each by itself, then in turn
    "one-stream": ["WR WR", "WR WR"],
}
LENGTHS = {"W": T, "R": N, "P": N + 1, "WR": T + N}


@each_shape
def test_who_looks_at_whom_is_as_published(shape: str) -> None:
    found = looks(build(shape=shape), inputs())
    wanted = [tuple(LENGTHS[side] for side in pattern.split()) for pattern in PATTERNS[shape]]
    assert [tuple(one.shape[2:]) for one in found] == wanted


@each_shape
def test_nobody_looks_at_padding(shape: str) -> None:
    """In the length of what answers: a place behind each end, which gets nothing."""
    for one in looks(build(shape=shape), padded(inputs())):
        S = one.shape[3]
        ends = {T + 1: [T], N + 1: [N], N + 2: [N + 1], T + N + 2: [T, T + N + 1]}[S]
        assert (one[..., ends] == 0).all()
        kept = [place for place in range(S) if place not in ends]
        assert (one[..., kept] > 0).all()


@each_shape
@torch.no_grad()
def test_padding_changes_nothing(shape: str) -> None:
    model, found = build(shape=shape), inputs()
    target = {"label": Labels(torch.tensor([0, 1]))}
    one, other = (model.score(Batch(fields, target))[0] for fields in (found, padded(found)))
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def influence(function: Any, words: torch.Tensor, regions: torch.Tensor) -> torch.Tensor:
    """(T + N, T + N) bool: which places of the input each place of the output depends on."""
    together = torch.cat([words, regions], dim=1)
    found = torch.autograd.functional.jacobian(
        lambda x: torch.cat(function(x[:, :T], x[:, T:]), dim=1).sum(dim=(0, 2)), together
    )
    return found.abs().sum(dim=(1, 3)) > 1e-9


def test_within_co_attention_words_see_regions_and_no_other_word() -> None:
    torch.manual_seed(0)
    look = CoAttention(lambda: Looking(8, 2, feed_forward_dim=16, activation="gelu", epsilon=1e-12, dropout=0.0))
    for parameter in look.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    found = influence(lambda w, r: look(w, r, None, None), torch.randn(1, T, 8), torch.randn(1, N, 8))
    own = torch.eye(T + N, dtype=torch.bool)
    own[:T, T:] = own[T:, :T] = True
    assert torch.equal(found, own)


@torch.no_grad()
def test_co_attention_is_what_a_loop_over_places_gives() -> None:
    torch.manual_seed(0)
    look = CoAttention(
        lambda: Looking(6, 2, feed_forward_dim=None, activation="gelu", epsilon=1e-12, dropout=0.0)
    ).double()
    words, regions = torch.randn(2, T, 6).double(), torch.randn(2, N, 6).double()
    is_region = torch.tensor([[True, True, True], [True, False, True]])
    found = look(words, regions, None, is_region[:, None, None])

    def by_loop(side: Any, x: torch.Tensor, other: torch.Tensor, is_there: torch.Tensor) -> torch.Tensor:
        asked, (keys, values) = side.attention.to_query(x), side.attention.to_key_value(other).chunk(2, dim=-1)
        rows = []
        for b in range(2):
            for t in range(x.shape[1]):
                heads = []
                for h in (slice(0, 3), slice(3, 6)):
                    scores = [float(asked[b, t, h] @ keys[b, n, h]) / 3**0.5 for n in range(other.shape[1])]
                    weights = np.exp(scores) * is_there[b].numpy()
                    weights /= weights.sum()
                    heads.append(sum(float(w) * values[b, n, h] for n, w in enumerate(weights)))
                rows.append(side.attention_norm(x[b, t] + side.attention.to_output(torch.cat(heads))))
        return torch.stack(rows).view_as(x)

    torch.testing.assert_close(found[0], by_loop(look.words, words, regions, is_region))
    torch.testing.assert_close(found[1], by_loop(look.regions, regions, words, torch.ones(2, T, dtype=torch.bool)))


def test_boxes_know_their_area_and_the_whole_picture_is_the_mean_of_its_regions() -> None:
    assert with_area(torch.tensor([0.25, 0.0, 0.75, 0.5])).tolist() == [0.25, 0.0, 0.75, 0.5, 0.25]
    found = padded(inputs())["image"]
    whole = with_whole(found)
    torch.testing.assert_close(whole.features[:, 0], found.features[:, :N].mean(dim=1))
    assert whole.boxes[:, 0].tolist() == [[0, 0, 1, 1]] * 2
    assert whole.is_region.tolist() == [[True] * (N + 1) + [False]] * 2


@each_shape
@torch.no_grad()
def test_controls_read_one_side_alone(shape: str) -> None:
    found, target = inputs(), {"label": Labels(torch.tensor([0, 1]))}
    image, tokens = found["image"], found["tokens"]
    other_image = {**found, "image": Regions(-image.features[:, :2], image.boxes[:, :2] / 2)}
    other_words = {**found, "tokens": Tokens(torch.cat([tokens.ids[:, :1], tokens.ids.flip(1)], dim=1))}
    for reads, blind_to, sees in (("words", other_image, other_words), ("picture", other_words, other_image)):
        model = build(shape=shape, reads=reads)
        plain, same, changed = (model.score(Batch(one, target))[0] for one in (found, blind_to, sees))
        torch.testing.assert_close(plain, same, atol=1e-6, rtol=0)
        assert not torch.allclose(plain, changed)


@each_shape
@torch.no_grad()
def test_boxes_and_segments_are_read(shape: str) -> None:
    model, found, target = build(shape=shape), inputs(), {"label": Labels(torch.tensor([0, 1]))}
    plain = model.score(Batch(found, target))[0]
    moved = {**found, "image": replace(found["image"], boxes=found["image"].boxes.flip(1))}
    split = {**found, "tokens": replace(found["tokens"], segments=(torch.arange(T) > 1).long().expand(2, -1))}
    for other in (moved, split):
        assert not torch.allclose(plain, model.score(Batch(other, target))[0])


@each_shape
def test_choices_share_their_probability(shape: str) -> None:
    schema = seen_choice_schema(REGIONS, WORDS, LabelSpec(["1", "2", "3"]))
    model, found = build(schema, shape=shape), inputs(5)
    groups = torch.tensor([0, 0, 0, 4, 4])
    batch = Batch(found, {"choice": Choices(torch.tensor([0, 1, 0, 1, 0]).bool(), groups)}, groups=groups)
    log_probs = model.predict(batch).log_probs
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(2))
    assert log_probs[1, 2] == float("-inf")
    torch.testing.assert_close(model.score(batch)[0].squeeze(1), torch.stack([log_probs[0, 1], log_probs[1, 0]]))


@each_shape
def test_pretraining_has_a_named_loss_for_each_term_and_all_weights_learn(shape: str) -> None:
    schema = seen_masked_schema(REGIONS, with_mask(WORDS))
    model, found = build(schema, shape=shape, pooling="first"), inputs()
    is_hidden = torch.zeros(2, N, dtype=torch.bool)
    is_hidden[0, 1] = True
    seen = replace(found["image"], labels=torch.tensor([[0, 1, 0], [1, 1, -1]]), is_scored=is_hidden)
    asked = torch.zeros(2, T, dtype=torch.bool)
    asked[1, 2] = True
    match = Labels(torch.tensor([1, 0]))
    words = replace(found["tokens"], is_scored=asked)
    batch = Batch(found, {"tokens": words, "match": match, "image": seen, "shown": seen, "alignment": match})
    terms = model.loss(batch).terms
    assert {name: (term.count, term.weight) for name, term in terms.items()} == {
        **{"tokens": (1, 1.0), "match": (2, 1.0), "image": (1, 1.0), "shown": (1, 1.0), "alignment": (2, 0.1)}
    }
    stream = model.body.encode(found).stream
    told = model.head.image.expect(stream.beside.hidden[0, 1])
    torch.testing.assert_close(terms["image"].total, (told - seen.features[0, 1]).square().mean())
    shown = model.head.shown.expect(stream.beside.hidden[0, 1]).log_softmax(dim=-1)
    torch.testing.assert_close(terms["shown"].total, -shown[1])
    model.loss(batch).over(batch.counts()).backward()
    left = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert left == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cross_layers": 3, "shape": "two-streams"}, r"model\.cross_layers = 3 is more than model\.num_layers = 2"),
        ({"region_layers": 0}, r"model\.region_layers = 0 should be at least 1"),
        ({"positions": "rotary"}, "has no place for regions"),
    ],
)
def test_settings_that_do_not_fit_are_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MODELS["crossmodal"].config(**{**SMALL, **settings})


def test_a_control_is_refused_where_hidden_parts_of_both_are_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"model\.reads = words is a control for labels and choices"):
        build(seen_masked_schema(REGIONS, with_mask(WORDS)), reads="words")
