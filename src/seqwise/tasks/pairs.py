"""Pairs of sequences: read a source, write its target. Translation, spelling to sound, dialogue, summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..config import build
from ..data.pair_store import PairBatches, PairStore, build_pair_store
from ..data.pairs import PairData, as_trained, open_pairs, open_whole_pairs
from ..data.vocab import Vocab
from ..decoding import DecodingConfig
from ..decoding.translate import Answer, translate
from ..errors import ConfigError, DataError
from ..evaluation.search_report import WIDTHS, SearchReport, report_on_search
from ..evaluation.translations import TranslationScore, likelihood_of, nats_per_token
from ..models.contract import evaluating
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from ..text import Tokenizer, train_tokenizer
from .task import Advance, BatchSource, Facts, Tell

FEW_WORDS = 300  # so many at most, each often: words (phonemes, number words) are the letters of this side
OFTEN = 20
SENTENCE_CHARACTERS, MANY_WORDS = 25, 1000  # from here on a side is made of sentences
LARGEST_VOCAB, CHARACTERS_PER_PAIR = 8000, 750  # byte pairs; text for each
DEFAULT_SEARCH = {"method": "beam", "beam_width": 5, "length_penalty": 1.0, "length_form": "gnmt", "max_tokens": 1000}
DEFAULT_RATIO = 3.0


class PairsTask:
    name = "pairs"
    title = "pairs of sequences"
    unit = "tokens"
    metrics = ("bleu", "chrf", "exact_match", "token_accuracy", "nats_per_token")
    score_options: tuple[str, ...] = ("method", "beam_width", "length_penalty", "length_form")
    reads_lines = True
    writes_table = False

    def open(self, config: DataConfig) -> PairData:
        return open_pairs(
            config.source, valid=config.valid, test=config.test, split=config.split, columns=config.columns
        )

    def open_other(self, source: str, split: str | None, vocab: Vocab, config: DataConfig) -> tuple[PairData, str]:
        """A file, two files with a comma between, a folder, or the name of a set."""
        named = [source] if Path(source).exists() else source.split(",")
        names, columns = as_trained(named, config.source, config.columns)
        if split is None and all(Path(name).is_file() for name in names):
            return open_whole_pairs(names, columns), "whole"
        return open_pairs(names, columns=columns), split or "test"

    def learn_vocab(self, data: PairData, config: TokenizerConfig, tell: Tell) -> Vocab:
        sides = [[pair[side] for pair in data.parts["train"]] for side in range(2)]
        kinds = [_kind_of(side) for side in sides]
        asked = [config.source_kind if config.source_kind != "auto" else config.kind, config.kind]
        kinds = [kind if wish == "auto" else wish for kind, wish in zip(kinds, asked, strict=True)]
        is_joint = config.joint if config.joint is not None else _share_letters(kinds, sides)
        if is_joint and kinds[0] != kinds[1]:
            raise ConfigError(f"tokenizer.joint: the source is made of {kinds[0]}, the target of {kinds[1]}; drop one.")
        target = _learn(kinds[1], [*sides[0], *sides[1]] if is_joint else sides[1], config)
        source = target if is_joint else _learn(kinds[0], sides[0], config)
        how = f"{kinds[0]}, {source.vocab_size:,} tokens"
        tell(f"tokens: {how}, for both sides" if is_joint else f"tokens: {how}; {kinds[1]}, {target.vocab_size:,}")
        return Vocab(target, source)

    def stores(self, data: PairData, vocab: Vocab, advance: Advance = lambda *_: None) -> dict[str, PairStore]:
        return {part: self.store(data, part, vocab) for part in data.parts}

    def store(self, data: PairData, part: str, vocab: Vocab) -> PairStore:
        source, target = tokenizers_of(vocab)
        return build_pair_store(data.parts[part], source, target)

    def facts(self, data: PairData, train: PairStore, vocab: Vocab, minutes: float | None) -> Facts:
        source, target = tokenizers_of(vocab)
        ratio = np.quantile((train.target.lengths - 1) / train.source.lengths, 0.999)
        longest = int(max(train.source.lengths.max(), train.target.lengths.max()))
        found = {"length_ratio": round(float(ratio), 3)}
        return Facts(len(train), target.vocab_size, target.kind, minutes, self.name, length=longest, data=found)

    def batches(self, store: PairStore, model: Any, config: TrainingConfig) -> BatchSource:
        return PairBatches(store, batch_tokens=config.batch_tokens, seed=config.seed)

    def sequences(self, store: PairStore, model: Any) -> list[Any]:
        raise ConfigError("families that learn by counting or EM read no pairs; choose another --model.")

    def beginning(self, store: PairStore, most: int) -> PairStore:
        return store.first(most)

    def validated(self, store: PairStore, most: int | None) -> PairStore:
        return store if most is None else store.first(most)

    def validate(self, model: Any, store: PairStore, most: int | None) -> float:
        return nats_per_token(model, self.validated(store, most))

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None  # from nats to n-grams in common

    def score(
        self,
        model: Any,
        store: PairStore,
        vocab: Vocab,
        config: DataConfig,
        *,
        scored: str,
        advance: Advance = lambda *_: None,
        **options: Any,
    ) -> TranslationScore:
        search = search_settings(vocab, **options)
        sources, references = [source for source, _ in store.texts], [target for _, target in store.texts]
        done = 0

        def on_answers(more: int) -> None:
            nonlocal done
            done += more
            advance("translating", done, len(sources))

        ratio = config.length_ratio or DEFAULT_RATIO
        answers = translate(model, vocab, sources, search, length_ratio=ratio, on_answers=on_answers)
        how = f"{search.method}={search.beam_width}" if search.method == "beam" else search.method
        about = f"{scored}|{how}|{search.length_form}={search.length_penalty:g}"
        return TranslationScore(
            sources, references, [answer.text for answer in answers], likelihood_of(model, store), about
        )

    def report_on_search(
        self,
        model: Any,
        store: PairStore,
        vocab: Vocab,
        config: DataConfig,
        widths: Sequence[int] = WIDTHS,
        **options: Any,
    ) -> SearchReport:
        """How often beams of several widths miss the best known, and what that does to BLEU."""
        ratio = config.length_ratio or DEFAULT_RATIO
        search = search_settings(vocab, **options)
        return report_on_search(model, vocab, store.texts, search, length_ratio=ratio, widths=widths)

    def sample(self, model: Any, store: PairStore, vocab: Vocab, config: TrainingConfig) -> str | None:
        """The first source of the part, as it would be answered now."""
        source, _ = store.texts[0]
        search = DecodingConfig(method="greedy", max_tokens=config.sample_tokens, stop=tokenizers_of(vocab)[1].boundary)
        with evaluating(model):
            (answer,) = translate(model, vocab, [source], search, length_ratio=DEFAULT_RATIO)
        return f"{source} -> {answer.text}"

    def predict(
        self, model: Any, data: PairData, part: str, vocab: Vocab, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """The answers to the sources of a part."""
        for answer in self.answer_lines(model, (source for source, _ in data.parts[part]), vocab, config, **options):
            yield answer.text

    def answer_lines(
        self,
        model: Any,
        lines: Iterable[str],
        vocab: Vocab,
        config: DataConfig,
        *,
        with_alignments: bool = False,
        **options: Any,
    ) -> Iterator[Answer]:
        """An answer for each line, in order, in memory that does not grow with their number."""
        ratio = config.length_ratio or DEFAULT_RATIO
        search = search_settings(vocab, **options)
        return translate(model, vocab, lines, search, length_ratio=ratio, with_alignments=with_alignments)

    def next_command(self, path: str) -> str:
        return f"seqwise predict {path} FILE"


def tokenizers_of(vocab: Vocab) -> tuple[Tokenizer, Tokenizer]:
    """Of source and target."""
    assert vocab.source_tokenizer is not None
    assert vocab.tokenizer is not None
    return vocab.source_tokenizer, vocab.tokenizer


def search_settings(vocab: Vocab, **options: Any) -> DecodingConfig:
    """How targets are searched for: a beam of five, where nothing else is asked."""
    target = tokenizers_of(vocab)[1]
    given = {name: value for name, value in options.items() if value is not None}
    settings: dict[str, Any] = {**DEFAULT_SEARCH, "stop": target.boundary, **given}
    if "beam_width" not in given:
        settings["beam_width"] = max(settings.get("num_results", 1), min(5, target.vocab_size))
    return build(DecodingConfig, settings, section="decoding", where="search")


def _kind_of(side: Sequence[str]) -> str:
    """What a side is made of: few words that come often, sentences, or short strings."""
    words = [word for text in side for word in text.split()]
    distinct = len(set(words))
    if distinct <= FEW_WORDS and len(words) >= OFTEN * distinct and len(words) >= 2 * len(side):
        return "word"
    characters = sum(map(len, side)) / len(side)
    has_words = len(words) >= 4 * len(side) and distinct >= MANY_WORDS
    return "bpe" if has_words and characters >= SENTENCE_CHARACTERS else "char"


def _share_letters(kinds: list[str], sides: list[list[str]]) -> bool:
    """Whether one vocabulary would serve both sides: more than half of the characters of the smaller one are common."""
    if kinds[0] != kinds[1] or kinds[0] == "word":
        return False
    letters = [set("".join(side)) for side in sides]
    return 2 * len(letters[0] & letters[1]) > min(map(len, letters))


def _learn(kind: str, texts: Sequence[str], config: TokenizerConfig) -> Tokenizer:
    options: dict[str, Any] = {"min_count": config.min_count} if config.min_count is not None else {}
    if kind == "bpe":
        by_text = max(500, sum(map(len, texts)) // CHARACTERS_PER_PAIR)
        options["vocab_size"] = config.vocab_size or min(LARGEST_VOCAB, by_text)
    elif kind == "word":
        options |= {"lower_case": config.lower_case}
        if config.vocab_size is not None:
            options["vocab_size"] = config.vocab_size
    if not texts:
        raise DataError("there is no text to learn tokens from.")
    return train_tokenizer(kind, (text + "\n" for text in texts), **options)
