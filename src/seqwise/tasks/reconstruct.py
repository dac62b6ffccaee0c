"""Rows of text: read each, and write it again. A start for models of labels (the sequence autoencoder)."""

from __future__ import annotations

from dataclasses import replace

from ..data.row_store import RowStore, RowText, build_row_store
from ..data.schema import RECONSTRUCTION, Schema, TokenSpec, row_schema
from ..data.source import check_learnable
from ..errors import DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from .label import tokenizer_for_rows
from .text import TextTask

NOTE = "each line is a row, to be read and written again; a line of more than {} tokens is cut into several"


class ReconstructTask:
    """Texts are found as those of a language model are; tokens are those that a model of labels would have."""

    name = "reconstruct"
    title = "rows of text, to be written again"
    kinds = (RECONSTRUCTION,)
    goal = None
    options = ("tokenizers",)

    def open(self, config: DataConfig) -> RowText:
        return _with_note(RowText.of(TextTask().open(config), config.row_tokens))

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[RowText, str]:
        text, part = TextTask().open_other(source, split, schema, config)
        return RowText.of(text, config.row_tokens), part

    def schema(self, data: RowText, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        check_learnable(data)
        if base is not None and "tokens" in base.inputs:
            return row_schema(base.input("tokens", TokenSpec).tokenizer)
        return row_schema(tokenizer_for_rows(list(data.lines_of("train")), config, tell))

    def stores(self, data: RowText, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, RowStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: RowText, part: str, schema: Schema) -> RowStore:
        found = build_row_store(data.lines_of(part), schema.input("tokens", TokenSpec).tokenizer, data.row_tokens)
        if not len(found.rows):
            raise DataError(f"{data.name}: the {part} part has no row with something to write; give more text.")
        return found


def _with_note(data: RowText) -> RowText:
    return replace(data, notes=[*data.notes, NOTE.format(data.row_tokens)])
