"""Recurrent layers: a cell run along a sequence, and layers stacked.

A cell (rnn.py, gru.py, lstm.py) is one step of its equations in plain sight, and names the kernel of torch that does
all steps at once. Kernels are near the machine's limit, so they are used wherever they compute the same thing.

How layers are stacked, with f_l the layer number l:

    plain      x_{l+1} = f_l(x_l)                                                                      (1)
    residual   x_{l+1} = x_l + f_l(x_l)                     a path without any layer    He et al. 2016 (2)
    highway    x_{l+1} = t * f_l(x_l) + (1 - t) * x_l,  t = sigmoid(W x_l + b)   Srivastava et al. 2015 (3)
    dense      x_{l+1} = f_l([x_1, ..., x_l]), all outputs side by side at the end   Huang et al. 2017 (4)

Shapes: B batch, T steps, E input width, D state width, G gates, L layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from .dropout import Dropout, dropped_out
from .notes import is_recorded, note, tap

State = tuple[Tensor, ...]
"""What a cell remembers: h, or h and c, (B, D) each; (B, L, D) for a stack."""


HANDED_ON = (("h handed on", "c handed on"), ("h handed back", "c handed back"))
"""How the state after each step is shown, by direction; what is read from behind is shown in the order of reading."""


class Cell(Protocol):
    num_states: int
    kernel: Callable[..., Any] | None
    """torch's function for all steps at once; None where it has none for these equations."""
    weights: CellWeights

    def __call__(self, from_input: Tensor, state: State, hidden_weight: Tensor) -> State:
        """One step; `from_input` is W x + b."""
        ...

    def show(self, from_input: Tensor, before: Tensor, after: Tensor, state: State, hidden_weight: Tensor) -> State:
        """Note what all steps did whose h is known, `before` and `after` each, (B, T, D); and all that they handed on.

        `from_input` (B, T, rows), `state` the one before the first.
        """
        ...


