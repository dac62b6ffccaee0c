"""From a prompt to text, over `start` and `step` only: the same for every family that continues.

    generate(model, prompts, DecodingConfig(method="sample", top_k=40))   -> for each prompt its hypotheses, best first
    stream(model, prompt, config)                                         -> tokens one by one, as they are chosen

Prompts are ids, or a batch whose inputs say what is asked (the sources of translations). The same prompt and seed give
the same tokens, alone or in any batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from ..data.batch import Batch, prompt_batch
from ..errors import ConfigError
from ..machine import check_memory
from ..models import num_parameters
from ..models.contract import Continues, HasInitialState, device_of
from .beam import beam_search
from .exhaustive import exhaustive_search
from .sampling import choose_steps, sample
from .settings import DecodingConfig, Hypothesis

MAX_UNCHECKED_ROWS = 16  # whose states surely fit
SMALL_STEP = 4_000_000  # products per step; measured on 2 cores

__all__ = ["DecodingConfig", "Hypothesis", "generate", "stream"]


@torch.inference_mode()
def generate(
    model: Continues,
    prompts: Batch | Sequence[Sequence[int]],
    config: DecodingConfig,
    *,
    limits: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """The continuations of each prompt, best first; prompts of ids begin with the boundary token.

    `limits` are the tokens to add to each prompt at most, where they are fewer than `config.max_tokens`.
    """
    prompt = _checked(model, prompts, config)
    allowed = [min(config.max_tokens, limit) for limit in limits] if limits else [config.max_tokens] * len(prompt)
    search = {"greedy": sample, "sample": sample, "beam": beam_search, "exhaustive": exhaustive_search}[config.method]
    width = config.beam_width if config.method == "beam" else config.num_results
    check_memory(
        _bytes_of(model, config, len(prompt) * width),
        f"generating {len(prompt) * width:,} texts side by side, of {config.max_tokens:,} tokens at most,",
        "Ask for fewer results, a narrower beam or fewer tokens.",
    )
    with few_threads(model, len(prompt) * width):
        return search(model, prompt, config, allowed)


@torch.inference_mode()
def stream(model: Continues, prompt: Sequence[int], config: DecodingConfig) -> Iterator[int]:
    """The tokens of one greedy or sampled continuation, each as soon as it is chosen."""
    batch = _checked(model, [prompt], config)
    if config.method not in ("greedy", "sample"):
        raise ConfigError(f"{config.method} search knows its answer only at the end; stream greedy or sampled text.")
    with few_threads(model, 1):
        for _, tokens, _ in choose_steps(model, batch, config, [config.max_tokens]):
            yield from tokens[0].tolist()


@contextmanager
def few_threads(model: Continues, num_rows: int) -> Iterator[None]:
    """One thread where a step is so small that threads would wait for each other longer than they work."""
    before = torch.get_num_threads()
    if before > 1 and isinstance(model, torch.nn.Module) and num_parameters(model) * num_rows < SMALL_STEP:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _bytes_of(model: Continues, config: DecodingConfig, num_rows: int) -> int:
    """Of the states, the log-probabilities in a few copies, and the tokens of so many texts."""
    states = 0
    if num_rows > MAX_UNCHECKED_ROWS and isinstance(model, HasInitialState):
        states = sum(tensor.numel() * tensor.element_size() for tensor in model.initial_state(1).per_row.values())
    return num_rows * (2 * states + 3 * 8 * model.vocab_size + 2 * 8 * config.max_tokens)


def _checked(model: Continues, prompts: Batch | Sequence[Sequence[int]], config: DecodingConfig) -> Batch:
    if not isinstance(model, Continues):
        raise ConfigError(f"{type(model).__name__} does not continue text: it has no start and step.")
    if not isinstance(prompts, Batch) and (not prompts or any(len(prompt) == 0 for prompt in prompts)):
        raise ConfigError("a prompt needs at least one token; begin it with the boundary token.")
    if config.method == "beam" and config.beam_width > model.vocab_size:
        raise ConfigError(f"beam_width={config.beam_width} is wider than the vocabulary of {model.vocab_size} tokens.")
    device = device_of(model)
    return prompts.to(device) if isinstance(prompts, Batch) else prompt_batch(prompts, device=device)
