"""What a run takes over from another model besides a body: layers that words are read off in their context."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..data.schema import Schema, TokenSpec
from ..errors import ConfigError
from ..layers.contextual import layer_weights
from ..models.elmo import ELMo
from ..run import Run
from ..text.words import WordTokenizer

READER = "body.embedding.features.reader."


@dataclass(frozen=True)
class Features:
    """A language model whose layers are read."""

    path: Path
    fingerprint: str
    sizes: list[int]
    alphabet: str
    weights: dict[str, Tensor]

    @staticmethod
    def of(path: str) -> Features:
        run = Run.open(Path(path))
        model = run.load_model()
        if not isinstance(model, ELMo):
            raise ConfigError(
                f"model.features = {path} is a {run.config.model_name} model; features are read off a run of elmo."
            )
        digest = hashlib.sha256((run.path / "model.safetensors").read_bytes()).hexdigest()
        sizes = list(model.config.sizes.values())
        return Features(run.path.resolve(), digest, sizes, model.alphabet, dict(model.body.state_dict()))

    def settings(self) -> dict[str, Any]:
        """Of the section model."""
        return {"features": str(self.path), "feature_sizes": self.sizes, "features_fingerprint": self.fingerprint}

    def spelled(self, schema: Schema) -> Schema:
        """The schema with words spelled as the language model reads them."""
        spec = schema.input("tokens", TokenSpec)
        if not isinstance(spec.tokenizer, WordTokenizer):
            raise ConfigError(
                f"model.features reads words, and this is made of {spec.tokenizer.kind} tokens; add --tokenizer word."
            )
        name = schema.inputs["tokens"]
        return replace(schema, specs={**schema.specs, name: replace(spec, alphabet=self.alphabet)})

    def filled_in(self, model: nn.Module, weights: dict[str, Tensor] | None) -> dict[str, Tensor]:
        """The weights that training starts from: those given or fresh ones, with those of the language model."""
        start = dict(model.state_dict()) if weights is None else weights
        return {**start, **{f"{READER}{name}": weight for name, weight in self.weights.items()}}


def features_in_words(run: Run, model: object) -> Iterator[str]:
    """What a run reads beside its words, and how much of each layer: a sentence, or none."""
    found = layer_weights(model)
    if found is not None:
        yield f"Features of {run.config.model.features}: {found}"
