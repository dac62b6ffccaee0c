"""draw: its bound against torch.distributions and the probability of each picture; and that it learns to paint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.distributions import Bernoulli, Normal, kl_divergence

from seqwise.data.batch import Batch, Images, Noise
from seqwise.data.schema import PICTURE, ImageSpec, picture_schema
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import Pixels, SeenStore, noise_of
from seqwise.errors import ConfigError
from seqwise.goals import GOALS
from seqwise.inspection import record
from seqwise.models import MODELS
from seqwise.models.draw import DRAW
from seqwise.settings import DataConfig, TrainingConfig
from seqwise.training.loop import train
from seqwise.training.sizing import suggest

SMALL: dict[str, Any] = {"num_steps": 3, "latent_dim": 2, "model_dim": 6, "read_size": 2, "write_size": 2}
each_way = pytest.mark.parametrize("attention", [False, True], ids=["whole", "windows"])


def build(side: int, channels: int = 1, **settings: Any) -> DRAW:
    torch.manual_seed(0)
    row, spec = MODELS["draw"], ImageSpec(side, side, (0.5,) * channels, (0.5,) * channels)
    model: DRAW = row.build(row.config(**{**SMALL, **settings}), picture_schema(spec))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


def batch_of(model: DRAW, pictures: Tensor, seed: int = 0) -> Batch:
    """(B, C, H, W) of 0 and 1."""
    images = Images((255 * pictures).to(torch.uint8).unsqueeze(1))
    noise = noise_of((len(pictures), model.num_noise), (seed,))
    return Batch({"image": images, "noise": noise}, {"image": images})


def coloured(channels: int, num: int = 4, side: int = 5) -> Tensor:
    return (torch.rand(num, channels, side, side, generator=torch.Generator().manual_seed(1)) < 0.4).float()


@each_way
@pytest.mark.parametrize("channels", [1, 3])
@torch.no_grad()
def test_the_bound_is_that_of_a_plain_loop(attention: bool, channels: int) -> None:
    """Both networks, all of what is read in one product, and KL and likelihood by torch.distributions."""
    model, pictures = build(5, channels, attention=attention), coloured(channels)
    batch, body, D = batch_of(model, pictures), model.body, SMALL["model_dim"]
    normal = batch.inputs["noise"].normal().view(4, 3, 2)
    x = pictures.flatten(1)
    (h, c), (above, memory) = (tuple(part.expand(4, D) for part in states) for states in body.first_states)
    canvas, kl = body.first_canvas.expand(4, -1), torch.zeros(4)
    for t in range(3):
        missing = x - torch.sigmoid(canvas)
        seen = [x, missing]
        if attention:
            window = body.reading(body.to_windows(above)[:, :5])
            seen = [window.read(part.view(4, channels, 5, 5)).flatten(1) for part in seen]
        inputs = torch.cat([*seen, above], dim=1)
        h, c = body.encoder(body.encoder.weights.of_input(inputs), (h, c), body.encoder.weights.hidden)
        mean, log_sigma = body.to_latent(h).chunk(2, dim=1)
        chosen = Normal(mean, log_sigma.exp())
        kl += kl_divergence(chosen, Normal(torch.zeros(4, 2), torch.ones(4, 2))).sum(dim=1)
        latent = mean + log_sigma.exp() * normal[:, t]
        above, memory = body.decoder(
            body.decoder.weights.of_input(latent), (above, memory), body.decoder.weights.hidden
        )
        added = body.to_canvas(above)
        if attention:
            window = body.writing(body.to_windows(above)[:, 5:])
            added = window.write(added.view(4, channels, 2, 2)).flatten(1)
        canvas = canvas + added
    wanted = -Bernoulli(logits=canvas).log_prob(x).sum(dim=1)
    found = model.parts(batch)
    torch.testing.assert_close(found[0], wanted)
    torch.testing.assert_close(found[1], kl)
    torch.testing.assert_close(model.score(batch)[0][:, 0], -(wanted + kl))
    loss = model.loss(batch)
    assert set(loss.terms) == {"reconstruction", "kl"}
    torch.testing.assert_close(loss.over(batch.counts()), (wanted + kl).mean())


@torch.no_grad()
def test_the_bound_lies_above_what_a_picture_costs() -> None:
    """One step of one number: p(x) by a fine sum over all that it could be, for each of the sixteen pictures."""
    model = build(2, num_steps=1, latent_dim=1).double()
    every = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 4).view(16, 1, 2, 2)
    edges = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    chances = Normal(0.0, 1.0).log_prob(edges) + math.log(float(edges[1] - edges[0]))
    painted = model.body.paint(edges.view(-1, 1, 1))[:, -1].flatten(1)  # (N, 4)
    given = Bernoulli(painted.unsqueeze(1)).log_prob(every.flatten(1).double()).sum(dim=2)  # (N, 16)
    log_p = (given + chances.unsqueeze(1)).logsumexp(dim=0)
    assert float(log_p.exp().sum()) == pytest.approx(1.0, abs=1e-4)
    bounds = torch.stack([model.score(batch_of(model, every, seed))[0][:, 0] for seed in range(400)])
    gap = log_p - bounds.mean(dim=0)
    error = bounds.std(dim=0) / 20
    assert (gap > -3 * error).all()
    assert gap.mean() > 0


@each_way
@torch.no_grad()
def test_what_is_painted_follows_from_the_noise(attention: bool) -> None:
    model = build(6, attention=attention)
    noise = noise_of((5, model.num_noise), (3,))
    steps = model.paint(noise)
    assert steps.shape == (5, 3, 1, 6, 6)
    assert 0 <= float(steps.min()) < float(steps.max()) <= 1
    alone = model.paint(Noise(noise.uniform[2:3]))
    torch.testing.assert_close(alone[0], steps[2])
    assert not torch.allclose(steps[0], steps[1])


@torch.no_grad()
def test_what_is_painted_from_the_latents_of_a_picture_is_its_canvas() -> None:
    model = build(6, attention=True)
    with record(model) as trace:
        model.score(batch_of(model, coloured(1, 2, 6)))
    seen = {what: trace[site, what] for site, what in trace}
    assert seen["read window"].shape == seen["write window"].shape == (2, 3, 5)
    assert seen["kl"].shape == seen["latent"].shape == (2, 3, 2)
    steps = model.body.paint(seen["latent"])
    torch.testing.assert_close(seen["canvas"].sigmoid(), steps.flatten(2))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"num_steps": 0}, "model.num_steps = 0 should be at least 1."),
        ({"write_size": 0}, "model.write_size = 0 should be at least 1."),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        MODELS["draw"].config(**settings)


def digits() -> tuple[SeenStore, SeenStore]:
    found = load_digits()
    pixels = (255 * (found.images > 8)).astype(np.uint8)[:, None, None]  # (M, 1, 1, 8, 8)
    rows = [SeenRow((str(number),), ()) for number in range(len(pixels))]
    store = SeenStore(Pixels(pixels), np.arange(len(rows)), {}, rows)
    return store.choose(np.arange(1400)), store.choose(np.arange(1400, len(rows)))


def cost_of_pixels(learned: SeenStore, unseen: SeenStore) -> float:
    """Nats per picture for who knows of each pixel how often it is white, and nothing of how they go together."""
    whites, wanted = (
        store.pictures.content[store.picture_of].reshape(len(store), -1) / 255 for store in (learned, unseen)
    )
    share = whites.mean(axis=0).clip(1e-3, 1 - 1e-3)
    found = -(wanted * np.log(share) + (1 - wanted) * np.log(1 - share)).sum(axis=1)
    return float(found.mean())


def test_it_learns_what_digits_look_like_in_seconds() -> None:
    learned, unseen = digits()
    goal, schema = GOALS[PICTURE], picture_schema(ImageSpec(8, 8, (0.3,), (0.38,)))
    sizes, training = suggest("draw", PICTURE, goal.facts(None, learned, schema, None))
    torch.manual_seed(0)
    row = MODELS["draw"]
    model = row.build(row.config(**{**sizes, "num_steps": 4, "latent_dim": 8, "model_dim": 96}), schema)
    config = TrainingConfig(**{**training, "steps": 200, "warmup_steps": 10, "learning_rate": 5e-3, "threads": 1})
    for _ in train(model, goal.batches(learned, model, config), config):
        pass
    score = goal.score(model, unseen, schema, DataConfig(), scored="digits")
    assert score.bound < 0.92 * cost_of_pixels(learned, unseen)
    assert score.kl.mean() > 1  # it paints what it was told
    assert goal.validate(model, unseen, None) == pytest.approx(score.bound)
    assert "a bound, no likelihood" in score.headline()
