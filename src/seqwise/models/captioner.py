"""captioner: eyes look at a picture or a clip, and a decoder writes a sentence about it.

Vinyals et al. 2015, Xu et al. 2015 (Show, Attend and Tell), Venugopalan et al. 2015 (S2VT). Fixes in seq2seq: the
source need not be words. What eyes find in each place of a picture is a memory, as the words of a source are:

    m_i    = relu(W [a_i; a_i'] + U [box_i; time_i] + b)   a vector for each place; of a clip with a_i', what was
                                                         there one frame before, which shows what moves      (1)
    attention = none: all that is seen passes through the mean of the places, which the decoder begins with and is shown
    at each step; soft, hard: it looks anew before each word        models/caption_decoder.py                (2)
    decoder = transformer: each layer looks                          models/transformer.py, with (1) as its source (3)

Of a clip, `places` says what is looked at: each cell of each frame; each frame, as the mean of its cells (4); or what
an LSTM knows after each frame (5), the last of which stands for the whole where there is no attention (S2VT).

Shapes: B batch, N pictures, S places, T frames, F features, D model width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, relu

from ..data.batch import Batch, Regions, Tokens
from ..data.schema import ImageSpec, RegionSpec, Schema, TokenSpec
from ..errors import ConfigError
from ..layers.dropout import Dropout
from ..layers.embeddings import TokenEmbedding
from ..layers.lstm import LSTMCell
from ..layers.recurrent import RecurrentStack
from .build import check_heads
from .caption_decoder import Baseline, CaptionDecoder, Looks
from .contract import Fields, Loss, State, Term
from .encoder_decoder import PairConfig, PairModel, sources_of
from .eyes import IMAGE, EyesConfig, eyes_for
from .transformer import TransformerBody, TransformerConfig

BOX_AND_TIME = 5


@dataclass(frozen=True)
class CaptionerConfig(PairConfig, EyesConfig):
    decoder: Literal["lstm", "gru", "transformer"] = "lstm"
    """What writes."""
    attention: Literal["none", "soft", "hard"] = "soft"
    """The mean of all places; a mean that is weighed anew before each word; or one place, chosen by chance in training
    and by probability later. A transformer's is soft."""
    places: Literal["cells", "frames", "lstm"] = "cells"
    """What is looked at: each cell of each frame; each frame; or what an LSTM over the frames knows after each."""
    motion: bool = True
    """Clips: each place is seen together with what was there one frame before."""
    model_dim: int = 256
    """Width of the decoder, and of what it looks at."""
    embed_dim: int | None = None
    """Width of the embeddings, and of what the next word is read from; as wide as the decoder where not set."""
    num_layers: int = 1
    """Layers of the decoder."""
    encoder_layers: int = 1
    """Transformer: layers in which places look at each other first."""
    num_heads: int = 4
    """Transformer: attention heads; model_dim is split evenly between them."""
    feed_forward_dim: int | None = None
    """Transformer: width inside the feed-forward layer; four times model_dim where not set."""
    alignment: Literal["additive", "general", "dot"] = "additive"
    """Attention: how places and the decoder's state are compared; additive as published, the others are faster."""
    gate: bool = True
    """Attention: how much of what was seen goes into the next word is decided word by word."""
    doubly_stochastic: float = 1.0
    """Attention: weight of the term that asks for each place to be looked at, over a whole caption, about once."""
    baseline: Literal["moving", "learned"] = "moving"
    """Hard attention: what a choice is measured by: the mean of the last updates, or a guess by the decoder's state."""
    reinforce: float = 1.0
    """Hard attention: weight of the term by which choices are learned; 1 is the gradient of the bound itself."""
    entropy: float = 0.01
    """Hard attention: weight of the term that keeps choices open."""
    num_looks: int = 64
    """Hard attention: tokens of the longest caption in training; chance is drawn for so many."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_eyes()
        check_heads(self.model_dim, self.num_heads if self.decoder == "transformer" else 1)
        if self.decoder == "transformer" and self.attention != "soft":
            raise ConfigError(f"a transformer looks at all places: model.attention = {self.attention} is not for it.")
        if self.shared_embeddings != "none" and self.decoder == "transformer" and self.embed_dim is not None:
            raise ConfigError("model.embed_dim is for recurrent decoders; a transformer's is model.model_dim.")
        for name in ("doubly_stochastic", "reinforce", "entropy"):
            if getattr(self, name) < 0:
                raise ConfigError(f"model.{name} = {getattr(self, name)} should not be negative.")


class Places(nn.Module):
    """(1), (4), (5): what eyes found -> what is looked at."""

    def __init__(self, config: CaptionerConfig, feature_dim: int, max_frames: int):
        super().__init__()
        D = config.model_dim
        self.kind, self.max_frames, self.dropout = config.places, max_frames, Dropout(config.dropout)
        self.has_motion = config.motion and max_frames > 1
        self.project = nn.Linear(2 * feature_dim if self.has_motion else feature_dim, D)
        self.locate = nn.Linear(BOX_AND_TIME, D, bias=False)
        self.over_frames = None
        if config.places == "lstm":
            self.over_frames = RecurrentStack(lambda width: LSTMCell(width, D), D, 1)

    def forward(self, found: Regions) -> tuple[Tensor, Tensor, Tensor]:
        """m (N, S, D), which of them there are (N, S), and what stands for all of them (N, D)."""
        is_place = found.is_region
        if is_place is None:
            is_place = torch.ones(found.shape, dtype=torch.bool, device=found.features.device)
        frame = frame_of(found.boxes, is_place)
        seen = found.features
        if self.has_motion:
            seen = torch.cat([seen, one_frame_before(seen, found.boxes)], dim=-1)
        m = relu(self.project(self.dropout(seen)) + self.locate(self._where(found, frame)))  # (1)
        if self.kind != "cells":
            m, is_place = mean_of_frames(m, frame, is_place)  # (4)
        if self.over_frames is not None:
            lengths = is_place.sum(dim=1)
            m, _ = self.over_frames(m, self.over_frames.initial_state(len(m)), lengths)  # (5)
            m = self.dropout(m)
            return m, is_place, m[torch.arange(len(m), device=m.device), lengths - 1]
        m = self.dropout(m)
        there = is_place.unsqueeze(-1).to(m)
        return m, is_place, (m * there).sum(dim=1) / there.sum(dim=1)

    def _where(self, found: Regions, frame: Tensor) -> Tensor:
        """(N, S, 5): box, and time as a share of the longest clip."""
        boxes = found.boxes if found.boxes is not None else found.features.new_zeros(*found.shape, BOX_AND_TIME - 1)
        return torch.cat([boxes, frame.unsqueeze(-1) / self.max_frames], dim=-1).to(found.features)


def frame_of(boxes: Tensor | None, is_place: Tensor) -> Tensor:
    """Of each region, the number of its frame, (N, S): a frame begins where the first box comes again; without boxes
    each region is a frame."""
    if boxes is None:
        return torch.arange(is_place.shape[1], device=is_place.device).expand(is_place.shape)
    begins = (boxes == boxes[:, :1]).all(dim=-1) & is_place
    return (begins.cumsum(dim=1) - 1).clamp(min=0)


def one_frame_before(features: Tensor, boxes: Tensor | None) -> Tensor:
    """What was seen in each place one frame before, frames having the same places: (N, S, F). Before the first one
    stands the first one itself."""
    first = 1  # places of a frame
    if boxes is not None:
        again = (boxes[:, 1:] == boxes[:, :1]).all(dim=-1).any(dim=0).nonzero()
        first = int(again[0]) + 1 if len(again) else boxes.shape[1]
    return torch.cat([features[:, :first], features[:, :-first]], dim=1)


def mean_of_frames(m: Tensor, frame: Tensor, is_place: Tensor) -> tuple[Tensor, Tensor]:
    """(N, S, D) -> (N, T, D), and which frames there are, (N, T)."""
    members = one_hot(frame, int(frame.max()) + 1).to(m) * is_place.unsqueeze(-1).to(m)  # (N, S, T)
    sizes = members.sum(dim=1)  # (N, T)
    return members.mT @ m / sizes.clamp(min=1).unsqueeze(-1), sizes > 0


class RecurrentCaptions(nn.Module):
    """Eyes and a recurrent decoder."""

    context = None

    def __init__(self, config: CaptionerConfig, schema: Schema):
        super().__init__()
        self.eyes = eyes_for(config, schema)
        self.places = Places(config, self.eyes.output_dim, _max_frames(schema))
        self.embedding = _embedding(config, schema)
        self.decoder = CaptionDecoder(
            config.decoder,
            config.attention,
            config.alignment,
            config.model_dim,
            self.embedding.embedding_dim,
            num_layers=config.num_layers,
            has_gate=config.gate,
            dropout=config.dropout,
        )
        self.dropout = self.decoder.dropout
        self.output_dim, self.can_align = self.embedding.embedding_dim, config.attention != "none"

    def read(self, sources: Fields) -> State:
        memory, is_place, whole = self.places(self.eyes(sources[IMAGE]))
        noise = sources.get("noise")
        return self.decoder.begin(memory, is_place, whole, None if noise is None else noise.uniform)

    def decode(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        hidden, _, after = self.look_and_decode(tokens, state)
        return hidden, after

    def look_and_decode(self, tokens: Tokens, state: State) -> tuple[Tensor, Looks | None, State]:
        return self.decoder(self.dropout(self.embedding(tokens)), state)

    def align(self, tokens: Tokens, state: State) -> Tensor | None:
        looks = self.look_and_decode(tokens, state)[1]
        return None if looks is None else looks.attention


class AsTheyAre(nn.Module):
    """Regions as steps of a source that is embedded already."""

    def forward(self, regions: Regions) -> Tensor:
        return regions.features


class TransformerCaptions(TransformerBody):
    """(3): eyes, and a Transformer whose source are the places."""

    def __init__(self, config: CaptionerConfig, schema: Schema):
        shape = TransformerConfig(
            dropout=config.dropout,
            num_layers=config.num_layers,
            encoder_layers=config.encoder_layers,
            model_dim=config.model_dim,
            num_heads=config.num_heads,
            feed_forward_dim=config.feed_forward_dim,
        )
        super().__init__(shape, AsTheyAre(), _embedding(config, schema))
        self.eyes = eyes_for(config, schema)
        self.places = Places(config, self.eyes.output_dim, _max_frames(schema))

    def read(self, sources: Fields) -> State:
        memory, is_place, _ = self.places(self.eyes(sources[IMAGE]))
        return super().read({IMAGE: Regions(memory, is_region=None if bool(is_place.all()) else is_place)})


class Captioner(PairModel):
    """The verbs of pairs, a picture being the source; and terms of the objective that are about looking."""

    def __init__(self, body: nn.Module, config: CaptionerConfig, schema: Schema, embedding: TokenEmbedding):
        super().__init__(body, config, schema, embedding)
        self.looking, is_hard = config, config.attention == "hard"
        self.num_noise = config.num_looks if is_hard else 0
        self.baseline: Baseline | None = None
        if is_hard:
            self.baseline = Baseline(config.model_dim, self.vocab_size, is_learned=config.baseline == "learned")

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        """In training with attention: the caption's, and terms of where was looked."""
        body: object = self.body
        if not (self.training and isinstance(body, RecurrentCaptions) and body.can_align):
            return super().loss(batch, state)
        read, targets = body.read(sources_of(batch)), batch.targets["tokens"]
        hidden, looks, _ = body.look_and_decode(self._learned_from(batch, read), read)
        is_token = torch.ones_like(targets.ids, dtype=torch.bool) if targets.is_token is None else targets.is_token
        terms, places = {"tokens": self._term_of(hidden, targets)}, read.memory["is_place"]
        count, looks = targets.count(), cast(Looks, looks)
        if self.looking.doubly_stochastic:
            # divided by tokens, as the likelihood is: so both keep the shares that they have in one caption
            total = unlooked(looks.attention, is_token, places)
            terms["doubly_stochastic"] = Term(total, count, self.looking.doubly_stochastic)
        if self.baseline is not None and looks.log_prob is not None:
            with torch.no_grad():
                found = self.head.expect(hidden).gather(-1, targets.ids.unsqueeze(-1)).squeeze(-1)  # (B, T)
            choices, guesses = self.baseline(found, looks, is_token)
            terms["reinforce"] = Term(choices, count, self.looking.reinforce)
            terms["entropy"] = Term(-entropy(looks.attention, is_token), count, self.looking.entropy)
            if self.looking.baseline == "learned":
                terms["baseline"] = Term(guesses, count)
        return Loss(terms)

    def count_update(self) -> None:
        super().count_update()
        if self.baseline is not None:
            self.baseline.count_update()


