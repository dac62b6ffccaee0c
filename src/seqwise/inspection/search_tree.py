"""Beam search as a tree: which hypotheses were kept, which dropped, and what each was worth when that was decided."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..data.batch import Batch
from ..decoding.beam import Candidates, beam_search
from ..decoding.settings import DecodingConfig, Hypothesis, length_norm
from ..models.contract import LanguageModel, evaluating

KEPT, ENDED, DROPPED = "kept", "ended", "dropped"


@dataclass(frozen=True)
class Node:
    parent: int | None
    """The place of its parent in the list; None at the first step."""
    step: int
    token: int
    log_prob: float
    """Of all tokens up to this one, nats."""
    score: float
    """The same over the norm of the length: what ended hypotheses are ranked by."""
    fate: str
    """kept, ended or dropped."""


@dataclass(frozen=True)
class SearchTree:
    nodes: list[Node]
    answers: list[Hypothesis]
    """Best first."""

    def path(self, tokens: list[int]) -> list[int]:
        """The nodes of a hypothesis, first token first; what was never reached is left out."""
        found: list[int] = []
        parent: int | None = None
        for token in tokens:
            here = [
                place
                for place, node in enumerate(self.nodes)
                if node.parent == parent and node.step == len(found) and node.token == token and node.fate != DROPPED
            ]
            if not here:
                break
            parent = here[0]
            found.append(parent)
        return found


@torch.inference_mode()
def search_tree(model: LanguageModel, prompt: Batch, config: DecodingConfig) -> SearchTree:
    """The search for one prompt, watched."""
    nodes: list[Node] = []
    running: list[int | None] = [None]  # the nodes of the hypotheses that go on
    steps = 0

    def watch(found: Candidates) -> None:
        nonlocal running, steps
        norm = length_norm(steps + 1, config.length_penalty, config.length_form)
        going: list[int | None] = []
        columns = (found.parents, found.tokens, found.totals, found.ends, found.goes_on)
        for parent, token, total, ends, goes_on in zip(*(column[0].tolist() for column in columns), strict=True):
            if total == float("-inf"):
                continue
            if goes_on:
                going.append(len(nodes))
            fate = KEPT if goes_on else ENDED if ends else DROPPED
            nodes.append(Node(running[parent], steps, token, total, total / norm, fate))
        running, steps = going, steps + 1

    with evaluating(model):
        answers = beam_search(model, prompt, config, [config.max_tokens], watch)[0]
    return SearchTree(nodes, answers)
