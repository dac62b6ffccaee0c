"""A vector for a text, read off any model that makes vectors of its tokens.

    h_1 … h_T = hidden states of the row, as the model reads it: [CLS] text [SEP], or with its boundaries     (1)
    v         = pooled h                 mean, first (cls), last or highest of each number                    (2)
    v         = v / |v|                  where that is asked for                                              (3)

What is pooled: a model that answers whole texts (labels, vectors, hidden words) reads its special tokens as part of
the text, and all of the row is; of a language model the tokens of the text alone are, since nothing was ever asked of
its boundaries. ELMo gives the mean of its layers (Peters et al. 2018, equal weights), word2vec the vectors of the words
that have one. A text of which nothing is left gets the vector zero; one that is longer than the model has places for is
cut behind its beginning. Both are counted.

Reimers & Gurevych 2019: the mean over all pieces, special ones too, is what sentence encoders are trained with.

Shapes: N texts, B batch, T steps, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ..data.annotated import LabelledRow, TaggedRow
from ..data.batch import Tokens
from ..data.pair_store import Rows
from ..data.schema import LABEL, LABELS, NUMBER, TAG, VECTOR, TokenSpec
from ..data.text_examples import TextStore, build_tag_store, spell_texts
from ..errors import ConfigError, did_you_mean
from ..layers.heads import Pooling, VectorHead
from ..layers.stream import Stream
from ..models.contract import device_of, evaluating
from ..models.elmo import ELMo
from ..models.headed import HeadedModel
from ..models.word2vec import Word2Vec
from ..run import Run
from ..text.symbols import SymbolTokenizer
from ..wording import counted

POOLINGS = {"mean": "mean", "cls": "first", "first": "first", "last": "last", "max": "max"}
"""By the words of users: what `Pooling` calls them."""
POOLED = (LABEL, LABELS, NUMBER, VECTOR)
"""Kinds of target whose models pool by themselves."""
BATCH_SIZE = 32
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Embedded:
    vectors: np.ndarray
    """(N, D) float32."""
    is_empty: np.ndarray
    """(N,) bool: texts of which the model reads nothing; their vector is zero."""
    is_cut: np.ndarray
    """(N,) bool: texts longer than the model has places for; the beginning was read."""
    limit: int | None
    """Tokens that it has places for."""
    about: str
    """How it was done: "mean", "mean|normalised"."""

    def notes(self) -> Iterator[str]:
        """What a user should know."""
        if num := int(self.is_empty.sum()):
            yield f"{counted(num, 'text')} of {len(self.vectors):,} with nothing that the model reads: zero vectors"
        if num := int(self.is_cut.sum()):
            yield (
                f"{counted(num, 'text')} of {len(self.vectors):,} longer than the {self.limit:,} tokens that the model "
                "can place: their beginning was read"
            )


class TextEncoder:
    """The model of a run, as it makes vectors of texts."""

    def __init__(self, run: Run, model: object, *, pooling: str | None = None, normalise: bool | None = None):
        """`pooling` and `normalise` as the run says where they are not given; else the mean, as it is."""
        self.run, self.spec, self.schema = run, _spec_of(run, model), run.schema
        self.model, self.settings = model, run.config.model
        if pooling is not None and pooling not in POOLINGS:
            raise ConfigError(f'--pooling "{pooling}" is not known. {did_you_mean(pooling, POOLINGS)}')
        own = self.settings.pooling if run.schema.kind in POOLED else "mean"
        self.kind = own if pooling is None else POOLINGS[pooling]
        self.is_normalised = getattr(self.settings, "normalise", False) if normalise is None else normalise
        self.limit: int | None = getattr(model, "context", None)
        self.pooling = self._pooling(is_own=pooling is None)

    @property
    def about(self) -> str:
        return self.kind + "|normalised" * self.is_normalised

    def _pooling(self, *, is_own: bool) -> Callable[[Stream], Tensor]:
        """(B, T, D) -> (B, D): what a head does, where the model has one that pools and nothing else was asked for."""
        model = self.model
        if is_own and self.schema.kind in POOLED:
            assert isinstance(model, HeadedModel)
            head: Any = model.main_head
            if not isinstance(head, VectorHead):
                pooled_by = model.siamese or model.compared or head
                return cast(Pooling, pooled_by.pooling).of
        both_ends = isinstance(model, ELMo) or getattr(self.settings, "reads_both_ways", False)
        chosen = Pooling(self.kind, 1, both_ends=both_ends)  # without weights: its width says nothing
        return lambda stream: chosen(stream.hidden, stream.lengths)

    @torch.inference_mode()
    def embed(
        self, texts: Sequence[str], *, batch_size: int = BATCH_SIZE, on_progress: OnProgress = lambda *_: None
    ) -> Embedded:
        """All texts, those of about one length together."""
        rows, is_cut = self._rows(texts)
        lengths = rows.lengths - 2 * self._is_framed
        known = np.flatnonzero(lengths > 0)
        order, done = known[np.argsort(-rows.lengths[known], kind="stable")], 0
        vectors: np.ndarray | None = None
        with evaluating(self.model):
            for start in range(0, len(order), batch_size):
                chosen = order[start : start + batch_size]
                found = self._vectors(rows.batch(chosen).inputs["tokens"]).float().cpu().numpy()
                if vectors is None:
                    vectors = np.zeros((len(texts), found.shape[1]), dtype=np.float32)
                vectors[chosen] = found
                done += len(chosen)
                on_progress("embedding", done, len(order))
        if vectors is None:
            vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        is_empty = np.ones(len(texts), dtype=bool)
        is_empty[known] = False
        return Embedded(vectors, is_empty, is_cut, self.limit, self.about)

    @property
    def width(self) -> int:
        """D, found by reading something."""
        if isinstance(self.model, Word2Vec):
            return self.model.vectors.shape[1]
        row = Tokens(torch.tensor([[self.spec.begin, self.spec.separator, self.spec.separator]]))
        if self.spec.alphabet:
            row = replace(row, characters=torch.from_numpy(self.spec.spell(["a"] * 3)).long().unsqueeze(0))
        with torch.inference_mode():
            return self._vectors(row).shape[1]

    @property
    def _is_framed(self) -> bool:
        """Whether what begins and ends a row is read beside the text."""
        return not isinstance(self.model, Word2Vec)

    def _rows(self, texts: Sequence[str]) -> tuple[TextStore, np.ndarray]:
        """(1): each text as a row; and which were cut."""
        if isinstance(self.model, Word2Vec):
            has_vector = self.model.has_vector
            encoded = [self.spec.encode(text) for text in texts]
            return TextStore(Rows.of(ids[has_vector[ids]] for ids in encoded), {}, []), np.zeros(len(texts), dtype=bool)
        if self.schema.kind == TAG and self.spec.alphabet:
            return self._rows_of_words(texts)
        lines = [" ".join(text.strip().split("\n")) for text in texts]
        encoded = [self.spec.encode_texts([line])[0] for line in lines]
        limit = self.limit or max(map(len, encoded), default=0)
        is_cut = np.array([len(ids) > limit for ids in encoded], dtype=bool)
        kept = Rows.of(ids if len(ids) <= limit else np.append(ids[: limit - 1], ids[-1]) for ids in encoded)
        spelled = (
            spell_texts(self.spec, [LabelledRow((line,), "") for line in lines], kept) if self.spec.alphabet else None
        )
        segments = np.zeros(len(kept.ids), dtype=np.int8) if self.spec.num_texts > 1 else None
        return TextStore(kept, {}, [], segments, spelled), is_cut

    def _rows_of_words(self, texts: Sequence[str]) -> tuple[TextStore, np.ndarray]:
        """Of taggers that spell words: what stands between white space."""
        rows, is_cut = list[TaggedRow](), np.zeros(len(texts), dtype=bool)
        for number, text in enumerate(texts):
            words = text.split()
            ids, steps = self.spec.encode_words(words)
            if self.limit is not None and len(ids) > self.limit:
                ends = np.append(steps[1:], len(ids) - 1)
                words, is_cut[number] = words[: int((ends < self.limit).sum())], True
            rows.append(TaggedRow(tuple(words), ("",) * len(words)))
        return build_tag_store(rows, replace(self.schema, targets=dict(list(self.schema.targets.items())[:1]))), is_cut

    def _vectors(self, tokens: Tokens) -> Tensor:
        """(B, T) -> (B, D)."""
        found = self.pooling(self._stream(tokens.map(lambda tensor: tensor.to(device_of(self.model)))))  # (2)
        return normalize(found, dim=-1) if self.is_normalised else found  # (3)

    def _stream(self, tokens: Tokens) -> Stream:
        """What is pooled."""
        model = self.model
        if isinstance(model, Word2Vec):
            return Stream(torch.from_numpy(model.vectors)[tokens.ids], tokens.is_token)
        if isinstance(model, ELMo):
            characters = model.spelling[tokens.ids] if tokens.characters is None else tokens.characters
            layers = model.body.layers(characters, tokens.lengths)
            return _without_boundaries(Stream(torch.stack(layers).mean(dim=0), tokens.is_token))
        assert isinstance(model, HeadedModel)
        stream = model.body.encode({"tokens": tokens}, None).stream
        return _without_boundaries(stream) if model.continues else stream


def _without_boundaries(stream: Stream) -> Stream:
    """The steps between the first and the last of each row."""
    hidden, lengths = stream.hidden[:, 1:-1], stream.lengths - 2
    return Stream(hidden, torch.arange(hidden.shape[1], device=hidden.device) < lengths.unsqueeze(1))


def _spec_of(run: Run, model: object) -> TokenSpec:
    """Of the texts that a model reads; refused where it reads none, or has no vectors."""
    name = run.config.model_name
    if not isinstance(model, Word2Vec | nn.Module):
        raise ConfigError(f"{run.path} is a {name} model, which knows tokens by name: it makes no vectors of a text.")
    spec = run.schema.specs[run.schema.inputs["tokens"]] if list(run.schema.inputs) == ["tokens"] else None
    if not isinstance(spec, TokenSpec) or isinstance(spec.tokenizer, SymbolTokenizer):
        raise ConfigError(
            f"{run.path} was trained on {run.config.task}: it does not read one text at a time, and makes no vectors "
            "of texts."
        )
    return replace(spec, alphabet=model.alphabet) if isinstance(model, ELMo) else spec


def embed_texts(
    run: Run,
    model: object,
    texts: Sequence[str],
    *,
    pooling: str | None = None,
    normalise: bool | None = None,
    batch_size: int = BATCH_SIZE,
    on_progress: OnProgress = lambda *_: None,
) -> Embedded:
    """A vector for each text; `pooling` and `normalise` as the run says where they are not given."""
    encoder = TextEncoder(run, model, pooling=pooling, normalise=normalise)
    return encoder.embed(texts, batch_size=batch_size, on_progress=on_progress)
