"""States of rows that come and go: one tensor of each kind, with room for several rows.

    rows.enter(state)            behind those that are there
    model.step(tokens, rows.state); rows.keep(state)
    order = rows.leave([2, 5])   the last ones take their places

A row that comes or goes copies itself and at most one other, whatever the others have kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..models.contract import State


class Rows:
    def __init__(self) -> None:
        self._room: dict[str, Tensor] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def state(self) -> State:
        """Of the rows that are there; what a step writes into it in place is kept."""
        return State({name: tensor[: self._count] for name, tensor in self._room.items()})

    @property
    def num_bytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self._room.values())

    def enter(self, state: State) -> None:
        """More rows, behind those that are there."""
        if state.memory:
            raise ValueError("rows with a memory of their own source are answered by predict")
        (new,) = {len(tensor) for tensor in state.per_row.values()}
        if not self._room:
            self._room = {name: tensor[:0] for name, tensor in state.per_row.items()}
        for name, tensor in state.per_row.items():
            room = self._room[name]
            if self._count + new > len(room):
                larger = room.new_zeros(max(self._count + new, 2 * len(room)), *tensor.shape[1:])
                larger[: self._count] = room[: self._count]
                self._room[name] = room = larger
            room[self._count : self._count + new] = tensor
        self._count += new

    def keep(self, state: State) -> None:
        """What a step made of `state`: those parts that it did not write in place."""
        for name, tensor in state.per_row.items():
            room = self._room[name][: self._count]
            if tensor.data_ptr() != room.data_ptr():
                room.copy_(tensor)

    def leave(self, gone: Sequence[int]) -> list[int]:
        """Which rows are there now, by the places that they had: in each gap stands one that was the last."""
        order = list(range(self._count))
        for row in sorted(gone, reverse=True):
            last = order.pop()
            if row < len(order):
                order[row] = last
        for row, before in enumerate(order):
            if row != before:
                for tensor in self._room.values():
                    tensor[row] = tensor[before]
        self._count = len(order)
        if not order:
            self._room = {}
        return order
