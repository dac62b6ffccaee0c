"""Models that search is tested on: a Markov chain whose every probability is known, and tiny real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from torch import Tensor

from seqwise.data.batch import Batch
from seqwise.models import MODELS
from seqwise.models.contract import State

VOCAB = 3
SETTINGS: dict[str, dict[str, Any]] = {
    "ngram": {"order": 3},
    "conv": {"model_dim": 8, "num_layers": 3},
    "lstm": {"model_dim": 8, "num_layers": 2},
    "gpt": {"context": 8, "num_layers": 2, "model_dim": 8, "num_heads": 2},
}


class MarkovChain:
    """The next token depends on the last two: probs (V, V, V). `step` overwrites the state it is given, as it may."""

    def __init__(self, probs: Tensor):
        self.log_table, self.vocab_size, self.num_steps = probs.double().log(), probs.shape[0], 0

    def initial_state(self, batch_size: int) -> State:
        return State({"pair": torch.zeros(batch_size, 2, dtype=torch.long)})

    def start(self, prompt: Batch) -> tuple[Tensor, State]:
        tokens, state = prompt.inputs["tokens"], self.initial_state(len(prompt))
        for row, length in enumerate(tokens.lengths.tolist()):
            for token in tokens.ids[row, :length].tolist():
                state.per_row["pair"][row] = torch.tensor([state.per_row["pair"][row, 1], token])
        return self._after(state)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        self.num_steps += 1
        pair = state.per_row["pair"]
        pair[:, 0] = pair[:, 1].clone()
        pair[:, 1] = tokens
        return self._after(state)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        inputs, targets = batch.inputs["tokens"].ids, batch.targets["tokens"].ids
        pair, scores = torch.zeros(len(batch), 2, dtype=torch.long), []
        for t in range(inputs.shape[1]):
            pair = torch.stack([pair[:, 1], inputs[:, t]], dim=1)
            scores.append(self.log_table[pair[:, 0], pair[:, 1], targets[:, t]])
        return torch.stack(scores, dim=1), State({"pair": pair})

    def _after(self, state: State) -> tuple[Tensor, State]:
        pair = state.per_row["pair"]
        return self.log_table[pair[:, 0], pair[:, 1]], state


def random_chain() -> MarkovChain:
    generator = torch.Generator().manual_seed(3)
    return MarkovChain(torch.rand(VOCAB, VOCAB, VOCAB, generator=generator).mul(2.5).exp().softmax(dim=-1))


def tiny_model(name: str) -> Any:
    """A chain, or a family with random weights (counts of a random text), sharp enough that nothing ties."""
    if name == "chain":
        return random_chain()
    row = MODELS[name]
    model = row.build(row.config(**SETTINGS[name]), schemas.of_text(VOCAB))
    if row.learns["next_token"] == "counting":
        model.fit(np.concatenate([[0], np.random.default_rng(0).choice(VOCAB, size=997, p=[0.5, 0.3, 0.2])]))
        return model
    generator = torch.Generator().manual_seed(5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    return model.eval()


@pytest.fixture(params=["chain", "ngram", "conv", "lstm", "gpt"])
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_model(request.param)


@pytest.fixture
def gpt() -> Any:
    return tiny_model("gpt")


@pytest.fixture
def chain() -> MarkovChain:
    return random_chain()


@pytest.fixture
def make_chain() -> Callable[[list[list[float]]], MarkovChain]:
    """A first-order chain from its table: row i is p(next | i)."""

    def make(rows: list[list[float]]) -> MarkovChain:
        table = torch.tensor(rows, dtype=torch.float64)
        return MarkovChain(table.unsqueeze(0).expand(len(rows), -1, -1))

    return make
