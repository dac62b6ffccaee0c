"""glimpse: a network that reads a picture by moving its eye.

Mnih et al. 2014 (recurrent models of visual attention), after Larochelle & Hinton 2010. Fixes in networks that look at
all of a picture at once: the cost grows with the picture. Here it grows with the number of glimpses, each a few pixels
in detail and their surroundings blurred; what does not matter is never looked at. No gradient says where to look, as a
place is chosen and not weighed: that is learned from reward (REINFORCE, Williams 1992).

    mean_t  = tanh(W_l h_{t-1})                             where to look, from the middle (0, 0) to the edges     (1)
    place_t = mean_t + spread * normal noise                in training; to answer, the mean itself                (2)
    patch_t = retina(picture, place_t)                      layers/retina.py                                       (3)
    g_t     = relu(W_g [relu(W_x patch_t); relu(W_p place_t)])   what is there, and where that is                  (4)
    h_t     = relu(W_h h_{t-1} + W_i g_t),  h_0 = 0                                                                (5)
    label   = head(h_T)                                                                                            (6)
    b_t     = W_b h_{t-1}                                   baseline: which reward is to be expected               (7)

    objective = -log p(label)  -  sum_t (R - b_t) log p(place_t | mean_t)  +  mean_t (R - b_t)^2                   (8)

R is 1 where the answer is right, else 0. (1) and (7) read the state without telling it what they need: it is learned by
the label alone. `where` = random or fixed are controls: the same network, looking anywhere, or at the same places in
every picture.

Shapes: B batch, T glimpses, D model width, S scales, C channels, g pixels of a patch, N labels, M draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from ..data.batch import Batch, Images, Noise
from ..data.schema import ImageSpec, Schema
from ..errors import ConfigError
from ..layers.dropout import Dropout
from ..layers.heads import LabelHead
from ..layers.notes import note
from ..layers.residual_grid import PixelScaling
from ..layers.retina import Retina
from ..layers.stream import Prediction, Stream, log_prob_of
from .build import NeuralConfig, build_model
from .contract import Encoded, Fields, Loss, State, Term
from .eyes import IMAGE
from .headed import HeadedModel

NOISE = "noise"
"""The field that chance is read from."""


@dataclass(frozen=True)
class GlimpseConfig(NeuralConfig):
    num_glimpses: int = 6
    """How often it looks before it answers."""
    glimpse_size: int = 8
    """Pixels of a glimpse, in width and height."""
    num_scales: int = 1
    """Patches of a glimpse: each covers twice the width of the one before, in as many pixels."""
    where: Literal["learned", "random", "fixed"] = "learned"
    """How places are chosen: by the network, by chance, or the same evenly spread ones for every picture."""
    spread: float = 0.15
    """Standard deviation of places around their mean in training; the picture goes from -1 to 1."""
    reward_weight: float = 0.01
    """Of what teaches where to look, in the objective."""
    draws: int = 0
    """To answer, average over so many paths that are drawn by chance; 0 follows the mean places."""
    embed_dim: int = 128
    """Width of what was seen, and of where."""
    model_dim: int = 256
    """Width of the state."""

    def __post_init__(self) -> None:
        self._check()
        super().__post_init__()

    def _check(self) -> None:
        if self.draws < 0:
            raise ConfigError(f"model.draws = {self.draws} should be at least 0.")
        for name in ("num_glimpses", "glimpse_size"):
            if (value := getattr(self, name)) < 1:
                raise ConfigError(f"model.{name} = {value} should be at least 1.")
        if not 1 <= self.num_scales <= MAX_SCALES:
            raise ConfigError(f"model.num_scales = {self.num_scales} should be from 1 to {MAX_SCALES}.")
        if not 0 < self.spread <= 1:
            raise ConfigError(f"model.spread = {self.spread} should be above 0, and at most 1.")


MAX_SCALES = 6


class Look(NamedTuple):
    """What came of looking at pictures."""

    hidden: Tensor
    """(B, T, D)."""
    log_probs: Tensor
    """(B, T): of each place, its mean being known; zero where places are not learned."""
    baselines: Tensor
    """(B, T): which reward was expected before each glimpse."""


class GlimpseBody(nn.Module):
    fixed_places: Tensor
    context = None
    carries_state = False
    embedding = None

    def __init__(self, config: GlimpseConfig, spec: ImageSpec):
        super().__init__()
        D, G = config.model_dim, config.embed_dim
        self.config, self.output_dim = config, D
        self.scaling = PixelScaling(spec.mean, spec.scale)
        self.retina = Retina(config.glimpse_size, config.num_scales)
        pixels = config.num_scales * spec.size * config.glimpse_size**2
        self.from_patch, self.from_place = nn.Linear(pixels, G), nn.Linear(2, G)
        self.glimpse, self.to_core = nn.Linear(2 * G, D), nn.Linear(D, D)
        self.core = nn.Linear(D, D, bias=False)
        with torch.no_grad():  # it begins as a memory that fades: half of what was, and what is seen
            self.core.weight.copy_(torch.eye(D) / 2)
        self.dropout = Dropout(config.dropout)
        self.to_place, self.to_baseline = nn.Linear(D, 2), nn.Linear(D, 1)
        nn.init.zeros_(self.to_place.bias)  # the first glimpse begins at the middle
        self.register_buffer("fixed_places", spread_places(config.num_glimpses), persistent=False)  # (T, 2)

    @property
    def num_noise(self) -> int:
        """Numbers of chance for each row: x and y of each place, of each path that is drawn."""
        return 0 if self.config.where == "fixed" else 2 * self.config.num_glimpses * max(1, self.config.draws)

    def initial_state(self, batch_size: int) -> State:
        return State({"h": self.core.weight.new_zeros(batch_size, self.output_dim)})

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        """As it looks to answer, without draws."""
        hidden = self.look(inputs[IMAGE], None if self.config.where == "learned" else inputs.get(NOISE)).hidden
        return Encoded((Stream(hidden, None, (hidden,) if with_layers else ()),), None)

    def look(self, images: Images, noise: Noise | None) -> Look:
        """By the first 2T numbers of the noise; without any it follows the mean places."""
        B, T = len(images.pixels), self.config.num_glimpses
        chance = None if noise is None else self._chance(noise)
        with torch.no_grad():  # a place has no gradient, and a picture needs none
            blurred = self.retina.blurred(images.pixels[:, 0].to(self.scaling.mean.dtype) / 255)
        h = self.core.weight.new_zeros(B, self.output_dim)
        states, log_probs, baselines = [], [], []
        for t in range(T):
            before = h.detach()
            mean, place = self._place(before, t, chance)
            log_probs.append(self._log_prob(mean, place))
            baselines.append(self.to_baseline(before).squeeze(-1))  # (7)
            h = self._see(blurred, place, h)
            for what, value in (("expected place", mean), ("place", place), ("state", h)):
                note(self, what, value)
            states.append(h)
        hidden = self.dropout(torch.stack(states, dim=1))  # (B, T, D)
        return Look(hidden, torch.stack(log_probs, dim=1), torch.stack(baselines, dim=1))

    def _chance(self, noise: Noise) -> Tensor:
        """Normal noise around means, or places from edge to edge: (B, T, 2)."""
        T = self.config.num_glimpses
        used = Noise(noise.uniform[:, : 2 * T])
        found = 2 * used.uniform - 1 if self.config.where == "random" else self.config.spread * used.normal()
        return found.view(-1, T, 2)

    def _place(self, before: Tensor, t: int, chance: Tensor | None) -> tuple[Tensor, Tensor]:
        """The mean (B, 2), and where it looks (B, 2)."""
        if self.config.where == "fixed":
            place = self.fixed_places[t].expand(len(before), 2)
            return place, place
        if self.config.where == "random":
            assert chance is not None
            return torch.zeros_like(chance[:, t]), chance[:, t]
        mean = self.to_place(before).tanh()  # (1)
        return mean, mean.detach() if chance is None else (mean + chance[:, t]).detach()  # (2)

    def _log_prob(self, mean: Tensor, place: Tensor) -> Tensor:
        """log p(place | mean) but for what does not depend on the mean, (B,)."""
        if self.config.where != "learned":
            return mean.new_zeros(len(mean))
        return -0.5 * ((place - mean) / self.config.spread).square().sum(dim=-1)

    def _see(self, blurred: Tensor, place: Tensor, h: Tensor) -> Tensor:
        with torch.no_grad():
            place = place.clamp(-1, 1)
            patch = self.retina(blurred, place)  # (3), (B, S, C, g, g)
            note(self, "glimpse", patch)
            seen = ((patch - self.scaling.mean) / self.scaling.scale).flatten(1)
        what, where = relu(self.from_patch(seen)), relu(self.from_place(place))
        g = relu(self.glimpse(torch.cat([what, where], dim=-1)))  # (4)
        return relu(self.core(h) + self.to_core(g))  # (5)


class GlimpseModel(HeadedModel):
    """A body that looks, and a head that says what it saw; besides the label it is told whether it was right."""

    can_compile = False

    @property
    def looking(self) -> GlimpseBody:
        return cast(GlimpseBody, self.body)

    @property
    def num_noise(self) -> int:
        """Numbers of chance that a row of training needs."""
        return self.looking.num_noise

    @property
    def label_head(self) -> LabelHead:
        return cast(LabelHead, self.main_head)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        """log p of each label, (B, 1)."""
        return log_prob_of(self._log_probs(batch), batch.targets[self.main].ids).unsqueeze(1), None

    def predict(self, batch: Batch, target: str | None = None) -> Prediction:
        return self.label_head.answer(self._log_probs(batch))

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        images, wanted = batch.inputs[IMAGE], batch.targets[self.main]
        found = self.looking.look(images, batch.inputs.get(NOISE))
        stream = Stream(found.hidden)
        log_probs = self.main_head.objective(stream, wanted)  # (B, 1)
        count, main = wanted.count(), self.main
        terms = {main: Term(-log_probs.sum(), count, self.weights[main], over=main)}
        if self.looking.config.where != "learned":
            return Loss(terms)
        with torch.no_grad():
            reward = (self.label_head.predict(stream).answers == wanted.ids).to(found.baselines)  # (B,)
        error = reward.unsqueeze(1) - found.baselines  # (B, T)
        places = -(error.detach() * found.log_probs).sum()
        terms["places"] = Term(places, count, self.looking.config.reward_weight, over=main)
        terms["baseline"] = Term(error.square().mean(dim=1).sum(), count, over=main)
        return Loss(terms)  # (8)

    def _log_probs(self, batch: Batch) -> Tensor:
        """(B, N), nats: of the mean places, or the mean over the paths that the row's noise draws."""
        M, learned = self.looking.config.draws, self.looking.config.where == "learned"
        if not (M and self.num_noise):
            noise = None if learned else batch.inputs.get(NOISE)
            return self.label_head.log_probs(Stream(self.looking.look(batch.inputs[IMAGE], noise).hidden))  # (6)
        images = batch.inputs[IMAGE].map(lambda tensor: tensor.repeat_interleave(M, dim=0))
        noise = Noise(batch.inputs[NOISE].uniform.view(len(images.pixels), -1))  # (B*M, 2T)
        each = self.label_head.log_probs(Stream(self.looking.look(images, noise).hidden))
        return each.view(len(batch), M, -1).logsumexp(dim=1) - math.log(M)


def spread_places(num: int) -> Tensor:
    """The first points of Halton's sequence, which fill the picture evenly however many there are; (num, 2)."""
    return torch.tensor([[2 * _radical_inverse(n, base) - 1 for base in (2, 3)] for n in range(1, num + 1)])


def _radical_inverse(number: int, base: int) -> float:
    """The digits of a number, mirrored at the point: 6 = 110 in base 2 becomes 0.011."""
    found, share = 0.0, 1.0
    while number:
        share /= base
        number, digit = divmod(number, base)
        found += share * digit
    return found


def build_glimpse(config: GlimpseConfig, schema: Schema) -> nn.Module:
    spec = schema.input(IMAGE, ImageSpec)
    if spec.max_frames > 1:
        raise ConfigError("glimpse looks at single pictures, and these are clips; choose another --model.")
    made: Any = build_model(GlimpseBody(config, spec), config, schema)
    return GlimpseModel(made.body, made.heads, made.weights, made.vocab_size, carries_state=False)