class CellWeights(nn.Module):
    """W, U and two biases of all gates, one above the other, as torch's kernels want them."""

    def __init__(self, input_dim: int, hidden_dim: int, rows: int, *, normalise: bool = False, projected_from: int = 0):
        super().__init__()
        bound = (projected_from or hidden_dim) ** -0.5
        self.hidden_dim, self.state_dim = hidden_dim, projected_from or hidden_dim
        self.stacked = {"input": rows // self.state_dim, "hidden": rows // self.state_dim}
        self.input = nn.Parameter(torch.empty(rows, input_dim).uniform_(-bound, bound))
        self.hidden = nn.Parameter(torch.empty(rows, hidden_dim).uniform_(-bound, bound))
        self.bias_input = nn.Parameter(torch.zeros(rows))
        self.bias_hidden = nn.Parameter(torch.zeros(rows))
        self.projection = None
        if projected_from:
            self.projection = nn.Parameter(torch.empty(hidden_dim, projected_from).uniform_(-bound, bound))
        # inside the recurrence, before the gates: Ba et al. 2016
        self.input_norm = nn.LayerNorm(rows, bias=False) if normalise else nn.Identity()
        self.hidden_norm = nn.LayerNorm(rows, bias=False) if normalise else nn.Identity()

    def of_input(self, x: Tensor) -> Tensor:
        """W x + b, of all steps at once: (..., E) -> (..., rows)."""
        return self.input_norm(x @ self.input.T) + self.bias_input

    def of_hidden(self, h: Tensor, hidden_weight: Tensor) -> Tensor:
        """U h + b': (..., D) -> (..., rows)."""
        return self.hidden_norm(h @ hidden_weight.T) + self.bias_hidden

    def flat(self, hidden_weight: Tensor) -> list[Tensor]:
        """In the order that kernels take them."""
        projection = [] if self.projection is None else [self.projection]
        return [self.input, hidden_weight, self.bias_input, self.bias_hidden, *projection]


class RecurrentLayer(nn.Module):
    """One cell along a sequence, or two of them, one from each end."""

    def __init__(self, cells: list[nn.Module], *, weight_dropout: float = 0.0):
        super().__init__()
        self.cells = nn.ModuleList(cells)
        self.weight_dropout = weight_dropout

    @property
    def _cells(self) -> list[Cell]:
        return list(self.cells)  # type: ignore[arg-type]

    @property
    def _first(self) -> Any:
        return self.cells[0]

    @property
    def output_dim(self) -> int:
        return len(self.cells) * int(self._first.weights.hidden_dim)

    def initial_state(self, batch_size: int) -> State:
        """Nothing remembered: h (and c), (B, directions, D) each."""
        weights = self._first.weights
        widths = [weights.hidden_dim, *([weights.state_dim] if self._first.num_states == 2 else [])]
        return tuple(weights.input.new_zeros(batch_size, len(self.cells), width) for width in widths)

    def forward(self, x: Tensor, state: State, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        """x (B, T, E) -> outputs (B, T, directions * D) and the state after each row's last step."""
        hidden_weights = [self._dropped(cell.weights.hidden) for cell in self._cells]
        if self._first.kernel is None or (is_recorded() and (torch.is_grad_enabled() or lengths is not None)):
            return self.forward_by_steps(x, state, lengths, hidden_weights)
        flat = [w for cell, u in zip(self._cells, hidden_weights, strict=True) for w in cell.weights.flat(u)]
        before = tuple(s.transpose(0, 1).contiguous() for s in state)  # (B, directions, D) -> (directions, B, D)
        options = (True, 1, 0.0, self.training, len(self.cells) == 2)  # biases, layers, dropout, training, both ways
        if lengths is None:
            outputs, *after = self._first.kernel(x, _as_kernel(before), flat, *options, True)
        elif self._can_read_padded(x, state):
            outputs, *after = self._read_padded(x, before, lengths, hidden_weights, options)
        else:
            packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
            order, back = cast(Tensor, packed.sorted_indices), cast(Tensor, packed.unsorted_indices)
            before = tuple(s.index_select(1, order) for s in before)
            data, *after = self._first.kernel(packed.data, packed.batch_sizes, _as_kernel(before), flat, *options)
            was_read = (lengths > 0).view(1, -1, 1)  # a row without steps keeps its state
            after = [
                torch.where(was_read, new.index_select(1, back), old.index_select(1, back))
                for new, old in zip(after, before, strict=True)
            ]
            packed = PackedSequence(data, packed.batch_sizes, order, back)
            outputs, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
        if is_recorded():
            self._show(x, state, outputs, hidden_weights)
        return outputs, tuple(s.transpose(0, 1) for s in after)

    def _can_read_padded(self, x: Tensor, state: State) -> bool:
        """Whether rows of several lengths are read as one block; from the other end, only from an empty state."""
        starts_empty = len(self.cells) == 1 or not any(bool(part[:, 1].any()) for part in state)
        return x.device.type == "cpu" and hasattr(self._first, "padding_column") and starts_empty

    def _read_padded(
        self, x: Tensor, before: State, lengths: Tensor, hidden_weights: list[Tensor], options: tuple[Any, ...]
    ) -> tuple[Tensor, ...]:
        """All rows as long as the longest: torch unrolls packed rows step by step, several times slower on a CPU.

        One more input is 1 behind the end of a row, and shuts the gates there: the memory stays, h is zero.
        """
        is_behind = torch.arange(x.shape[1], device=x.device) >= lengths.to(x.device).unsqueeze(1)  # (B, T)
        x = torch.cat([x, is_behind.unsqueeze(-1).to(x)], dim=-1)  # (B, T, E + 1)
        flat: list[Tensor] = []
        for cell, u in zip(self._cells, hidden_weights, strict=True):
            w, *others = cell.weights.flat(u)
            flat += [torch.cat([w, cast(Any, cell).padding_column.to(w)], dim=1), *others]
        outputs, h, *memory = self._first.kernel(x, _as_kernel(before), flat, *options, True)
        rows, last = torch.arange(len(x), device=x.device), lengths.to(x.device).clamp(min=1) - 1
        of_forward = outputs[rows, last, : h.shape[-1]].unsqueeze(0)  # the kernel's own h is zero behind the end
        h = torch.cat([of_forward, h[1:]])
        return outputs, torch.where((lengths > 0).view(1, -1, 1), h, before[0]), *memory

    def forward_by_steps(
        self, x: Tensor, state: State, lengths: Tensor | None = None, hidden_weights: list[Tensor] | None = None
    ) -> tuple[Tensor, State]:
        """What `forward` computes, cell by cell: the explanation, the reference, and where torch has no kernel."""
        T = x.shape[1]
        if hidden_weights is None:
            hidden_weights = [cell.weights.hidden for cell in self._cells]
        outputs, states = [], []
        for direction, (cell, u) in enumerate(zip(self._cells, hidden_weights, strict=True)):
            now = tuple(s[:, direction] for s in state)  # (B, D) each
            from_input = cell.weights.of_input(x).unbind(dim=1)  # T times (B, rows)
            found: list[Tensor] = [x.new_empty(0)] * T
            for t in range(T) if direction == 0 else reversed(range(T)):
                after = cell(from_input[t], now, u)
                if lengths is not None:  # behind the end of a row nothing changes
                    is_step = (t < lengths.to(x.device)).unsqueeze(1)
                    after = tuple(torch.where(is_step, new, old) for new, old in zip(after, now, strict=True))
                now = tuple(tap(self, what, part) for what, part in zip(HANDED_ON[direction], after, strict=False))
                found[t] = now[0]
            outputs.append(torch.stack(found, dim=1))  # (B, T, D)
            states.append(now)
        return torch.cat(outputs, dim=-1), tuple(torch.stack(parts, dim=1) for parts in zip(*states, strict=True))

    def _show(self, x: Tensor, state: State, outputs: Tensor, hidden_weights: list[Tensor]) -> None:
        """What `forward_by_steps` notes, from the outputs (B, T, directions * D) of a kernel, all steps at once."""
        by_direction = outputs.chunk(len(self._cells), dim=-1)
        for direction, (cell, u, after) in enumerate(zip(self._cells, hidden_weights, by_direction, strict=True)):
            inputs = x
            if direction == 1:  # in the order of reading
                inputs, after = x.flip(1), after.flip(1)
            first = tuple(s[:, direction] for s in state)  # (B, D) each
            before = torch.cat([first[0].unsqueeze(1), after[:, :-1]], dim=1)
            handed_on = cell.show(cell.weights.of_input(inputs), before, after, first, u)
            for what, part in zip(HANDED_ON[direction], handed_on, strict=False):
                note(self, what, part)

    def _dropped(self, weight: Tensor) -> Tensor:
        """U with some of its entries missing, the same ones at all steps (DropConnect; Merity et al. 2017)."""
        return dropped_out(weight, self.weight_dropout) if self.weight_dropout and self.training else weight


def _as_kernel(state: State) -> State | Tensor:
    """Kernels take a state of one part bare."""
    return state if len(state) == 2 else state[0]


class RecurrentStack(nn.Module):
    """Layers one above the other, joined as `connections` says, with dropout and normalisation between them."""

    def __init__(
        self,
        make_cell: Callable[[int], nn.Module],
        input_dim: int,
        num_layers: int,
        *,
        connections: str = "plain",
        bidirectional: bool = False,
        dropout: float = 0.0,
        is_variational: bool = False,
        weight_dropout: float = 0.0,
        normalise: bool = False,
    ):
        """`make_cell(input_dim)` makes a new cell."""
        super().__init__()
        self.connections = connections
        self.layers, self.norms, self.gates = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        self.dropout = Dropout(dropout, is_variational=is_variational)
        width, self.input_dim = input_dim, input_dim
        for _ in range(num_layers):
            self.norms.append(nn.LayerNorm(width) if normalise else nn.Identity())
            cells = [make_cell(width) for _ in range(2 if bidirectional else 1)]
            layer = RecurrentLayer(cells, weight_dropout=weight_dropout)
            self.layers.append(layer)
            self.gates.append(nn.Identity())
            if connections == "highway" and width == layer.output_dim:
                self.gates[-1] = nn.Linear(width, width)
                nn.init.constant_(self.gates[-1].bias, -1.0)  # type: ignore[arg-type]  # carries at first
            width = width + layer.output_dim if connections == "dense" else layer.output_dim
        self.output_dim = width - input_dim if connections == "dense" else width

    def initial_state(self, batch_size: int) -> State:
        """(B, L * directions, D) for each part of the state."""
        states = [layer.initial_state(batch_size) for layer in self.layers]  # type: ignore[operator]
        return tuple(torch.cat(parts, dim=1) for parts in zip(*states, strict=True))

    def forward(
        self,
        x: Tensor,
        state: State,
        lengths: Tensor | None = None,
        *,
        by_steps: bool = False,
        layers: list[Tensor] | None = None,
    ) -> tuple[Tensor, State]:
        """x (B, T, E) -> outputs (B, T, output_dim) and the state after each row's last step.

        What each layer hands on is added to `layers`, where such a list is given.
        """
        directions = len(self.layers[0].cells)  # type: ignore[arg-type]
        after = []
        for number, (layer, norm, gate) in enumerate(zip(self.layers, self.norms, self.gates, strict=True)):
            before = tuple(s[:, number * directions : (number + 1) * directions] for s in state)
            run = layer.forward_by_steps if by_steps else layer
            y, layer_state = run(norm(x), before, lengths)  # type: ignore[operator]
            after.append(layer_state)
            if number < len(self.layers) - 1:
                y = self.dropout(y)
            x = self._join(x, y, gate)
            if layers is not None:
                layers.append(y if self.connections == "dense" else x)
        x = x[..., self.input_dim :] if self.connections == "dense" else x
        return x, tuple(torch.cat(parts, dim=1) for parts in zip(*after, strict=True))

    def _join(self, x: Tensor, y: Tensor, gate: nn.Module) -> Tensor:
        if self.connections == "dense":
            return torch.cat([x, y], dim=-1)  # (4)
        if self.connections == "plain" or x.shape[-1] != y.shape[-1]:  # the first layer may change the width
            return y  # (1)
        if self.connections == "residual":
            return x + y  # (2)
        t = gate(x).sigmoid()
        return t * y + (1 - t) * x  # (3)
