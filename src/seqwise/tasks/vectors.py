"""Texts, a line each: a vector of each. What sentence encoders were imported for; it is not trained here."""

from __future__ import annotations

from ..data.annotated import LabelledRow
from ..data.pair_store import Rows
from ..data.row_store import RowText
from ..data.schema import VECTOR, Schema, TokenSpec
from ..data.text_examples import TextStore
from ..errors import ConfigError, DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from .text import TextTask


class VectorsTask:
    """Texts are found as those of a language model are; each line that is not blank is one."""

    name = "vectors"
    title = "texts, a vector of each"
    kinds = (VECTOR,)
    goal = None
    options: tuple[str, ...] = ()

    def open(self, config: DataConfig) -> RowText:
        return RowText.of(TextTask().open(config), None)

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[RowText, str]:
        text, part = TextTask().open_other(source, split, schema, config)
        return RowText.of(text, None), part

    def schema(self, data: RowText, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        raise ConfigError(
            f"{data.name} does not say which vectors are right, so there is nothing to learn for --task vectors. "
            "Train on another task: seqwise embed takes any run that reads text."
        )

    def stores(self, data: RowText, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, TextStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: RowText, part: str, schema: Schema) -> TextStore:
        spec, lines = schema.input("tokens", TokenSpec), list(data.lines_of(part))
        if not lines:
            raise DataError(f"{data.name}: the {part} part has no line with a text; give more text.")
        encoded = Rows.of(spec.encode_texts([line])[0] for line in lines)
        return TextStore(encoded, {}, [LabelledRow((line,), "") for line in lines])
