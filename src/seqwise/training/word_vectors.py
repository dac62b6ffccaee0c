"""Vectors of words from a run or a file, to look at, and for the embeddings of a new model to start from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.schema import Schema, TokenSpec
from ..data.vector_files import read_vectors
from ..data.word_vectors import WordVectors
from ..errors import ConfigError
from ..goals.goal import Tell
from ..layers.embeddings import TokenEmbedding
from ..models.build import CHARACTER_DIM
from ..models.word2vec import Word2Vec
from ..run import Run
from ..text.words import WordTokenizer

MAX_ADDED_WORDS = 50_000  # that training lacks and the vectors know, the most frequent first
SHOWN_WORDS = 5


def load_word_vectors(path: str | Path) -> WordVectors:
    """Of a run (of word2vec, or of a network that has a table of tokens), or of a file of vectors."""
    path = Path(path)
    return words_of(Run.open(path)) if path.is_dir() else read_vectors(path)


def words_of(run: Run) -> WordVectors:
    """The words of a run with their vectors; what is no word (unknown ones, the end of a line) has none."""
    model = run.load_model()
    if isinstance(model, Word2Vec):
        return model.words
    modules = model.modules() if isinstance(model, nn.Module) else ()
    tables = [module for module in modules if isinstance(module, TokenEmbedding)]
    if not tables or "tokens" not in run.schema.inputs:
        raise ConfigError(f"{run.path} is a {run.config.model_name} model, which has no vectors of words.")
    tokenizer = run.schema.input("tokens", TokenSpec).tokenizer
    without = {tokenizer.boundary, getattr(tokenizer, "unknown", None)}
    rows = [token for token in range(tokenizer.vocab_size) if token not in without]
    return WordVectors([tokenizer.piece(row) for row in rows], tables[-1].weight.detach().cpu().numpy()[rows])


@dataclass(frozen=True)
class StartVectors:
    """What `model.embeddings` names."""

    path: Path
    fingerprint: str
    words: WordVectors

    @staticmethod
    def of(path: str) -> StartVectors:
        found = Path(path)
        if not found.exists():
            raise ConfigError(f"model.embeddings = {path}: there is no such run or file of vectors.")
        words = load_word_vectors(found)
        file = found / "model.safetensors" if found.is_dir() else found
        with file.open("rb") as opened:
            fingerprint = hashlib.file_digest(opened, "sha256").hexdigest()
        return StartVectors(found.resolve(), fingerprint, words)

    @property
    def width(self) -> int:
        return self.words.vectors.shape[1]

    def settings(self, known: Iterable[str], sized: dict[str, Any]) -> dict[str, Any]:
        """Of the section model: embeddings are as wide as the vectors, where a family has a setting for that alone."""
        found: dict[str, Any] = {"embeddings": str(self.path), "embeddings_fingerprint": self.fingerprint}
        if "embed_dim" in known:
            beside = sized.get("character_dim", CHARACTER_DIM) if sized.get("characters", "none") != "none" else 0
            found["embed_dim"] = self.width + beside
        return found

    def known(self, schema: Schema, tell: Tell) -> Schema:
        """The schema with the words that training lacks and the vectors know, where it does not predict words.

        Tells how many words of the data have a vector, and which frequent ones have none.
        """
        read = _words_of(schema)
        if not read:
            kinds = {spec.tokenizer.kind for spec in schema.specs.values() if isinstance(spec, TokenSpec)}
            made_of = f"{' and '.join(sorted(kinds))} tokens" if kinds else "numbers"
            raise ConfigError(
                f"model.embeddings are vectors of words, and this is made of {made_of}; add --tokenizer word."
            )
        specs = dict(schema.specs)
        for name, (spec, tokenizer) in read.items():
            tell(self._in_words(tokenizer.words))
            if all(target.spec != name for target in schema.targets.values()):
                wider = tokenizer.with_words(self._others(tokenizer))
                specs[name] = replace(spec, tokenizer=wider)
                added = wider.vocab_size - tokenizer.vocab_size
                tell(f"embeddings: {added:,} more words are known by their vectors alone")
        return replace(schema, specs=specs)

    def _in_words(self, words: Sequence[str]) -> str:
        without = [word for word in words if self.words.find(word) is None]
        share = 1 - len(without) / max(1, len(words))
        none = f"; of those that have none, the most frequent: {', '.join(without[:SHOWN_WORDS])}" if without else ""
        return f"embeddings: {100 * share:.1f} % of {len(words):,} words start from {self.path}{none}"

    def _others(self, tokenizer: WordTokenizer) -> list[str]:
        """Words that this tokenizer does not know, and would read as one token; the most frequent."""
        found: dict[str, None] = {}
        for word in self.words.words:
            read = tokenizer.split(word.lower() if tokenizer.lower_case else word)
            if len(read) == 1 and not tokenizer.knows(read[0]):
                found[read[0]] = None
            if len(found) == MAX_ADDED_WORDS:
                break
        return list(found)

    def filled_in(self, model: nn.Module, weights: dict[str, Tensor] | None, schema: Schema) -> dict[str, Tensor]:
        """The weights that training starts from: those given or fresh ones, with the vectors in their tables.

        They are scaled to the spread of the table they are put into: rates and sizes by rule suit that.
        """
        filled = dict(model.state_dict()) if weights is None else dict(weights)
        read = _words_of(schema)
        for field, spec_name in schema.inputs.items():
            if spec_name not in read:
                continue
            table = "body.source_embedding" if field == "source" else "body.embedding"
            weight = filled[f"{table}.weight"].clone()
            if weight.shape[1] != self.width:
                raise ConfigError(
                    f"{self.path} has vectors of {self.width} numbers, and a table of this model has rows of "
                    f"{weight.shape[1]}: make them equal (model.embed_dim, or model.model_dim where there is none)."
                )
            tokens, rows = self._shared(read[spec_name][1])
            found = self.words.vectors[rows]
            scale = float(weight.std()) / max(1e-12, float(found.std())) if len(rows) else 1.0
            weight[torch.from_numpy(tokens)] = torch.from_numpy(found * np.float32(scale)).to(weight)
            filled[f"{table}.weight"] = weight
        return filled

    def _shared(self, tokenizer: WordTokenizer) -> tuple[np.ndarray, np.ndarray]:
        """Tokens that have a vector, and which rows these are."""
        found = [(token, self.words.find(word)) for token, word in enumerate(tokenizer.pieces)]
        shared = np.array([pair for pair in found if pair[1] is not None], dtype=np.int64).reshape(-1, 2)
        return shared[:, 0], shared[:, 1]


def _words_of(schema: Schema) -> dict[str, tuple[TokenSpec, WordTokenizer]]:
    """The specs that are read as words, by name."""
    found = {}
    for name in dict.fromkeys(schema.inputs.values()):
        spec = schema.specs[name]
        if isinstance(spec, TokenSpec) and isinstance(spec.tokenizer, WordTokenizer):
            found[name] = spec, spec.tokenizer
    return found
