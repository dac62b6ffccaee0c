"""From a prompt to text, over `start` and `step` only: the same for every family that continues.

    generate(model, prompts, DecodingConfig(method="sample", top_k=40))   -> for each prompt its hypotheses, best first
    stream(model, prompt, config)                                         -> tokens one by one, as they are chosen

The same prompt and seed give the same tokens, alone or in any batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from ..errors import ConfigError
from ..models import num_parameters
from ..models.contract import Continues
from .beam import beam_search
from .exhaustive import exhaustive_search
from .sampling import choose_steps, sample
from .settings import DecodingConfig, Hypothesis

SMALL_STEP = 4_000_000  # products per step; measured on 2 cores

__all__ = ["DecodingConfig", "Hypothesis", "generate", "stream"]


@torch.inference_mode()
def generate(model: Continues, prompts: Sequence[Sequence[int]], config: DecodingConfig) -> list[list[Hypothesis]]:
    """The continuations of each prompt, best first; prompts are ids that begin with the boundary token."""
    _check(model, prompts, config)
    search = {"greedy": sample, "sample": sample, "beam": beam_search, "exhaustive": exhaustive_search}[config.method]
    with few_threads(model, len(prompts) * config.num_results):
        return search(model, prompts, config)


@torch.inference_mode()
def stream(model: Continues, prompt: Sequence[int], config: DecodingConfig) -> Iterator[int]:
    """The tokens of one greedy or sampled continuation, each as soon as it is chosen."""
    _check(model, [prompt], config)
    if config.method not in ("greedy", "sample"):
        raise ConfigError(f"{config.method} search knows its answer only at the end; stream greedy or sampled text.")
    with few_threads(model, 1):
        for tokens, _ in choose_steps(model, [prompt], config):
            yield int(tokens[0])
            if int(tokens[0]) == config.stop:
                return


@contextmanager
def few_threads(model: Continues, num_rows: int) -> Iterator[None]:
    """One thread where a step is so small that threads would wait for each other longer than they work."""
    before = torch.get_num_threads()
    if isinstance(model, torch.nn.Module) and num_parameters(model) * num_rows < SMALL_STEP:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _check(model: Continues, prompts: Sequence[Sequence[int]], config: DecodingConfig) -> None:
    if not isinstance(model, Continues):
        raise ConfigError(f"{type(model).__name__} does not continue text: it has no start and step.")
    if not prompts or any(len(prompt) == 0 for prompt in prompts):
        raise ConfigError("a prompt needs at least one token; begin it with the boundary token.")
    if config.method == "beam" and config.beam_width > model.vocab_size:
        raise ConfigError(f"beam_width={config.beam_width} is wider than the vocabulary of {model.vocab_size} tokens.")
