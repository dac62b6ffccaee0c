"""ELMo: a language model from both ends over words that are made of their characters; its layers are vectors of words
in their context.

Peters et al. 2018. Fixes in word2vec: one vector for all that a word can mean; for a word that was never seen, none.

    x_t = word made of its characters               layers/character_words.py                            (1)
    h_t = LSTM(x_t, h_{t-1})                        forward, L layers, residual, with a projection       (2)
    g_t = LSTM(x_t, g_{t+1})                        backward, its own weights                            (3)
    p(token t+1 | tokens 1..t)   = softmax(W h_t)                                                        (4)
    p(token t-1 | tokens t..T)   = softmax(W g_t)   the same W                                           (5)
    layer 0 = [x_t; x_t],  layer l = [h_t; g_t] of layer l: what others read (layers/contextual.py)      (6)

(1) to (3) and (6) are layers/bidirectional_lm.py.

(4) is a language model as any other: by it ELMo is scored, and goes on. (5) is trained beside it, chunk by chunk, and
reads each chunk from its end.

Shapes: B batch, T steps, K characters of a word, E = D model width, V vocabulary, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens
from ..data.schema import Schema, TokenSpec
from ..errors import ConfigError
from ..layers.adaptive_softmax import AdaptiveSoftmaxHead
from ..layers.bidirectional_lm import BidirectionalLM
from ..layers.character_words import spelled
from ..layers.heads import NextTokenHead
from ..layers.stream import Stream
from .build import FEATURE_SIZES, LARGE_VOCAB, check_sizes, cutoffs_for
from .contract import Loss, State, Term


@dataclass(frozen=True)
class ELMoConfig:
    model_dim: int = 128
    """Width of words, and of the state of each direction: what each layer hands on is twice as wide."""
    memory_dim: int = 512
    """Width of the memory of each LSTM, from which its state is projected."""
    num_layers: int = 2
    """LSTM layers of each direction."""
    character_dim: int = 16
    """Width of the embeddings of characters."""
    num_filters: int = 16
    """Filters over single characters; over two, three, ... as many times more."""
    num_highways: int = 2
    """Highway layers between filters and words."""
    dropout: float = 0.1
    """Share of values dropped in training, from words, between layers and before the output."""
    adaptive_softmax: bool = True
    """Look into rare tokens only when they are needed: faster where the vocabulary is large."""

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.memory_dim <= self.model_dim:
            raise ConfigError(
                f"model.memory_dim = {self.memory_dim} should be above model_dim = {self.model_dim}, "
                "which it is projected to."
            )

    @property
    def sizes(self) -> dict[str, int]:
        """All that the shapes of its body's weights follow from, besides the characters."""
        return {name: getattr(self, name) for name in FEATURE_SIZES}


class ELMo(nn.Module):
    context = None
    carries_state = continues = True
    can_compile = False  # its kernels are compiled already
    spelling: Tensor

    def __init__(self, config: ELMoConfig, schema: Schema):
        super().__init__()
        self.config = config
        spec = schema.input("tokens", TokenSpec)
        pieces = [spec.tokenizer.piece(token) for token in range(spec.tokenizer.vocab_size)]
        self.alphabet, self.vocab_size, self.boundary = spelled(pieces), spec.size, spec.boundary
        speller = TokenSpec(spec.tokenizer, alphabet=self.alphabet)
        words = ["" if token == spec.boundary else piece for token, piece in enumerate(pieces)]
        self.register_buffer("spelling", torch.from_numpy(speller.spell(words)).long(), persistent=False)  # (V, K)
        self.body = BidirectionalLM(speller.num_characters, **config.sizes, dropout=config.dropout)
        self.head = nn.Module()
        is_large = config.adaptive_softmax and spec.size >= LARGE_VOCAB
        self.head.tokens = (
            AdaptiveSoftmaxHead(config.model_dim, spec.size, cutoffs=cutoffs_for(spec.size))
            if is_large
            else NextTokenHead(config.model_dim, spec.size)
        )

    def initial_state(self, batch_size: int) -> State:
        return State(dict(zip("hc", self.body.initial_state(batch_size), strict=True)))

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        """(4)"""
        tokens: Tokens = batch.inputs["tokens"]
        hidden, after = self._forward(tokens, state)
        return self.head.tokens.score(Stream(hidden), batch.targets["tokens"]), after  # type: ignore[union-attr, operator]

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        """(4) of the targets, which stand one step ahead; (5) of the inputs, read off the targets from their end."""
        inputs, targets = batch.inputs["tokens"], batch.targets["tokens"]
        forward, after = self.score(batch, state)
        hidden = self.body.read_backward(self.spelling[targets.ids], targets.lengths)
        backward = self.head.tokens.score(Stream(hidden), inputs)  # type: ignore[union-attr, operator]
        if targets.is_token is not None:
            forward, backward = (found.masked_fill(~targets.is_token, 0.0) for found in (forward, backward))
        count = targets.count()
        terms = {"forward": Term(-forward.sum(), count, 0.5), "backward": Term(-backward.sum(), count, 0.5)}
        return Loss(terms, after)

    def layers(self, batch: Batch) -> tuple[Tensor, ...]:
        """(6), for who reads them: words as they are spelled, where the batch has their characters."""
        tokens: Tokens = batch.inputs["tokens"]
        characters = self.spelling[tokens.ids] if tokens.characters is None else tokens.characters
        return tuple(self.body.layers(characters, tokens.lengths))

    def start(self, prompt: Batch) -> tuple[Tensor, State]:
        tokens: Tokens = prompt.inputs["tokens"]
        hidden, state = self._forward(tokens, None)
        last = hidden[torch.arange(len(hidden), device=hidden.device), tokens.lengths - 1]
        return self.head.tokens.expect(last), state  # type: ignore[union-attr, operator]

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, after = self._forward(Tokens(tokens.to(self.spelling.device).unsqueeze(1)), state)
        return self.head.tokens.expect(hidden[:, 0]), after  # type: ignore[union-attr, operator]

    def _forward(self, tokens: Tokens, state: State | None) -> tuple[Tensor, State]:
        state = state or self.initial_state(tokens.shape[0])
        lengths = None if tokens.is_token is None else tokens.lengths
        before = state.per_row["h"], state.per_row["c"]
        hidden, after = self.body.read_forward(self.spelling[tokens.ids], lengths, before)
        return hidden, State(dict(zip("hc", after, strict=True)))


def build_elmo(config: ELMoConfig, schema: Schema) -> ELMo:
    return ELMo(config, schema)
