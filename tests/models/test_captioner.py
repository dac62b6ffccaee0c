"""The contract of families that write about pictures, and what is special about looking: by brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from seqwise.data.batch import Batch, Images, Noise, Regions, next_token_batch, pad_rows
from seqwise.data.schema import CAPTION, ImageSpec, RegionSpec, Schema, TokenSpec, caption_schema
from seqwise.decoding import DecodingConfig, generate
from seqwise.errors import ConfigError, DataError
from seqwise.inspection import record
from seqwise.models import MODELS
from seqwise.models.caption_decoder import CaptionDecoder, Looks, draw
from seqwise.models.captioner import entropy, frame_of, mean_of_frames, one_frame_before, unlooked
from seqwise.models.contract import select_rows
from seqwise.text.symbols import SymbolTokenizer

VOCAB, SIDE, BOUNDARY = 7, 4, 0
SMALL: dict[str, Any] = {"model_dim": 8, "dropout": 0.0, "label_smoothing": 0.0, "widths": [4, 8]}
CASES: list[dict[str, Any]] = [
    {"attention": "none"},
    {"attention": "none", "decoder": "gru", "num_layers": 2, "places": "lstm"},
    {"attention": "none", "places": "frames"},
    {"attention": "soft"},
    {"attention": "soft", "decoder": "gru", "gate": False, "embed_dim": 6, "alignment": "general"},
    {"attention": "soft", "num_layers": 2, "places": "frames", "alignment": "dot"},
    {"attention": "soft", "places": "lstm", "shared_embeddings": "none", "output_bias": True},
    {"attention": "hard"},
    {"attention": "hard", "decoder": "gru", "baseline": "learned", "places": "frames"},
    {"decoder": "transformer", "num_heads": 2, "num_layers": 2},
    {"decoder": "transformer", "num_heads": 2, "num_layers": 1, "places": "frames"},
]


def name_of(case: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in case.items() if isinstance(value, str | bool))


each_case = pytest.mark.parametrize("case", CASES, ids=name_of)
CAPTIONS = [[0, 1, 2, 3, 0], [0, 5, 0], [0, 6, 5, 4, 3, 2, 1, 0]]  # from boundary to boundary
FRAMES = [3, 1, 2]


def schema_of(max_frames: int = 3) -> Schema:
    return caption_schema(
        ImageSpec(SIDE, SIDE, (0.5,), (0.3,), max_frames=max_frames), TokenSpec(SymbolTokenizer(VOCAB))
    )


def build(case: dict[str, Any]) -> Any:
    row = MODELS["captioner"]
    model = row.build(row.config(**{**SMALL, **case}), schema_of())
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    return model.eval()


def clips(chosen: list[int], frames: int | None = None) -> Images:
    """Some of three clips of different lengths; what stands behind the end of one is noise."""
    longest = frames or max(FRAMES[row] for row in chosen)
    pixels = torch.randint(256, (3, 3, 1, SIDE, SIDE), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    is_step = torch.arange(longest) < torch.tensor([FRAMES[row] for row in chosen]).unsqueeze(1)
    return Images(pixels[chosen, :longest], None if bool(is_step.all()) else is_step)


def batch_of(chosen: list[int], captions: list[list[int]] | None = None) -> Batch:
    rows = pad_rows(captions or [CAPTIONS[row] for row in chosen])
    words = next_token_batch(rows.ids, rows.is_token)
    return Batch({"image": clips(chosen), **words.inputs}, words.targets)


def prompt(chosen: list[int]) -> Batch:
    return Batch({"image": clips(chosen)}, {})


def same(a: Tensor, b: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(a.double(), b.double(), atol=atol, rtol=0)


ALL = [0, 1, 2]


def test_every_family_of_captions_is_here() -> None:
    assert [name for name, row in MODELS.items() if CAPTION in row.learns] == ["captioner"]


@each_case
@torch.no_grad()
def test_padding_batch_and_later_words_change_no_score_and_the_picture_changes_all(case: Any) -> None:
    model = build(case)
    together, _ = model.score(batch_of(ALL))
    for row in ALL:
        alone, _ = model.score(batch_of([row]))
        same(together[row : row + 1, : alone.shape[1]], alone)
    words = CAPTIONS[2]
    later, _ = model.score(batch_of([2], [[*words[:5], 1, *words[6:]]]))
    same(later[:, :4], together[2:, :4])
    assert not torch.allclose(later[:, 5:], together[2:, 5:], atol=1e-4)
    other = batch_of([0], [words])
    changed = (model.score(other)[0] - together[2:]).abs() > 1e-6
    assert int(changed.sum()) >= 6  # one may be sure, whatever is seen


@each_case
@torch.no_grad()
def test_steps_give_the_parallel_pass_and_probabilities_sum_to_one(case: Any) -> None:
    model, long = build(case), CAPTIONS[2]
    parallel, _ = model.score(batch_of(ALL, [long] * 3))
    log_probs, state = model.start(prompt(ALL))
    for t in range(1, len(long)):
        same(log_probs.exp().sum(dim=1), torch.ones(3))
        same(log_probs[:, long[t]], parallel[:, t - 1])
        log_probs, state = model.step(torch.full((3,), long[t]), state)


@each_case
@torch.no_grad()
def test_hypotheses_of_one_picture_share_its_memory_and_go_on_as_alone(case: Any) -> None:
    model = build(case)
    _, state = model.start(prompt(ALL))
    memory = {name: tensor.data_ptr() for name, tensor in state.memory.items()}
    wide = select_rows(state, torch.tensor([0, 0, 1, 1, 2, 2]))
    assert {name: tensor.data_ptr() for name, tensor in wide.memory.items()} == memory
    _, wide = model.step(torch.tensor([1, 2, 3, 4, 5, 6]), wide)
    left = select_rows(wide, torch.tensor([5, 4, 1, 0]), torch.tensor([2, 0]))  # the second picture is done
    more, _ = model.step(torch.tensor([6, 5, 4, 3]), left)
    for row, (picture, first, second) in enumerate([(2, 6, 6), (2, 5, 5), (0, 2, 4), (0, 1, 3)]):
        _, alone = model.start(prompt([picture]))
        _, alone = model.step(torch.tensor([first]), alone)
        same(more[row : row + 1], model.step(torch.tensor([second]), alone)[0])


@each_case
@torch.no_grad()
def test_recording_changes_no_result_and_shows_where_was_looked(case: Any) -> None:
    model, batch = build(case), batch_of(ALL)
    plain = model.score(batch)[0]
    is_token = batch.targets["tokens"].is_token
    with record(model) as trace:
        same(model.score(batch)[0][is_token], plain[is_token])
    looked = model.align(batch)
    assert bool(trace.all("attention")) == (case.get("attention") != "none")
    if case.get("attention") == "none":
        assert looked is None
        return
    same(looked.sum(dim=-1), torch.ones(looked.shape[:2]))
    cells = 4 if case.get("places", "cells") == "cells" else 1
    assert looked.shape == (3, 7, 3 * cells)
    assert not looked[1, :, cells:].any()  # of a clip of one frame, nothing behind it


@each_case
@torch.no_grad()
def test_a_saved_and_loaded_model_gives_the_same_numbers(case: Any) -> None:
    model, copy = build(case), build(case)
    for parameter in copy.parameters():
        torch.nn.init.zeros_(parameter)
    copy.load_state_dict(load(save({k: v.contiguous().clone() for k, v in model.state_dict().items()})))
    assert torch.equal(copy.score(batch_of(ALL))[0], model.score(batch_of(ALL))[0])


@each_case
def test_micro_batches_give_the_gradient_of_the_whole_and_the_loss_is_the_negative_score(case: Any) -> None:
    model, batch = build(case), batch_of([0, 1, 2, 2, 1, 0])
    if model.num_noise:
        batch = with_noise(batch, 9)
    model.train()

    def gradient(parts: list[Batch]) -> list[Tensor]:
        model.zero_grad()
        for part in parts:
            model.loss(part).over({**batch.counts(), **batch.sizes()}).backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    whole = gradient([batch])
    assert all(g.isfinite().all() for g in whole)
    assert any(g.abs().max() > 1e-3 for g in whole)
    for a, b in zip(gradient(batch.split(3)), whole, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-3)
    found = model.eval().loss(batch)
    assert list(found.terms) == ["tokens"]
    is_token = batch.targets["tokens"].is_token
    same(found.terms["tokens"].total, -model.score(batch)[0][is_token].sum(), atol=1e-4)


@each_case
def test_all_searches_work_and_a_picture_is_described_alike_alone_and_among_others(case: Any) -> None:
    model = build(case)
    for method, width in (("greedy", 1), ("sample", 1), ("beam", 3)):
        config = DecodingConfig(method=method, beam_width=width, num_results=width, max_tokens=6, stop=BOUNDARY, seed=1)  # type: ignore[arg-type]
        together = generate(model, prompt(ALL), config)
        for row, found in enumerate(together):
            (alone,) = generate(model, prompt([row]), config)
            assert [h.tokens for h in found] == [h.tokens for h in alone]
    exhaustive = DecodingConfig(method="exhaustive", max_tokens=3, num_results=3, stop=BOUNDARY)
    wide = replace(exhaustive, method="beam", beam_width=VOCAB)
    best = generate(model, prompt(ALL), exhaustive)
    for mine, expected in zip(generate(model, prompt(ALL), wide), best, strict=True):
        assert mine[0].log_prob <= expected[0].log_prob + 1e-4


def with_noise(batch: Batch, size: int) -> Batch:
    uniform = torch.rand(len(batch), size, generator=torch.Generator().manual_seed(5)).clamp(1e-6, 1 - 1e-6)
    return replace(batch, inputs={**batch.inputs, "noise": Noise(uniform)})


def test_attention_is_what_a_loop_over_places_finds() -> None:
    """(2), (3), (7), (9) of caption_decoder.py, written out for one row."""
    torch.manual_seed(0)
    decoder = CaptionDecoder("gru", "soft", "additive", 4, 3)
    memory, y, is_place = torch.randn(1, 5, 4), torch.randn(1, 2, 3), torch.tensor([[True] * 4 + [False]])
    state = decoder.begin(memory, is_place, memory[:, :4].mean(dim=1), None)
    found, looks, _ = decoder(y, state)
    assert looks is not None
    assert decoder.alignment is not None
    assert decoder.gate is not None
    h, match = state.per_row["h"], decoder.alignment
    for t in range(2):
        scores = [match.weigh((match.to_key(memory[0, i]) + match.to_query(h[0, 0])).tanh()) for i in range(4)]
        weights = [score.exp() / sum(other.exp() for other in scores) for score in scores]
        same(looks.attention[0, t], torch.cat([*weights, torch.zeros(1)]))
        z = sum(weight * memory[0, i] for i, weight in enumerate(weights)) * decoder.gate(h[0, 0]).sigmoid()
        assert isinstance(z, Tensor)
        out, (h,) = decoder.stack(torch.cat([y[:, t], z.unsqueeze(0)], dim=-1).unsqueeze(1), (h,))
        same(found[0, t], decoder.from_word(y[0, t]) + decoder.from_hidden(out[0, 0]) + decoder.from_seen(z))


def test_a_place_is_drawn_as_often_as_it_is_probable_and_never_behind_the_end() -> None:
    a = torch.tensor([0.1, 0.0, 0.6, 0.3, 0.0]).expand(10_000, 1, 5)
    is_place = torch.tensor([True] * 4 + [False]).expand(10_000, 5)
    uniform = (torch.arange(10_000) + 0.5) / 10_000
    counts = draw(a, uniform, is_place).flatten().bincount(minlength=5) / 10_000
    same(counts, a[0, 0], atol=1e-3)
    assert int(draw(a[:1] * 0.999, torch.tensor([0.9999]), is_place[:1])) == 3  # rounding


@pytest.mark.parametrize("baseline", ["moving", "learned"])
def test_the_estimate_by_chance_is_in_the_mean_the_gradient_of_the_bound(baseline: str) -> None:
    """All ways to look, each with its probability, against the gradient of sum over s of p(s) log p(y | s)."""
    model = build({"attention": "hard", "baseline": baseline, "doubly_stochastic": 0.0, "entropy": 0.0, "num_looks": 3})
    model.double().train()
    caption = [0, 3, 5, 0]
    batch = batch_of([1], [caption])  # one frame: four places
    batch = replace(batch, inputs={**batch.inputs, "image": clips([1])})
    parameters = [p for p in model.parameters() if p.requires_grad]
    exact = [torch.zeros_like(p) for p in parameters]
    estimate = [torch.zeros_like(p) for p in parameters]
    total = 0.0
    for path in product(range(4), repeat=3):
        log_p, log_p_path, noised = looked_along(model, batch, path)
        probability = log_p_path.exp()
        total += float(probability.detach())
        for into, g in zip(exact, gradients(-(probability * log_p), parameters), strict=True):
            into += g
        loss = model.loss(noised)
        terms = loss.terms
        objective = terms["tokens"].total + terms["reinforce"].total
        for into, g in zip(estimate, gradients(objective, parameters), strict=True):
            into += g * float(probability.detach())
    assert total == pytest.approx(1.0, abs=1e-9)
    assert max(float(g.abs().max()) for g in exact) > 1e-2
    for mine, expected in zip(estimate, exact, strict=True):
        torch.testing.assert_close(mine, expected, atol=1e-8, rtol=1e-6)


def gradients(value: Tensor, parameters: list[Any]) -> list[Tensor]:
    found = torch.autograd.grad(value, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def looked_along(model: Any, batch: Batch, path: tuple[int, ...]) -> tuple[Tensor, Tensor, Batch]:
    """log p(caption | path), log p(path), and the batch with noise that draws this very path."""
    uniform = torch.full((1, len(path)), 0.5, dtype=torch.float64)
    for t in range(len(path)):
        noised = replace(batch, inputs={**batch.inputs, "noise": Noise(uniform)})
        _, looks, _ = model.body.look_and_decode(batch.inputs["tokens"], model.body.read(noised.inputs))
        edges = torch.cat([torch.zeros(1, dtype=torch.float64), looks.attention[0, t].detach().cumsum(dim=0)])
        uniform = uniform.clone()
        uniform[0, t] = (edges[path[t]] + edges[path[t] + 1]) / 2
    noised = replace(batch, inputs={**batch.inputs, "noise": Noise(uniform)})
    _, looks, _ = model.body.look_and_decode(batch.inputs["tokens"], model.body.read(noised.inputs))
    chosen = looks.attention[0, range(len(path)), list(path)].log().sum()
    same(looks.log_prob.sum(), chosen)
    return model.score(noised)[0].sum(), chosen, noised


def test_the_moving_baseline_follows_what_tokens_cost_however_many_parts_a_batch_has() -> None:
    batch = with_noise(batch_of(ALL), 9)
    found = []
    for parts in (1, 3):
        model = build({"attention": "hard"}).train()
        for part in batch.split(parts):
            model.loss(part)
        before = float(model.baseline.mean)
        model.count_update()
        found.append(float(model.baseline.mean))
        is_token = batch.targets["tokens"].is_token
        mean = float(model.eval().score(batch)[0][is_token].mean().detach())
        assert found[-1] == pytest.approx(0.9 * before + 0.1 * mean, abs=1e-5)
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert "baseline.mean" in model.state_dict()


def test_terms_of_looking_by_hand() -> None:
    attention = torch.tensor([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.3, 0.3, 0.4]]])
    is_token, is_place = torch.tensor([[True, True, False]]), torch.tensor([[True, True, False]])
    assert float(unlooked(attention, is_token, is_place)) == pytest.approx((1 - 1.5) ** 2 + (1 - 0.5) ** 2)
    assert float(entropy(attention, is_token)) == pytest.approx(0.6931472)
    looks = Looks(attention, torch.tensor([[-1.0, -2.0, -3.0]]), torch.zeros(1, 3, 2))
    model = build({"attention": "hard"})
    model.baseline.mean.fill_(-0.5)
    choices, _ = model.baseline(torch.tensor([[-0.25, -2.0, -9.0]]), looks, is_token)
    assert float(choices) == pytest.approx(-((-2.25 + 1.0) * -1.0 + (-2.0 + 0.5) * -2.0))


def test_frames_are_told_by_their_boxes_and_their_cells_averaged() -> None:
    boxes = torch.rand(1, 2, 4).repeat(1, 3, 1)  # two cells, three frames
    is_place = torch.tensor([[True] * 4 + [False] * 2])
    frame = frame_of(boxes, is_place)
    assert frame[0, :4].tolist() == [0, 0, 1, 1]
    assert frame_of(None, is_place)[0].tolist() == [0, 1, 2, 3, 4, 5]
    m = torch.arange(6.0).view(1, 6, 1)
    assert one_frame_before(m, boxes)[0, :, 0].tolist() == [0.0, 1.0, 0.0, 1.0, 2.0, 3.0]
    means, is_frame = mean_of_frames(m, frame, is_place)
    assert means[0, :2, 0].tolist() == [0.5, 2.5]
    assert is_frame[0].tolist() == [True, True]


def test_noise_is_needed_for_as_many_words_as_there_are_and_told() -> None:
    model = build({"attention": "hard", "num_looks": 4}).train()
    assert model.num_noise == 4
    assert build({"attention": "soft"}).num_noise == 0
    with pytest.raises(DataError, match=r"a caption of 5 tokens or more is longer than the 4 .* model\.num_looks"):
        model.loss(with_noise(batch_of([2]), 4))


def test_regions_that_somebody_else_found_are_looked_at() -> None:
    row = MODELS["captioner"]
    schema = caption_schema(RegionSpec(6, has_boxes=False, max_regions=5), TokenSpec(SymbolTokenizer(VOCAB)))
    model = row.build(row.config(**SMALL), schema).eval()
    words = next_token_batch(torch.tensor([CAPTIONS[0]] * 2))
    is_region = torch.tensor([[True, True, True], [True, True, False]])
    features = torch.randn(2, 3, 6)
    together, _ = model.score(Batch({"image": Regions(features, is_region=is_region), **words.inputs}, words.targets))
    alone = Batch({"image": Regions(features[1:, :2]), **words.inputs}, words.targets).rows(slice(0, 1))
    same(together[1:], model.score(alone)[0])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"decoder": "transformer", "attention": "hard"}, "model.attention = hard is not for it"),
        ({"decoder": "transformer", "num_heads": 3}, "num_heads=3 does not divide model_dim=8"),
        ({"doubly_stochastic": -1.0}, "model.doubly_stochastic = -1.0 should not be negative"),
        ({"widths": []}, "model.widths = "),
    ],
)
def test_settings_that_cannot_be_are_told(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MODELS["captioner"].config(**{**SMALL, **settings})
    assert sentence in str(caught.value)
