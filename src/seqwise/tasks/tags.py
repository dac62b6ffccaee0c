"""Words with a tag each: say which. Parts of speech, entities, slots; with a label for the row where there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data.annotated import TaggedData, TaggedRow
from ..data.schema import TAG, LabelSpec, Schema, TagSpec, TokenSpec, tag_schema
from ..data.tag_files import open_tagged, open_whole_tagged, words_of
from ..data.tag_layouts import layout_of
from ..data.text_examples import TextStore, build_tag_store
from ..errors import DataError
from ..goals.goal import OnProgress, Tell
from ..settings import DataConfig, TokenizerConfig
from ..text import IN_WORDS, Tokenizer, special_of, train_tokenizer

MIN_CHARACTER_COUNT = 2


class TagsTask:
    name = "tags"
    title = "words with a tag each"
    kinds = (TAG,)
    goal = None
    options = ("labels",)

    def open(self, config: DataConfig) -> TaggedData:
        return open_tagged(
            config.source, valid=config.valid, test=config.test, split=config.split, columns=config.columns
        )

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[TaggedData, str]:
        if split is not None or not Path(source).is_file():
            return open_tagged([source], columns=config.columns if Path(source).exists() else ()), split or "test"
        return open_whole_tagged([source], config.columns, schema.target("tags", TagSpec).names), "whole"

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[TaggedData, str]:
        """The words of each row of a file, to be tagged: it needs no tags."""
        if not Path(source).is_file():
            return self.open_other(source, None, schema, config)
        rows = [_untagged(words) for words in words_of(source, config.columns)]
        if not rows:
            raise DataError(f"{source}: there are no words in it to be tagged.")
        scheme, layout = schema.target("tags", TagSpec).scheme, layout_of(Path(source), config.columns)
        return TaggedData(Path(source).name, {"whole": rows}, scheme, "read whole", layout=layout), "whole"

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema) -> TextStore:
        """A text is split at white space; words may be given one by one."""
        return build_tag_store([_untagged(row.split() if isinstance(row, str) else row) for row in asked], schema)

    def schema(self, data: TaggedData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        rows = data.parts["train"]
        words = [word for row in rows for word in row.words]
        counts = Counter(character for word in words for character in word)
        alphabet = "".join(sorted(character for character, n in counts.items() if n >= MIN_CHARACTER_COUNT))
        if base is not None and isinstance(spec := next(iter(base.specs.values())), TokenSpec):
            tokens = replace(spec, alphabet=alphabet, num_texts=1)
        else:
            tokenizer = _make_tokenizer(words, config, tell)
            tokens = TokenSpec(tokenizer, special_of(tokenizer), alphabet)
        tags = Counter(tag for row in rows for tag in row.tags)
        labels = Counter(row.label for row in rows)
        return tag_schema(
            tokens,
            TagSpec(data.tags, [tags[tag] for tag in data.tags], data.scheme),
            LabelSpec(data.labels, [labels[label] for label in data.labels]) if data.labels else None,
        )

    def stores(
        self, data: TaggedData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, TextStore]:
        return {part: self.store(data, part, schema) for part in data.parts}

    def store(self, data: TaggedData, part: str, schema: Schema) -> TextStore:
        return build_tag_store(data.parts[part], schema, data.layout)


def _untagged(words: Sequence[str]) -> TaggedRow:
    return TaggedRow(tuple(words), ("",) * len(words))


def _make_tokenizer(words: list[str], config: TokenizerConfig, tell: Tell) -> Tokenizer:
    kind = "word" if config.kind == "auto" else config.kind
    options: dict[str, Any] = {"min_count": config.min_count} if config.min_count is not None else {}
    if kind == "word":
        options["split_punctuation"] = False
    if kind in ("word", "wordpiece"):
        options["lower_case"] = bool(config.lower_case)
    if kind != "char" and config.vocab_size is not None:
        options["vocab_size"] = config.vocab_size
    made = train_tokenizer(kind, (word + "\n" for word in words), **options)
    tell(f"tokenizer: {IN_WORDS[kind]}{' as they are given' if kind == 'word' else ''}, {made.vocab_size:,} tokens")
    return made
