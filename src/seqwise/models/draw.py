"""draw: a network that paints a picture step by step, and looks at what is still missing.

Gregor et al. 2015 (DRAW). Fixes in the variational autoencoder (Kingma & Welling 2014), which makes all of a picture at
once from one vector: here a picture comes from a row of vectors, each of which adds to a canvas; and where to read and
to write may be chosen, by windows that are learned by gradients (layers/gaussian_window.py).

    missing_t = x - sigmoid(c_{t-1})                                                                      (1)
    r_t       = [x, missing_t], all of it, or what a window at W_r h'_{t-1} reads of it                   (2)
    h_t       = LSTM(h_{t-1}, [r_t, h'_{t-1}])                        encoder                             (3)
    z_t       ~ N(mu_t, sigma_t) = Q(z_t | x, z_1 .. z_{t-1})         W_q h_t                             (4)
    h'_t      = LSTM(h'_{t-1}, z_t)                                   decoder                             (5)
    c_t       = c_{t-1} + W_c h'_t, or a patch that a window writes   canvas                              (6)
    p(x | z)  = Bernoulli(sigmoid(c_T))                               of each pixel                       (7)

    reconstruction = -log p(x | z),   kl = sum_t KL(Q(z_t | x, ..) || N(0, 1)),   sum >= -log p(x)        (8)

The sum (8) bounds -log p(x) from above; p(x) itself nobody knows, so that no score of this model is a likelihood. To
paint anew z_t is drawn from N(0, 1), and (5) and (6) do the rest. h_0, h'_0 and c_0 are learned.

Shapes: B batch, T steps, Z latent width, D state width, C channels, H and W pixels, P = C H W, N points of a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..data.batch import Batch, Images, Noise
from ..data.schema import ImageSpec, Schema
from ..errors import ConfigError
from ..layers.gaussian_window import NUM_NUMBERS, GaussianWindow
from ..layers.lstm import LSTMCell
from ..layers.notes import note
from .build import NeuralConfig
from .contract import Loss, State, Term
from .eyes import IMAGE
from .glimpse import NOISE

LARGEST_LOG_SIGMA = 5.0
DARKEST = 0.01  # of the first canvas, and how far from white it stays


@dataclass(frozen=True)
class DRAWConfig(NeuralConfig):
    num_steps: int = 10
    """Steps in which a picture is painted."""
    latent_dim: int = 100
    """Numbers of chance in each step."""
    model_dim: int = 256
    """Width of both networks' states."""
    attention: bool = False
    """Read and write through windows; else all of the picture, in each step."""
    read_size: int = 5
    """Windows: points of a side of the one that reads."""
    write_size: int = 5
    """Windows: points of a side of the one that writes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("latent_dim", "read_size", "write_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name} = {getattr(self, name)} should be at least 1.")


class Painted(NamedTuple):
    canvas: Tensor
    """(B, P): log odds of each pixel after the last step."""
    kl: Tensor
    """(B, T) nats."""


class DRAWBody(nn.Module):
    def __init__(self, config: DRAWConfig, spec: ImageSpec):
        super().__init__()
        self.config, self.shape = config, (spec.size, spec.height, spec.width)
        C, H, W = self.shape
        D, Z, P = config.model_dim, config.latent_dim, C * H * W
        self.known_dim = 0 if config.attention else P  # of what the encoder reads, the picture itself stays the same
        seen = 2 * (C * config.read_size**2 if config.attention else P)
        self.encoder, self.decoder = LSTMCell(seen + D, D), LSTMCell(Z, D)
        self.to_latent = nn.Linear(D, 2 * Z)
        self.to_canvas = nn.Linear(D, C * config.write_size**2 if config.attention else P)
        if config.attention:
            self.to_windows = nn.Linear(D, 2 * NUM_NUMBERS)
            self.reading = GaussianWindow(config.read_size, H, W)
            self.writing = GaussianWindow(config.write_size, H, W)
            nn.init.normal_(self.to_windows.weight, std=0.01)
            nn.init.zeros_(self.to_windows.bias)
        self.first_states = nn.Parameter(torch.zeros(2, 2, D))  # h and c of encoder and decoder
        greys = torch.tensor(spec.mean).clamp(DARKEST, 1 - DARKEST).repeat_interleave(H * W)
        self.first_canvas = nn.Parameter(greys.logit())  # as white as pictures are

    def forward(self, x: Tensor, noise: Tensor) -> Painted:
        """x (B, P) from 0 to 1, normal noise (B, T, Z): paint x again."""
        canvas, encoder, decoder = self._begin(len(x))
        weights, K = self.encoder.weights, self.known_dim
        known = x[:, :K] @ weights.input[:, :K].T + weights.bias_input  # of (3), the same in each step
        nats = []
        for t in range(self.config.num_steps):
            missing = x - canvas.sigmoid()  # (1)
            fresh = torch.cat([*self._read(x, missing, decoder[0]), decoder[0]], dim=1)
            encoder = self.encoder(known + fresh @ weights.input[:, K:].T, encoder, weights.hidden)  # (3)
            mean, log_sigma = self.to_latent(encoder[0]).chunk(2, dim=1)
            log_sigma = log_sigma.clamp(-LARGEST_LOG_SIGMA, LARGEST_LOG_SIGMA)
            kl = 0.5 * (mean.square() + (2 * log_sigma).exp() - 1) - log_sigma  # (B, Z)
            nats.append(kl.sum(dim=1))
            note(self, "kl", kl)
            canvas, decoder = self._paint(mean + log_sigma.exp() * noise[:, t], canvas, decoder)  # (4)
        return Painted(canvas, torch.stack(nats, dim=1))

    def paint(self, latents: Tensor) -> Tensor:
        """(B, T, Z) -> the canvas after each step, as chances of each pixel: (B, T, C, H, W)."""
        canvas, _, decoder = self._begin(len(latents))
        seen = []
        for t in range(self.config.num_steps):
            canvas, decoder = self._paint(latents[:, t], canvas, decoder)
            seen.append(canvas.sigmoid())
        return torch.stack(seen, dim=1).view(len(latents), -1, *self.shape)

    def _begin(self, batch_size: int) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        encoder, decoder = (
            tuple(part.expand(batch_size, -1) for part in states) for states in self.first_states.unbind(dim=0)
        )
        return self.first_canvas.expand(batch_size, -1), encoder, decoder

    def _read(self, x: Tensor, missing: Tensor, h: Tensor) -> list[Tensor]:
        """What changes of (2)."""
        if not self.config.attention:
            return [missing]
        C, H, W = self.shape
        window = self.reading(self.to_windows(h)[:, :NUM_NUMBERS])
        note(self, "read window", window.numbers)
        note(self, "read box", window.box)
        both = torch.stack([x, missing], dim=1).view(-1, 2 * C, H, W)
        return [window.read(both).flatten(1)]

    def _paint(self, latent: Tensor, canvas: Tensor, decoder: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        decoder = self.decoder(self.decoder.weights.of_input(latent), decoder, self.decoder.weights.hidden)  # (5)
        added = self.to_canvas(decoder[0])
        if self.config.attention:
            window = self.writing(self.to_windows(decoder[0])[:, NUM_NUMBERS:])
            note(self, "write window", window.numbers)
            note(self, "write box", window.box)
            size = self.config.write_size
            added = window.write(added.view(-1, self.shape[0], size, size)).flatten(1)
        canvas = canvas + added  # (6)
        note(self, "latent", latent)
        note(self, "canvas", canvas)
        return canvas, decoder


class DRAW(nn.Module):
    """The verbs: what it scores is a bound."""

    context = None
    carries_state = continues = False

    def __init__(self, config: DRAWConfig, spec: ImageSpec, main: str):
        super().__init__()
        self.body, self.main = DRAWBody(config, spec), main

    @property
    def num_noise(self) -> int:
        """Numbers of chance for each row."""
        return self.body.config.num_steps * self.body.config.latent_dim

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        """What log p of each picture is at least, (B, 1) nats, by one draw."""
        reconstruction, kl = self.parts(batch)
        return -(reconstruction + kl).unsqueeze(1), None

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        reconstruction, kl = self.parts(batch)
        count, over = batch.targets[self.main].count(), self.main
        return Loss(
            {
                "reconstruction": Term(reconstruction.sum(), count, over=over),
                "kl": Term(kl.sum(), count, over=over),
            }
        )

    def parts(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Of (8), reconstruction and kl of each row, (B,) nats."""
        x, wanted = self._pixels(batch.inputs[IMAGE]), self._pixels(batch.targets[self.main])
        found = self.body(x, self._normal(batch.inputs[NOISE]).to(x))
        costs = functional.binary_cross_entropy_with_logits(found.canvas, wanted, reduction="none")  # (7)
        return costs.sum(dim=1), found.kl.sum(dim=1)

    def paint(self, noise: Noise) -> Tensor:
        """Pictures of this kind: how white each pixel is after each step, from 0 to 1, (B, T, C, H, W)."""
        return self.body.paint(self._normal(noise).to(self.body.first_canvas))

    def _normal(self, noise: Noise) -> Tensor:
        return noise.normal().view(len(noise.uniform), self.body.config.num_steps, -1)

    def _pixels(self, images: Images) -> Tensor:
        return images.pixels[:, 0].flatten(1).to(self.body.first_canvas.dtype) / 255  # (B, P)


def build_draw(config: DRAWConfig, schema: Schema) -> DRAW:
    spec = schema.input(IMAGE, ImageSpec)
    if spec.max_frames > 1:
        raise ConfigError("draw paints single pictures, and these are clips; choose pictures.")
    return DRAW(config, spec, schema.main)
