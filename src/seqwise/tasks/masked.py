"""Text with words hidden, to be filled in: what a model that reads from both sides is pretrained by."""

from __future__ import annotations

from dataclasses import replace

from ..data.masking import MaskedStore, MaskedText
from ..data.schema import MASKED_TOKEN, Schema, TokenSpec, masked_schema
from ..data.source import TextData, check_learnable
from ..data.store import TokenStore
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from .text import TextTask, make_tokenizer


class MaskedTask:
    name = "masked"
    title = "hidden words of a text"
    kinds = (MASKED_TOKEN,)
    goal = None
    options = ("tokenizers",)

    def open(self, config: DataConfig) -> MaskedText:
        """Two texts a row, where nobody said otherwise."""
        return MaskedText.of(TextTask().open(config), has_pairs=config.next_sentence is not False)

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[TextData, str]:
        return TextTask().open_other(source, split, schema, config)

    def schema(self, data: MaskedText, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        check_learnable(data)
        if base is not None and base.kind == MASKED_TOKEN:
            return base
        if base is not None and "tokens" in base.inputs:
            return masked_schema(base.input("tokens", TokenSpec).tokenizer, next_sentence=data.has_pairs)
        if config.kind == "auto":
            config = replace(config, kind="wordpiece")  # frequent words whole, the others in pieces
        return masked_schema(make_tokenizer(config, data, tell), next_sentence=data.has_pairs)

    def stores(
        self, data: TextData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, MaskedStore]:
        return {part: _masked(found, schema) for part, found in TextTask().stores(data, schema, on_progress).items()}

    def store(self, data: TextData, part: str, schema: Schema) -> MaskedStore:
        return _masked(TextTask().store(data, part, schema), schema)


def _masked(text: TokenStore, schema: Schema) -> MaskedStore:
    return MaskedStore(text, schema.input("tokens", TokenSpec), has_pairs="next" in schema.targets)
