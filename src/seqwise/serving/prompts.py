"""Prompts are read in blocks of equal length; states at the ends of blocks are kept for prompts that begin alike.

A block is always read by itself, whether what stands before it was read just now or a while ago, so that what comes out
is the same to the bit. For a recurrent network such a state is a few kB, for a Transformer its keys and values.

    log_probs, state = prompts.read([0, 17, 4, ...])        # (1, V), one row
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor

from ..data.batch import prompt_batch
from ..models.contract import Resumes, State, device_of, select_rows

BLOCK = 64  # tokens


class Prompts:
    def __init__(self, model: Resumes, max_bytes: int):
        """`max_bytes`: of states that are kept; those that were not asked for the longest are forgotten first."""
        self.model, self.max_bytes, self.num_bytes = model, max_bytes, 0
        self.num_read = self.num_known = 0  # tokens
        self._first = torch.zeros(1, dtype=torch.long, device=device_of(model))
        self._kept: OrderedDict[tuple[int, ...], tuple[Tensor, State]] = OrderedDict()

    def read(self, prompt: Sequence[int]) -> tuple[Tensor, State]:
        """What comes after a prompt, log p (1, V), and a state that may be overwritten."""
        context = self.model.context
        text = tuple(prompt if context is None else prompt[-context:])
        known = next((end for end in self._ends(text) if text[:end] in self._kept), 0)
        found = self._kept.get(text[:known])
        for end in sorted(end for end in self._ends(text) if end > known):
            before = None if found is None else select_rows(found[1], self._first)
            begin = (end - 1) // BLOCK * BLOCK
            block = prompt_batch([text[begin:end]], device=self._first.device)
            found = self.model.start(block, before)
            self._keep(text[:end], found)
        if known:
            self._kept.move_to_end(text[:known])
        self.num_known, self.num_read = self.num_known + known, self.num_read + len(text) - known
        assert found is not None
        return found[0].clone(), select_rows(found[1], self._first)

    @staticmethod
    def _ends(text: tuple[int, ...]) -> list[int]:
        """Where blocks end, the last first."""
        return [len(text), *(end for end in range(len(text) // BLOCK * BLOCK, 0, -BLOCK) if end < len(text))]

    def _keep(self, text: tuple[int, ...], found: tuple[Tensor, State]) -> None:
        size = _bytes_of(found)
        if size > self.max_bytes:
            return
        self._kept[text] = found
        self.num_bytes += size
        while self.num_bytes > self.max_bytes:
            self.num_bytes -= _bytes_of(self._kept.popitem(last=False)[1])


def _bytes_of(found: tuple[Tensor, State]) -> int:
    log_probs, state = found
    return sum(tensor.numel() * tensor.element_size() for tensor in [log_probs, *state.per_row.values()])
