"""What a comparison shows of each task besides scores: what a model costs, what it writes, how far it looks back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
import torch

from ..data.batch import Batch, Values
from ..data.examples import ExampleData, ExampleStore
from ..data.numbers import NumberData, NumberStore
from ..data.pair_store import PairStore
from ..data.pairs import PairData
from ..data.source import TextData
from ..data.store import TokenStore
from ..data.vocab import Vocab
from ..decoding import DecodingConfig, generate
from ..evaluation.forecasts import default_horizon, forecasts
from ..evaluation.likelihood import nats_by_position, token_nats
from ..evaluation.translations import TranslationScore
from ..models.contract import evaluating
from ..run import Run
from ..tasks import Task
from ..tasks.pairs import PairsTask
from ..text import Tokenizer
from .memorised import longest_match

SAMPLES, SAMPLE_CHARACTERS = 3, 400
SAMPLE_TEMPERATURE = 0.8
SHOWN_PAIRS = 5
MANY = 16  # texts written at once, to see how fast it can go
TIMED_TOKENS = 64
LONGEST_CONTEXT = 512
PASSAGE_CHARACTERS = 1500
PASSAGE_STEPS = 96
TIMED_STEPS = 40


class Subject(Protocol):
    """What a comparison needs to know of a task."""

    def sizes(self, data: Any, stores: dict[str, Any]) -> dict[str, int]:
        """Of the parts: characters, steps or sequences."""
        ...

    def passage(self, data: Any, part: str) -> dict[str, Any]:
        """What all models are shown side by side on, and what belongs to it: fields of a Comparison."""
        ...

    def beginning(self, task: Task, data: Any, part: str, vocab: Vocab, most: int) -> tuple[Any, bool]:
        """What every model is scored on, and whether that is the whole part."""
        ...

    def score_options(self, model: Any) -> dict[str, Any]: ...
    def measure(self, run: Run, model: Any, data: Any, store: Any, passage: str, score: Any) -> dict[str, Any]:
        """Fields of an Entry."""
        ...


class TextSubject:
    def sizes(self, data: TextData, stores: dict[str, Any]) -> dict[str, int]:
        return dict(data.characters)

    def passage(self, data: TextData, part: str) -> dict[str, Any]:
        passage = choose_passage(data, part)
        match = longest_match([passage[: SAMPLES * SAMPLE_CHARACTERS]], data.parts["train"].blocks())
        return {"passage": passage, "held_out_match": asdict(match)}

    def beginning(self, task: Task, data: TextData, part: str, vocab: Vocab, most: int) -> tuple[Any, bool]:
        """Of a long text the same characters for all, whatever their tokenizer."""
        if data.characters[part] <= most:
            return task.store(data, part, vocab), True
        assert vocab.tokenizer is not None
        text = beginning_of(data, part, most)
        return TokenStore(np.concatenate([[vocab.tokenizer.boundary], vocab.tokenizer.encode(text)]), len(text)), False

    def score_options(self, model: Any) -> dict[str, Any]:
        """Who cannot carry a state sees at least half of its window before each token, as when it writes."""
        return {} if model.context is None else {"view": "sliding"}

    def measure(
        self, run: Run, model: Any, data: TextData, store: TokenStore, passage: str, score: Any
    ) -> dict[str, Any]:
        tokenizer = run.tokenizer
        per_token = store.num_chars / max(1, store.num_tokens)  # characters
        samples = sample_texts(model, tokenizer, max(1, round(SAMPLE_CHARACTERS / per_token)))
        prompt, timed = [[tokenizer.boundary]], DecodingConfig(max_tokens=TIMED_TOKENS)
        one = _best_of_two(lambda: generate(model, prompt, timed))
        many = _best_of_two(lambda: generate(model, prompt * MANY, timed))
        return {
            "samples": samples,
            "memorised": asdict(longest_match(samples, data.parts["train"].blocks())),
            "ms_per_token": 1000 * one / TIMED_TOKENS,
            "generation_tokens_per_second": MANY * TIMED_TOKENS / many,
            "by_position": by_position(model, store, per_token),
            "surprise": surprise(model, tokenizer, passage),
        }


class NumberSubject:
    def sizes(self, data: NumberData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: rows.stop - rows.start for part, rows in data.parts.items()}

    def passage(self, data: NumberData, part: str) -> dict[str, Any]:
        start = data.parts[part].start
        return {"passage_values": data.values[start : start + PASSAGE_STEPS, 0].tolist()}

    def beginning(self, task: Task, data: NumberData, part: str, vocab: Vocab, most: int) -> tuple[Any, bool]:
        return task.store(data, part, vocab), True

    def score_options(self, model: Any) -> dict[str, Any]:
        return {}

    def measure(
        self, run: Run, model: Any, data: NumberData, store: NumberStore, passage: str, score: Any
    ) -> dict[str, Any]:
        scaling = run.vocab.scaling
        assert scaling is not None
        horizon = min(PASSAGE_STEPS, 2 * default_horizon(data.season), len(store) + 1 - store.first)
        found = forecasts(model, store, np.array([store.first - 1]), horizon)
        middle, low, high = (scaling.undo(values)[0][:, 0] for values in found)  # (h,) of the first column
        row = torch.zeros(1, len(scaling.columns))

        def take_steps() -> None:
            _, state = model.start(Batch({"values": Values(row.unsqueeze(0))}, {}))
            for _ in range(TIMED_STEPS):
                _, state = model.step(row, state)

        with torch.inference_mode(), evaluating(model):
            seconds = _best_of_two(take_steps)
        return {
            "forecast": list(zip(middle.tolist(), low.tolist(), high.tolist(), strict=True)),
            "ms_per_token": 1000 * seconds / TIMED_STEPS,
        }


class LabelSubject:
    def sizes(self, data: ExampleData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: len(store) for part, store in stores.items()}

    def passage(self, data: ExampleData, part: str) -> dict[str, Any]:
        return {}

    def beginning(self, task: Task, data: ExampleData, part: str, vocab: Vocab, most: int) -> tuple[Any, bool]:
        return task.store(data, part, vocab), True

    def score_options(self, model: Any) -> dict[str, Any]:
        return {}

    def measure(
        self, run: Run, model: Any, data: ExampleData, store: ExampleStore, passage: str, score: Any
    ) -> dict[str, Any]:
        batch = store.batch(slice(0, 1))

        def answer() -> None:
            for _ in range(TIMED_STEPS):
                model.predict(batch)

        with torch.inference_mode(), evaluating(model):
            return {"ms_per_token": 1000 * _best_of_two(answer) / TIMED_STEPS}


class PairSubject:
    def sizes(self, data: PairData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: len(pairs) for part, pairs in data.parts.items()}

    def passage(self, data: PairData, part: str) -> dict[str, Any]:
        return {}

    def beginning(self, task: Task, data: PairData, part: str, vocab: Vocab, most: int) -> tuple[Any, bool]:
        """The same pairs for all, whatever their tokenizer."""
        store = task.store(data, part, vocab)
        characters = np.cumsum([len(target) for _, target in data.parts[part]])
        num = max(1, int(np.searchsorted(characters, most, side="right")))
        return (store, True) if num >= store.num_pairs else (store.pairs(num), False)

    def score_options(self, model: Any) -> dict[str, Any]:
        return {}

    def measure(
        self, run: Run, model: Any, data: PairData, store: PairStore, passage: str, score: TranslationScore
    ) -> dict[str, Any]:
        answer_lines = PairsTask().answer_lines
        sources = [source for source, _ in store.texts]
        spread = np.linspace(0, len(sources) - 1, min(len(sources), SHOWN_PAIRS)).astype(int).tolist()
        shown = answer_lines(model, [sources[place] for place in spread], run.vocab, run.config.data)
        samples = [
            f"{answer.source}\n= {answer.text}" + ("" if answer.text == wanted else f"\n({wanted})")
            for answer, wanted in zip(shown, (store.texts[place][1] for place in spread), strict=True)
        ]

        def seconds_per_token(lines: list[str]) -> float:
            """With a beam of five, as lines are answered where nothing else is asked."""
            tokens = 0

            def answer() -> None:
                nonlocal tokens
                found = answer_lines(model, lines, run.vocab, run.config.data)
                tokens = sum(len(answer.hypotheses[0].tokens) for answer in found)

            return _best_of_two(answer) / max(1, tokens)

        one = seconds_per_token(sources[:1])
        many = seconds_per_token(sources[:MANY])
        return {
            "samples": samples,
            "ms_per_token": 1000 * one,
            "generation_tokens_per_second": 1 / many,
            "by_position": [(low, score.metric.shown(part.value)) for low, _, part in score.parts_by_length()],
        }


SUBJECTS: dict[str, Subject] = {
    "text": TextSubject(),
    "numbers": NumberSubject(),
    "label": LabelSubject(),
    "pairs": PairSubject(),
}


def sample_texts(model: Any, tokenizer: Tokenizer, num_tokens: int) -> list[str]:
    config = DecodingConfig(max_tokens=num_tokens, temperature=SAMPLE_TEMPERATURE, num_results=SAMPLES)
    with evaluating(model):
        found = generate(model, [[tokenizer.boundary]], config)[0]
    return [tokenizer.decode(hypothesis.tokens) for hypothesis in found]


def surprise(model: Any, tokenizer: Tokenizer, passage: str) -> list[tuple[str, float]]:
    """Each piece of the passage with the bits it took, the passage before it being known."""
    ids = np.concatenate([[tokenizer.boundary], tokenizer.encode(passage)])
    if len(ids) < 2:
        return []
    bits = token_nats(model, TokenStore(ids, len(passage))) / math.log(2)
    pieces = [tokenizer.piece(token) for token in ids[1:].tolist()]
    return list(zip(pieces, bits.tolist(), strict=True))


def by_position(model: Any, store: TokenStore, per_token: float) -> list[tuple[int, float]]:
    """(characters read before, bits per character): the mean over positions up to twice as far."""
    nats = nats_by_position(model, store, context=LONGEST_CONTEXT)
    found, start = [], 0
    while start < len(nats):
        end = min(len(nats), max(start + 1, 2 * start))
        if 2 * end > len(nats) and end < len(nats):  # what is left would be few
            end = len(nats)
        found.append((round(start * per_token), float(nats[start:end].mean()) / math.log(2) / per_token))
        start = end
    return found


def choose_passage(data: TextData, part: str) -> str:
    """The beginning of a part, up to the end of a line."""
    cut = beginning_of(data, part, PASSAGE_CHARACTERS)
    return cut[: cut.rfind("\n") + 1] if "\n" in cut[PASSAGE_CHARACTERS // 2 :] else cut


def beginning_of(data: TextData, part: str, most: int) -> str:
    """The first characters of a part."""
    text = ""
    for block in data.parts[part].blocks():
        text += block[: most - len(text)]
        if len(text) == most:
            break
    return text


def _best_of_two(work: Callable[[], Any]) -> float:
    """Seconds; the first time prepares what later ones find."""
    times = []
    for _ in range(2):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return max(1e-9, min(times))
