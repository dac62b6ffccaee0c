"""Texts asked for over HTTP -> jobs of a batcher, and what they write as it comes.

async for piece in written(hosted, prompt, asked):
    piece.text, piece.tokens, piece.finish_reason
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from ..data.batch import prompt_batch
from ..decoding import DecodingConfig
from ..decoding.sampling import chances_of, choice_of
from ..errors import ConfigError
from ..models.contract import device_of, evaluating
from .batching import Job, Written
from .hosting import Hosted
from .messages import Writing
from .pieces import Pieces


@dataclass
class Piece:
    """What one of the texts that were asked for has more."""

    index: int
    text: str = ""
    written: list[Written] = field(default_factory=list)
    finish_reason: str | None = None
    """"stop" or "length", with the last piece."""
    error: BaseException | None = None


@dataclass(frozen=True)
class Prompt:
    """As it was asked, and as the model reads it."""

    text: str
    ids: list[int]

    @property
    def num_tokens(self) -> int:
        """Without what stands before every text."""
        return len(self.ids) - 1


def prompt_of(hosted: Hosted, asked: str | Sequence[int]) -> Prompt:
    run = hosted.run
    if isinstance(asked, str):
        return Prompt(asked, run.prompt_ids(asked))
    size = run.tokenizer.vocab_size
    if any(token >= size for token in asked):
        raise ConfigError(f"token {max(asked)} is not in the vocabulary of {hosted.name}, which ends at {size - 1}.")
    return Prompt(run.tokenizer.decode(list(asked)), [run.prompt_ids("")[0], *asked])


async def written(
    hosted: Hosted, prompts: Sequence[Prompt], asked: Writing, max_tokens: int, num_alternatives: int
) -> AsyncIterator[Piece]:
    """`n` texts for each prompt, text i of prompt p having index p * n + i: pieces as they come, a last one for each
    with the reason why it ended."""
    loop, batcher = asyncio.get_running_loop(), hosted.batcher
    queue: asyncio.Queue[Piece] = asyncio.Queue()
    settings = _settings(asked, max_tokens)
    choice, chances = choice_of(settings), chances_of(settings)
    deadline = time.monotonic() + hosted.limits.seconds
    jobs = []
    for number, prompt in enumerate(prompts):
        for sample in range(asked.n):
            teller = _Teller(number * asked.n + sample, hosted, prompt, asked.stops, loop, queue)
            own = chances[sample % len(chances)]
            jobs.append(Job(prompt.ids, choice, max_tokens, own, teller.take, teller.end, num_alternatives, deadline))
    batcher.submit(*jobs)
    running = len(jobs)
    try:
        while running:
            piece = await queue.get()
            running -= piece.finish_reason is not None or piece.error is not None
            if piece.error is not None:
                raise piece.error
            yield piece
    finally:
        for job in jobs:  # nobody listens any more
            job.is_gone = True


class _Teller:
    """Puts what a row writes into words, in the batcher's thread, and hands it over."""

    def __init__(
        self,
        index: int,
        hosted: Hosted,
        prompt: Prompt,
        stops: Sequence[str],
        loop: asyncio.AbstractEventLoop,
        queue: asyncio.Queue[Piece],
    ):
        self.index, self._loop, self._queue = index, loop, queue
        self._pieces = Pieces(hosted.run.tokenizer, prompt.text, stops)

    def take(self, tokens: list[Written]) -> bool:
        text = self._pieces.add([each.token for each in tokens])
        self._tell(Piece(self.index, text, tokens))
        return not self._pieces.is_stopped

    def end(self, error: BaseException | None) -> None:
        if error is not None:
            self._tell(Piece(self.index, error=error))
            return
        reason = "stop" if self._pieces.is_stopped else "length"
        self._tell(Piece(self.index, self._pieces.finish(), finish_reason=reason))

    def _tell(self, piece: Piece) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, piece)
        except RuntimeError:  # the server has stopped, and nobody listens
            return


def _settings(asked: Writing, max_tokens: int) -> DecodingConfig:
    return DecodingConfig(
        method="sample" if asked.temperature > 0 else "greedy",
        max_tokens=max_tokens,
        min_tokens=min(asked.min_tokens, max_tokens),
        temperature=asked.temperature or 1.0,
        top_k=asked.top_k,
        top_p=asked.top_p,
        seed=secrets.randbits(62) if asked.seed is None else asked.seed,
        num_results=asked.n if asked.temperature > 0 else 1,
        repetition_penalty=asked.repetition_penalty,
    )


@torch.inference_mode()
def scored(hosted: Hosted, prompt: Prompt, num_alternatives: int = 0) -> list[Written]:
    """log p of each token of a text, given those before it, with the most probable ones at its place."""
    model, found = hosted.run.model, list[Written]()
    with evaluating(model):
        log_probs, state = model.start(prompt_batch([prompt.ids[:1]], device=device_of(model)))
        for place, token in enumerate(prompt.ids[1:], start=1):
            best = log_probs[0].topk(min(num_alternatives, log_probs.shape[1]))
            others = tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
            found.append(Written(token, float(log_probs[0, token]), others))
            if place + 1 < len(prompt.ids):
                log_probs, state = model.step(torch.from_numpy(np.array([token])).to(log_probs.device), state)
    return found
