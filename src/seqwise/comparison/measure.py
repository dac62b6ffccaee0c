"""What is measured of a trained model besides its score: what it costs, what it writes, how far it looks back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..data.batch import Batch, Values
from ..data.store import TokenStore
from ..decoding import DecodingConfig, generate
from ..evaluation.forecasts import default_horizon, forecasts
from ..evaluation.likelihood import nats_by_position, token_nats
from ..models.contract import evaluating
from ..run import Run
from ..text import Tokenizer
from .memorised import longest_match

SAMPLES, SAMPLE_CHARACTERS = 3, 400
SAMPLE_TEMPERATURE = 0.8
MANY = 16  # texts written at once, to see how fast it can go
TIMED_TOKENS = 64
LONGEST_CONTEXT = 512
PASSAGE_CHARACTERS = 1500
PASSAGE_STEPS = 96
TIMED_STEPS = 40


def measure(run: Run, model: Any, data: Any, store: Any, task: str, passage: str) -> dict[str, Any]:
    """Fields of an Entry, by what the task allows."""
    return {"text": _measure_text, "numbers": _measure_numbers, "label": _measure_labels}[task](
        run, model, data, store, passage
    )


def _measure_text(run: Run, model: Any, data: Any, store: TokenStore, passage: str) -> dict[str, Any]:
    tokenizer = run.tokenizer
    per_token = store.num_chars / max(1, store.num_tokens)  # characters
    length = max(1, round(SAMPLE_CHARACTERS / per_token))
    samples = sample_texts(model, tokenizer, length)
    match = longest_match(samples, data.parts["train"].blocks())
    prompt, timed = [[tokenizer.boundary]], DecodingConfig(max_tokens=TIMED_TOKENS)
    one = _best_of_two(lambda: generate(model, prompt, timed))
    many = _best_of_two(lambda: generate(model, prompt * MANY, timed))
    return {
        "samples": samples,
        "memorised": {"length": match.length, "text": match.text},
        "ms_per_token": 1000 * one / TIMED_TOKENS,
        "generation_tokens_per_second": MANY * TIMED_TOKENS / many,
        "by_position": by_position(model, store, per_token),
        "surprise": surprise(model, tokenizer, passage),
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


def _measure_numbers(run: Run, model: Any, data: Any, store: Any, passage: str) -> dict[str, Any]:
    scaling = run.vocab.scaling
    assert scaling is not None
    horizon = min(PASSAGE_STEPS, 2 * default_horizon(run.config.data.season or 1), len(store) + 1 - store.first)
    found = forecasts(model, store, np.array([store.first - 1]), horizon)
    middle, low, high = (scaling.undo(values)[0][:, 0] for values in found)  # (h,) of the first column
    _, state = model.start(Batch({"values": Values(torch.zeros(1, 1, len(scaling.columns)))}, {}))
    row = torch.zeros(1, len(scaling.columns))

    def take_steps() -> None:
        nonlocal state
        for _ in range(TIMED_STEPS):
            _, state = model.step(row, state)

    with torch.inference_mode(), evaluating(model):
        seconds = _best_of_two(take_steps)
    return {
        "forecast": list(zip(middle.tolist(), low.tolist(), high.tolist(), strict=True)),
        "ms_per_token": 1000 * seconds / TIMED_STEPS,
    }


def _measure_labels(run: Run, model: Any, data: Any, store: Any, passage: str) -> dict[str, Any]:
    batch = store.batch(slice(0, 1))

    def answer() -> None:
        for _ in range(TIMED_STEPS):
            model.predict(batch)

    with torch.inference_mode(), evaluating(model):
        return {"ms_per_token": 1000 * _best_of_two(answer) / TIMED_STEPS}


def choose_passage(data: Any, part: str) -> str:
    """The beginning of a part, up to the end of a line."""
    text = ""
    for block in data.parts[part].blocks():
        text += block
        if len(text) >= PASSAGE_CHARACTERS:
            break
    cut = text[:PASSAGE_CHARACTERS]
    return cut[: cut.rfind("\n") + 1] if "\n" in cut[PASSAGE_CHARACTERS // 2 :] else cut


def _best_of_two(work: Callable[[], Any]) -> float:
    """Seconds; the first time prepares what later ones find."""
    times = []
    for _ in range(2):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return max(1e-9, min(times))