def unlooked(attention: Tensor, is_token: Tensor, is_place: Tensor) -> Tensor:
    """Sum over places of (1 - sum over t of a_t)^2 (Xu et al. 2015, 14): (B, T, S), (B, T), (B, S) -> ()."""
    looked = (attention * is_token.unsqueeze(-1)).sum(dim=1)  # (B, S)
    return ((1 - looked) ** 2 * is_place).sum()


def entropy(attention: Tensor, is_token: Tensor) -> Tensor:
    """Of all choices together, nats."""
    return -(torch.special.xlogy(attention, attention.clamp(min=1e-30)).sum(dim=-1) * is_token).sum()


def _embedding(config: CaptionerConfig, schema: Schema) -> TokenEmbedding:
    E = config.embed_dim or config.model_dim
    return TokenEmbedding(schema.target("tokens", TokenSpec).size, E, std=E**-0.5, scale=E**0.5)


def _max_frames(schema: Schema) -> int:
    spec = schema.specs[schema.inputs[IMAGE]]
    if isinstance(spec, ImageSpec):
        return spec.max_frames
    assert isinstance(spec, RegionSpec)
    return 1 if spec.has_boxes else spec.max_regions


def build_captioner(config: CaptionerConfig, schema: Schema) -> Captioner:
    body = (TransformerCaptions if config.decoder == "transformer" else RecurrentCaptions)(config, schema)
    return Captioner(body, config, schema, body.embedding)
