"""The engine: steps of networks as single compiled functions, and whole texts in one compiled loop.

    step = compiled_step(model, num_rows)     None where torch computes: many rows, a GPU, training, recording, a shape
                                              that no compiled step knows, or code that is not there yet
    log_probs = step.read(tokens, state)      one token for each row, from ids to log-probabilities
    writing = step.write()                    whole texts (texts.py):
    writing.go_on(log_probs, state, texts)    tokens chosen and read until something has to be decided in Python
    Searching(model, ...).go_on(...)          the same for a beam

It stands behind `start` and `step`: who continues a text need not know. What a body has to say for it is `Compiles`. A
plan is sizes and addresses of weights, in an order that the body's compiled step knows (kernels/gpt_step.py, ...);
weights stay where torch has them. Texts are the same with and without it, but for rounding in the last places.

SEQWISE_ENGINE=off leaves all to torch, =on waits for code that is being compiled. SEQWISE_ENGINE_ROWS: up to how many
rows a compiled step takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ConfigError
from ..kernels import compiled as place
from ..kernels.compiled import ENTRIES, Entry
from ..kernels.team import TEAM
from ..kernels.writing import IS_READ, NUM_WRITTEN
from ..layers.embeddings import TokenEmbedding
from ..layers.heads import NextTokenHead
from ..layers.int8 import INT8_PARTS, int8_weight
from ..layers.notes import is_recorded
from .contract import State, check_tokens
from .texts import Texts

Use = Literal["auto", "on", "off"]
NO_LIMIT = 1 << 40  # steps
SETTING, ROWS_SETTING = "SEQWISE_ENGINE", "SEQWISE_ENGINE_ROWS"
MAX_ROWS = 64  # up to here compiled steps were faster than torch at every size tried (docs/lab-notebook.md)
KINDS = (torch.float32, torch.complex64, torch.int8)  # of weights that are read
CHUNK = 0.05  # seconds until Python is asked again: for who reads along, and for Ctrl-C
FIRST_TOKENS = 8  # while it is not known how long one takes
TRY_AGAIN = 50  # times its tries, until both numbers of threads are tried again
LOOP, SEARCH = ENTRIES["write"], ENTRIES["search"]


class NotCompiledError(Exception):
    """A shape that no compiled step knows."""


@dataclass(frozen=True)
class Plan:
    """What a compiled step is told of a network, once."""

    entry: str
    """By its name in kernels/compiled.py."""
    numbers: list[int]
    """Sizes, and addresses of weights, in the order of the compiled step."""
    factors: list[float]
    scratch: int
    """Numbers that a step needs room for, for each row."""
    vocab_size: int


class Weights:
    """Where the weights of a network are. A plan is made of addresses; here stands what they belong to."""

    def __init__(self) -> None:
        self._found: list[tuple[Mapping[str, Any], str, int]] = []

    def matrix(self, layer: nn.Module | None, name: str = "weight", bias: str = "bias") -> list[int]:
        """Addresses of the weights of a product, a table or a norm, of their scales where they are int8, and of the
        bias; zero where there is none."""
        if layer is None or isinstance(layer, nn.Identity):
            return [0, 0, 0]
        stored = int8_weight(layer, name)
        found = [self.address(layer, name), 0] if stored is None else [self.address(stored, p) for p in INT8_PARTS]
        return [*found, self.address(layer, bias) if layer._parameters.get(bias) is not None else 0]

    def address(self, owner: nn.Module, name: str) -> int:
        """Of a tensor by its name."""
        of = owner._parameters if name in owner._parameters else owner._buffers
        tensor = of.get(name)
        if tensor is None or tensor.dtype not in KINDS or tensor.device.type != "cpu" or not tensor.is_contiguous():
            raise NotCompiledError(name)
        self._found.append((of, name, tensor.data_ptr()))
        return tensor.data_ptr()

    def are_there(self) -> bool:
        """Whether all are still where they were: copies, moves and new weights change that."""
        return all((tensor := of.get(name)) is not None and tensor.data_ptr() == at for of, name, at in self._found)


def plain_ends(embedding: nn.Module, head: nn.Module) -> tuple[TokenEmbedding, NextTokenHead]:
    """Of a network whose steps read a token as a row of a table, and find the next by one product."""
    if not (isinstance(embedding, TokenEmbedding) and embedding.is_plain and isinstance(head, NextTokenHead)):
        raise NotCompiledError("more than tokens")
    return embedding, head


@runtime_checkable
class Compiles(Protocol):
    """A body whose steps can be compiled."""

    def plan(self, weights: Weights, head: nn.Module) -> Plan:
        """What the step is told, or NotCompiledError."""
        ...

    def make_room(self, state: State) -> int:
        """How many steps can be taken; what is needed for one is forgotten."""
        ...

    def in_order(self, state: State) -> list[str | int]:
        """The names of the parts of the state as the step takes them, and numbers that it takes as they are."""
        ...


@dataclass
class Pace:
    """How many threads to take: one, or as many as torch may. Both are tried, and now and then again, and the faster is
    taken: beside other work on the machine, threads wait for each other longer than they compute."""

    tries: int
    """How often each is tried before one is chosen."""
    seconds: dict[int, list[float]] = field(default_factory=dict)
    """Of what is measured, by the number of threads."""
    uses: int = 0

    def ranks(self) -> int:
        self.uses += 1
        if self.uses % (TRY_AGAIN * self.tries) == 0:
            self.seconds.clear()
        for ranks in (1, torch.get_num_threads()):
            if len(self.seconds.get(ranks, ())) < self.tries:
                return ranks
        return min(self.seconds, key=lambda ranks: min(self.seconds[ranks]))

    def num_next(self, ranks: int) -> int:
        """How many steps take about CHUNK seconds."""
        known = self.seconds.get(ranks)
        return int(CHUNK / max(min(known), 1e-7)) if known else FIRST_TOKENS

    def took(self, ranks: int, seconds: float) -> None:
        self.seconds.setdefault(ranks, []).append(seconds)
        del self.seconds[ranks][: -self.tries]


@dataclass(frozen=True)
class CompiledStep:
    body: Compiles
    plan: Plan
    weights: Weights
    entry: Entry
    numbers: np.ndarray = field(repr=False)
    factors: np.ndarray = field(repr=False)
    paces: dict[int, Pace] = field(default_factory=dict)
    """By the number of rows."""

    @staticmethod
    def of(body: Compiles, head: nn.Module) -> CompiledStep:
        weights = Weights()
        plan = body.plan(weights, head)
        numbers, factors = np.array(plan.numbers, dtype=np.int64), np.array(plan.factors, dtype=np.float32)
        return CompiledStep(body, plan, weights, ENTRIES[plan.entry], numbers, factors)

    def write(self) -> Writing | None:
        """Whole texts; None while the loop is still being compiled."""
        return Writing(self) if is_ready(LOOP) else None

    def read(self, tokens: Tensor, state: State) -> Tensor | None:
        """log p of what comes next, (B, V), after one more token in each row, (B,); the state goes on in place. None
        where there is no room for one more."""
        check_tokens(tokens, self.plan.vocab_size)
        if self.body.make_room(state) < 1:
            return None
        call, pace = Call(self, tokens, state), self.paces.setdefault(len(tokens), Pace(tries=3))
        ranks = pace.ranks() if torch.get_num_threads() > 1 else 1
        began = time.perf_counter()
        TEAM.run(lambda rank, size, meetings: self.entry(rank, size, meetings, 0, call.frame.ctypes.data), ranks)
        pace.took(ranks, time.perf_counter() - began)
        return call.log_probs


class Call:
    """All that a step reads and writes, and that has to live while it does."""

    def __init__(self, step: CompiledStep, tokens: Tensor, state: State, log_probs: Tensor | None = None):
        self.rows = len(tokens)
        self.tokens = tokens.to(torch.int64).contiguous()
        shape = self.rows, step.plan.vocab_size
        self.log_probs = torch.empty(shape, dtype=torch.float32) if log_probs is None else log_probs.contiguous()
        self.scratch = torch.empty(max(1, step.plan.scratch * self.rows), dtype=torch.float32)
        parts, sources = [], self.rows
        for name in step.body.in_order(state):
            if isinstance(name, int):
                parts.append(name)
                continue
            of = state.per_row if name in state.per_row else state.memory
            if not of[name].is_contiguous():
                of[name] = of[name].contiguous()
            parts.append(of[name].data_ptr())
            sources = len(of[name]) if of is state.memory else sources
        self.state = np.array(parts, dtype=np.int64)
        self.frame = np.zeros(place.FRAME, dtype=np.int64)
        self.frame[place.NUM_ROWS], self.frame[place.NUM_SOURCES] = self.rows, sources
        self.frame[place.TOKENS], self.frame[place.LOG_PROBS] = self.tokens.data_ptr(), self.log_probs.data_ptr()
        self.frame[place.PLAN], self.frame[place.FACTORS] = step.numbers.ctypes.data, step.factors.ctypes.data
        self.frame[place.STATE], self.frame[place.SCRATCH] = self.state.ctypes.data, self.scratch.data_ptr()


@dataclass
class Writing:
    """Texts that a compiled loop goes on with."""

    step: CompiledStep
    pace: Pace = field(default_factory=lambda: Pace(tries=1))

    def go_on(
        self, log_probs: Tensor, state: State, texts: Texts, *, steps: int = NO_LIMIT
    ) -> tuple[np.ndarray, np.ndarray, Tensor | None] | None:
        """What is added to each text and its log p, (R, t) each, until all samples of a prompt are over, so many steps
        are taken or CHUNK seconds are over; and log p of what comes next, None where the last tokens are still to be
        read. None of all this where there is no room for a step."""
        room = self.step.body.make_room(state)
        if room < 1:
            return None
        ranks = self.pace.ranks()
        steps = max(1, min(room, self.pace.num_next(ranks), texts.room, steps))
        call = Call(self.step, torch.zeros(len(texts), dtype=torch.long), state, log_probs)
        width = texts.longest + steps
        history, log_history = np.zeros((len(texts), width), dtype=np.int64), np.zeros((len(texts), width))
        history[:, : texts.longest] = texts.tokens[:, : texts.longest]
        chances = np.ascontiguousarray(texts.chances)
        shared = [texts.samples, self.step.plan.vocab_size, steps, width, chances.shape[1]]
        found = np.zeros(3, dtype=np.int64)
        of_rows = (texts.settings, texts.factors, chances, history, log_history)
        arrays = (call.frame, np.array(shared, dtype=np.int64), *of_rows, found)
        began = time.perf_counter()
        _run(LOOP, self.step, arrays, ranks, (call, state))
        new = int(found[NUM_WRITTEN])
        self.pace.took(ranks, (time.perf_counter() - began) / new)
        places = texts.lengths[:, None] + np.arange(new)  # (R, t)
        added, their_log_probs = (np.take_along_axis(of, places, axis=1) for of in (history, log_history))
        return added, their_log_probs, call.log_probs if found[IS_READ] else None


@dataclass
class Searching:
    """A beam search that a compiled loop goes on with, W hypotheses of each of N prompts, while nothing ends."""

    model: nn.Module
    width: int
    stop: int
    never: int
    min_tokens: int
    pace: Pace = field(default_factory=lambda: Pace(tries=1))

    def go_on(
        self,
        log_probs: Tensor,
        state: State,
        tokens: np.ndarray,
        totals: np.ndarray,
        worst: np.ndarray,
        norms: np.ndarray,
        limit: int,
    ) -> tuple[Tensor, np.ndarray, np.ndarray] | None:
        """log p of what comes next, and the tokens (R, T) and totals (N, W) of the beam by then, which is before the
        next step at which anything ends, or has `limit` tokens. The state goes on in place. None where no step could
        be taken."""
        (R, done), step = tokens.shape, compiled_step(self.model, len(tokens))
        if step is None or not is_ready(SEARCH) or totals.shape[1] < self.width:  # as yet there are too few texts
            return None
        ranks = self.pace.ranks()
        until = min(limit - 1, done + min(step.body.make_room(state), self.pace.num_next(ranks)))
        if until <= done:
            return None
        history, reached = np.zeros((R, until), dtype=np.int64), totals.astype(np.float64)
        history[:, :done] = tokens
        call = Call(step, torch.zeros(R, dtype=torch.long), state, log_probs)
        parts = _rows_of(state)
        V, k = step.plan.vocab_size, min(2 * self.width, step.plan.vocab_size)
        numbers = [self.width, self.stop, self.never, self.min_tokens, V, len(parts), done, until]
        values, best, moves = np.empty((R, k), dtype=np.float32), *(np.empty((R, n), dtype=np.int64) for n in (k, 4))
        found = np.array([done, 0], dtype=np.int64)
        settings = np.array(numbers, dtype=np.int64)
        arrays = (call.frame, settings, history, reached, worst, norms, values, best, parts, moves, found)
        began = time.perf_counter()
        _run(SEARCH, step, arrays, ranks, (call, state))
        now = int(found[NUM_WRITTEN])
        self.pace.took(ranks, (time.perf_counter() - began) / max(1, now - done))
        return (call.log_probs, history[:, :now], reached) if now > done else None


def _rows_of(state: State) -> np.ndarray:
    """Of each part of a state the address, and how many times 4 bytes a row of it has."""
    for name, tensor in state.per_row.items():
        state.per_row[name] = tensor.contiguous()
    rows = [[tensor.data_ptr(), tensor.nbytes // len(tensor) // 4] for tensor in state.per_row.values()]
    return np.array(rows, dtype=np.int64)


def _run(loop: Entry, step: CompiledStep, arrays: tuple[np.ndarray, ...], ranks: int, used: object) -> None:
    """A compiled loop around a step, by a team; `used` is what addresses in the arrays belong to."""
    frame = np.array([step.entry.address, *(array.ctypes.data for array in arrays)], dtype=np.int64)
    kept = used, arrays, step  # where Ctrl-C strikes, threads may be at it for a moment longer

    def work(rank: int, size: int, meetings: int, kept: object = kept) -> int:
        return loop(rank, size, meetings, 0, frame.ctypes.data)

    TEAM.run(work, ranks)


_steps: WeakKeyDictionary[nn.Module, CompiledStep | None] = WeakKeyDictionary()
_use: list[Use] = []


@contextmanager
def engine(use: Use) -> Iterator[None]:
    """Within it, compiled steps are taken (`on`: waited for), or not."""
    _use.append(use)
    try:
        yield
    finally:
        _use.pop()


def use_of_engine() -> Use:
    use = _use[-1] if _use else os.environ.get(SETTING, "auto")
    if use not in get_args(Use):
        raise ConfigError(f"{SETTING}={use} should be one of {', '.join(get_args(Use))}.")
    return cast(Use, use)


def max_rows() -> int:
    """Up to how many rows compiled steps are taken."""
    asked = os.environ.get(ROWS_SETTING)
    if asked is not None:
        if not asked.isdecimal():
            raise ConfigError(f"{ROWS_SETTING}={asked} should be a number of rows, 0 or more.")
        return int(asked)
    return MAX_ROWS


def is_ready(entry: Entry) -> bool:
    """Whether compiled code may be used, and is there."""
    use = use_of_engine()
    return use != "off" and entry.load(wait=use == "on")


def read_compiled(model: nn.Module, tokens: Tensor, state: State) -> Tensor | None:
    """The compiled step of a model, taken; None where torch is to take it."""
    step = compiled_step(model, len(tokens))
    return None if step is None else step.read(tokens, state)


def compiled_step(model: nn.Module, num_rows: int) -> CompiledStep | None:
    """The compiled step of a model with a body and a head that says what comes next; None where torch computes."""
    if use_of_engine() == "off" or num_rows > max_rows() or model.training or torch.is_grad_enabled() or is_recorded():
        return None
    if torch.is_autocast_enabled("cpu"):  # states may be in 16 bits
        return None
    step = _steps.get(model)
    if step is None or not step.weights.are_there():
        if step is None and model in _steps:  # was found to be of another shape
            return None
        step = _steps[model] = _plan(model)
    return step if step is not None and is_ready(step.entry) else None


def _plan(model: nn.Module) -> CompiledStep | None:
    body = getattr(model, "body", None)  # networks of other hands may have none
    if not isinstance(body, Compiles):
        return None
    try:
        return CompiledStep.of(body, cast(nn.Module, getattr(model, "main_head", model.head)))
    except NotCompiledError:
        return None
