"""Recurrent layers: against torch.nn with the same weights, and against their equations written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqwise.inspection import record
from seqwise.layers.dropout import dropped_out
from seqwise.layers.gru import GRUCell
from seqwise.layers.lstm import LSTMCell
from seqwise.layers.recurrent import RecurrentLayer, RecurrentStack, State
from seqwise.layers.rnn import RNNCell

E, D, P = 5, 6, 4  # input width, state width, projected width
B, T = 4, 7
LENGTHS = torch.tensor([3, 7, 1, 5])

MakeCell = Callable[[int], nn.Module]
WITH_KERNEL: dict[str, MakeCell] = {
    "rnn tanh": lambda width: RNNCell(width, D),
    "rnn relu": lambda width: RNNCell(width, D, activation="relu"),
    "gru": lambda width: GRUCell(width, D),
    "lstm": lambda width: LSTMCell(width, D),
    "lstm projected": lambda width: LSTMCell(width, D, projection_dim=P),
}
WITHOUT_KERNEL: dict[str, MakeCell] = {
    "gru reset before": lambda width: GRUCell(width, D, reset="before"),
    "rnn tanh normalised": lambda width: RNNCell(width, D, normalise=True),
    "rnn relu normalised": lambda width: RNNCell(width, D, activation="relu", normalise=True),
    "gru normalised": lambda width: GRUCell(width, D, normalise=True),
    "gru reset before normalised": lambda width: GRUCell(width, D, reset="before", normalise=True),
    "lstm normalised": lambda width: LSTMCell(width, D, normalise=True),
    "lstm projected normalised": lambda width: LSTMCell(width, D, projection_dim=P, normalise=True),
}
CELLS = WITH_KERNEL | WITHOUT_KERNEL
REFERENCES: dict[str, Callable[..., nn.RNNBase]] = {
    "rnn tanh": nn.RNN,
    "rnn relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
    "gru": nn.GRU,
    "lstm": nn.LSTM,
    "lstm projected": lambda *sizes, **options: nn.LSTM(*sizes, proj_size=P, **options),
}
each_cell = pytest.mark.parametrize("name", CELLS)
each_kernel = pytest.mark.parametrize("name", WITH_KERNEL)
one_or_two_layers = pytest.mark.parametrize("num_layers", [1, 2])
both_directions = pytest.mark.parametrize("bidirectional", [False, True], ids=["forwards", "both ways"])
padded_or_not = pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "padded"])


def random_stack(name: str, num_layers: int = 1, *, input_dim: int = E, **options: object) -> RecurrentStack:
    """All weights random, biases too."""
    return with_random_weights(RecurrentStack(CELLS[name], input_dim, num_layers, **options))


def with_random_weights(module: nn.Module) -> nn.Module:
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    return module


def random_state(stack: RecurrentStack | RecurrentLayer) -> State:
    return tuple(torch.randn_like(part) for part in stack.initial_state(B))


def is_real(lengths: Tensor | None) -> Tensor:
    return torch.ones(B, T, dtype=torch.bool) if lengths is None else torch.arange(T) < lengths.unsqueeze(1)


def assert_same(found: object, expected: object, *, atol: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=atol, rtol=1e-4)


def gradients_of(outputs: Tensor, states: State, real: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    """Of a sum in which every real output and every final state counts, each differently."""
    generator = torch.Generator().manual_seed(1)
    total = (outputs * torch.randn(outputs.shape, generator=generator))[real].sum()
    for part in states:
        total = total + (part * torch.randn(part.shape, generator=generator)).sum()
    return list(torch.autograd.grad(total, leaves))


# --- by reference -----------------------------------------------------------------------------------------------------


def run_reference(reference: nn.RNNBase, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
    before = tuple(part.transpose(0, 1).contiguous() for part in state)
    before = before if len(before) == 2 else before[0]
    if lengths is None:
        outputs, after = reference(x, before)
    else:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, after = reference(packed, before)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=T)
    after = after if isinstance(after, tuple) else (after,)
    return outputs, tuple(part.transpose(0, 1) for part in after)


def weights_by_reference_name(stack: RecurrentStack) -> dict[str, Tensor]:
    """Our weights by the names of torch.nn."""
    found = {}
    for number, layer in enumerate(stack.layers):
        for direction, cell in zip(("", "_reverse"), layer.cells, strict=False):
            place, weights = f"l{number}{direction}", cell.weights
            found |= {f"weight_ih_{place}": weights.input, f"weight_hh_{place}": weights.hidden}
            found |= {f"bias_ih_{place}": weights.bias_input, f"bias_hh_{place}": weights.bias_hidden}
            if weights.projection is not None:
                found[f"weight_hr_{place}"] = weights.projection
    return found


@each_kernel
@one_or_two_layers
@both_directions
@padded_or_not
@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")  # of the reference; ours says nothing
def test_outputs_states_and_gradients_are_those_of_torch(
    name: str, num_layers: int, bidirectional: bool, lengths: Tensor | None
) -> None:
    stack = random_stack(name, num_layers, bidirectional=bidirectional)
    reference = REFERENCES[name](E, D, num_layers, batch_first=True, bidirectional=bidirectional)
    ours, theirs = weights_by_reference_name(stack), dict(reference.named_parameters())
    assert ours.keys() == theirs.keys()
    with torch.no_grad():
        for key, parameter in theirs.items():
            parameter.copy_(ours[key])
    x = torch.randn(B, T, E, requires_grad=True)
    state = tuple(part.requires_grad_() for part in random_state(stack))

    outputs, after = stack(x, state, lengths)
    expected, expected_after = run_reference(reference, x, state, lengths)
    real = is_real(lengths)
    assert outputs.shape == expected.shape == (B, T, stack.output_dim)
    assert_same(outputs[real], expected[real])
    assert_same(after, expected_after)
    found = gradients_of(outputs, after, real, [x, *state, *(ours[key] for key in theirs)])
    wanted = gradients_of(expected, expected_after, real, [x, *state, *theirs.values()])
    assert_same(found, wanted)


@each_kernel
@pytest.mark.parametrize("training", [True, False])
def test_kernels_run_without_a_warning_in_training_and_after(name: str, training: bool) -> None:
    stack = random_stack(name).train(training)  # warnings are errors in this suite
    with torch.set_grad_enabled(training):
        outputs, _ = stack(torch.randn(B, T, E), stack.initial_state(B))
    assert outputs.requires_grad == training


# --- by its own plain version -----------------------------------------------------------------------------------------


@each_cell
@both_directions
@padded_or_not
def test_the_fast_path_is_the_path_by_steps(name: str, bidirectional: bool, lengths: Tensor | None) -> None:
    stack = random_stack(name, 2, bidirectional=bidirectional)
    x = torch.randn(B, T, E, requires_grad=True)
    state, real = tuple(part.requires_grad_() for part in random_state(stack)), is_real(lengths)
    fast, fast_after = stack(x, state, lengths)
    plain, plain_after = stack(x, state, lengths, by_steps=True)
    assert_same(fast[real], plain[real])
    assert_same(fast_after, plain_after)
    leaves = [x, *state, *stack.parameters()]
    assert_same(gradients_of(fast, fast_after, real, leaves), gradients_of(plain, plain_after, real, leaves))


@both_directions
@pytest.mark.parametrize("lengths", [LENGTHS, torch.tensor([3, 0, 7, 2])], ids=["lengths", "an empty row"])
def test_rows_read_as_one_block_are_rows_read_by_steps(bidirectional: bool, lengths: Tensor) -> None:
    """From an empty state, from which both directions are read that way; nothing is said behind the end of a row."""
    layer = with_random_weights(RecurrentLayer([CELLS["lstm"](E) for _ in range(1 + bidirectional)]))
    x, state = (10 * torch.randn(len(lengths), T, E)).requires_grad_(), layer.initial_state(len(lengths))
    assert layer._can_read_padded(x, state)
    block, block_after = layer(x, state, lengths)
    plain, plain_after = layer.forward_by_steps(x, state, lengths)
    is_step = torch.arange(T) < lengths.unsqueeze(1)
    assert not block[~is_step].any()
    assert_same(block[is_step], plain[is_step])
    assert_same(block_after, plain_after)
    leaves = [x, *layer.parameters()]
    assert_same(gradients_of(block, block_after, is_step, leaves), gradients_of(plain, plain_after, is_step, leaves))


@each_kernel
@both_directions
@torch.no_grad()
def test_a_layer_in_rest_is_its_path_by_steps(name: str, bidirectional: bool) -> None:
    layer = RecurrentLayer([CELLS[name](E) for _ in range(1 + bidirectional)]).eval()
    x, state = torch.randn(B, T, E), random_state(with_random_weights(layer))
    assert layer.output_dim == (1 + bidirectional) * (P if "projected" in name else D)
    for lengths in (None, LENGTHS):
        (fast, fast_after), (plain, plain_after) = layer(x, state, lengths), layer.forward_by_steps(x, state, lengths)
        assert_same((fast[is_real(lengths)], *fast_after), (plain[is_real(lengths)], *plain_after))


@each_cell
@one_or_two_layers
@both_directions
@torch.no_grad()
def test_a_padded_row_is_what_it_is_alone(name: str, num_layers: int, bidirectional: bool) -> None:
    stack = random_stack(name, num_layers, bidirectional=bidirectional)
    x, state = torch.randn(B, T, E), random_state(stack)
    together, after = stack(x, state, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone, alone_after = stack(x[row : row + 1, :length], tuple(part[row : row + 1] for part in state))
        assert_same(together[row : row + 1, :length], alone)
        assert_same(tuple(part[row : row + 1] for part in after), alone_after)


@each_cell
@torch.no_grad()
def test_a_sequence_in_two_parts_with_the_state_between_is_the_whole(name: str) -> None:
    stack = random_stack(name, 2)
    x, state = torch.randn(B, T, E), random_state(stack)
    whole, after_whole = stack(x, state)
    first, between = stack(x[:, :3], state)
    second, after = stack(x[:, 3:], between)
    assert_same(torch.cat([first, second], dim=1), whole)
    assert_same(after, after_whole)


@each_kernel
@torch.no_grad()
def test_a_row_without_steps_keeps_its_state(name: str) -> None:
    stack = random_stack(name)
    x, state = torch.randn(B, T, E), random_state(stack)
    lengths = torch.tensor([3, 0, 7, 2])
    _, after = stack(x, state, lengths)
    assert_same(after, stack(x, state, lengths, by_steps=True)[1])
    assert_same(tuple(part[1] for part in after), tuple(part[1] for part in state))


# --- equations written out --------------------------------------------------------------------------------------------


@torch.no_grad()
def test_the_gru_of_2014_resets_the_state_before_the_product() -> None:
    cell = with_random_weights(GRUCell(E, D, reset="before"))
    assert cell.kernel is None
    W_r, W_z, W_n = cell.weights.input.chunk(3)
    U_r, U_z, U_n = cell.weights.hidden.chunk(3)
    b_r, b_z, b_n = cell.weights.bias_input.chunk(3)
    c_r, c_z, c_n = cell.weights.bias_hidden.chunk(3)
    x, h = torch.randn(B, T, E), torch.randn(B, D)
    outputs, (after,) = RecurrentLayer([cell])(x, (h.unsqueeze(1),))
    for row in range(B):
        h_t = h[row]
        for t in range(T):
            x_t = x[row, t]
            r = torch.sigmoid(W_r @ x_t + b_r + U_r @ h_t + c_r)  # (1)
            z = torch.sigmoid(W_z @ x_t + b_z + U_z @ h_t + c_z)  # (2)
            n = torch.tanh(W_n @ x_t + b_n + U_n @ (r * h_t) + c_n)  # (3')
            h_t = z * h_t + (1 - z) * n  # (4)
            assert_same(outputs[row, t], h_t)
        assert_same(after[row, 0], h_t)


@torch.no_grad()
def test_where_the_reset_gate_acts_makes_a_difference() -> None:
    after = with_random_weights(GRUCell(E, D))
    before = GRUCell(E, D, reset="before")
    before.load_state_dict(after.state_dict())
    x, state = after.weights.of_input(torch.randn(B, E)), (torch.randn(B, D),)
    assert not torch.allclose(after(x, state, after.weights.hidden)[0], before(x, state, before.weights.hidden)[0])


def normal(x: Tensor) -> Tensor:
    """Mean zero and variance one over the last axis."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()


@pytest.mark.parametrize("name", [name for name in WITHOUT_KERNEL if name.endswith("normalised")])
@torch.no_grad()
def test_products_inside_the_recurrence_have_mean_zero_and_variance_one(name: str) -> None:
    cell = CELLS[name](E)  # gains are one and biases zero at the start
    nn.init.zeros_(cell.weights.bias_input)
    assert cell.kernel is None
    x, h = 3 * torch.randn(B, E), 5 * torch.randn(B, cell.weights.hidden_dim) + 2
    for product in (cell.weights.of_input(x), cell.weights.of_hidden(h, cell.weights.hidden)):
        assert_same(product.mean(dim=-1), torch.zeros(B))
        assert_same(product.var(dim=-1, unbiased=False), torch.ones(B), atol=1e-3)


@torch.no_grad()
def test_layer_norm_inside_the_lstm_is_that_of_ba_and_others() -> None:
    cell = with_random_weights(LSTMCell(E, D, normalise=True))
    weights, memory_norm = cell.weights, cell.memory_norm
    x, h, c = torch.randn(B, E), torch.randn(B, D), torch.randn(B, D)
    found_h, found_c = cell(weights.of_input(x), (h, c), weights.hidden)
    gates = normal(x @ weights.input.T) * weights.input_norm.weight + weights.bias_input
    gates = gates + normal(h @ weights.hidden.T) * weights.hidden_norm.weight + weights.bias_hidden
    i, f, g, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(normal(c) * memory_norm.weight + memory_norm.bias)
    assert_same((found_h, found_c), (h, c))


@torch.no_grad()
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_layer_norm_inside_the_rnn_is_over_both_products(activation: str) -> None:
    cell = with_random_weights(RNNCell(E, D, activation=activation, normalise=True))
    weights, x, h = cell.weights, torch.randn(B, E), torch.randn(B, D)
    (found,) = cell(weights.of_input(x), (h,), weights.hidden)
    summed = normal(x @ weights.input.T) * weights.input_norm.weight + weights.bias_input
    summed = summed + normal(h @ weights.hidden.T) * weights.hidden_norm.weight + weights.bias_hidden
    assert_same(found, torch.tanh(summed) if activation == "tanh" else summed.clamp(min=0))


@torch.no_grad()
def test_layer_norm_inside_the_gru_is_over_both_products() -> None:
    cell = with_random_weights(GRUCell(E, D, normalise=True))
    weights, x, h = cell.weights, torch.randn(B, E), torch.randn(B, D)
    (found,) = cell(weights.of_input(x), (h,), weights.hidden)
    from_input = normal(x @ weights.input.T) * weights.input_norm.weight + weights.bias_input
    from_hidden = normal(h @ weights.hidden.T) * weights.hidden_norm.weight + weights.bias_hidden
    (r_x, z_x, n_x), (r_h, z_h, n_h) = from_input.chunk(3, dim=-1), from_hidden.chunk(3, dim=-1)
    r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
    assert_same(found, z * h + (1 - z) * torch.tanh(n_x + r * n_h))


@pytest.mark.parametrize("name", ["rnn tanh normalised", "gru normalised", "lstm normalised"])
@torch.no_grad()
def test_layer_norm_inside_bears_large_recurrent_weights(name: str) -> None:
    cell = with_random_weights(CELLS[name](E))
    x, state = torch.randn(B, E), tuple(torch.randn(B, D) for _ in range(cell.num_states))
    x = cell.weights.of_input(x)
    assert_same(cell(x, state, 100 * cell.weights.hidden), cell(x, state, cell.weights.hidden), atol=1e-3)


def by_equation(stack: RecurrentStack, x: Tensor) -> Tensor:
    """The outputs of a stack from those of its layers, as the card of layers/recurrent.py says."""
    streams = [x]  # dense: all that came before
    for layer, norm, gate in zip(stack.layers, stack.norms, stack.gates, strict=True):
        read = torch.cat(streams, dim=-1) if stack.connections == "dense" else x
        if isinstance(norm, nn.LayerNorm):
            read = normal(read) * norm.weight + norm.bias
        y, _ = layer(read, layer.initial_state(B))
        streams.append(y)
        if stack.connections == "plain" or x.shape[-1] != y.shape[-1]:
            x = y  # (1)
        elif stack.connections == "residual":
            x = x + y  # (2)
        elif stack.connections == "highway":
            t = torch.sigmoid(x @ gate.weight.T + gate.bias)
            x = t * y + (1 - t) * x  # (3)
    return torch.cat(streams[1:], dim=-1) if stack.connections == "dense" else x  # (4)


@pytest.mark.parametrize("name", ["gru", "lstm projected"])
@pytest.mark.parametrize("connections", ["plain", "residual", "highway", "dense"])
@pytest.mark.parametrize("input_dim", [E, "as wide as the output"])
@pytest.mark.parametrize("normalise", [False, True], ids=["", "normalised"])
@both_directions
@torch.no_grad()
def test_connections_are_their_equations(
    name: str, connections: str, input_dim: int | str, normalise: bool, bidirectional: bool
) -> None:
    output_dim = (1 + bidirectional) * (P if "projected" in name else D)
    width = input_dim if isinstance(input_dim, int) else output_dim
    stack = random_stack(
        name, 3, input_dim=width, connections=connections, bidirectional=bidirectional, normalise=normalise
    )
    x = torch.randn(B, T, width)
    outputs, _ = stack(x, stack.initial_state(B))
    assert stack.output_dim == (3 * output_dim if connections == "dense" else output_dim)
    assert outputs.shape == (B, T, stack.output_dim)
    assert_same(outputs, by_equation(stack, x))


def test_highway_gates_begin_by_carrying() -> None:
    stack = RecurrentStack(CELLS["lstm"], D, 3, connections="highway")
    assert all((gate.bias == -1).all() for gate in stack.gates)
    narrower = RecurrentStack(CELLS["lstm"], E, 3, connections="highway")
    assert [isinstance(gate, nn.Linear) for gate in narrower.gates] == [False, True, True]


# --- dropout ----------------------------------------------------------------------------------------------------------


def test_dropout_of_a_stack_acts_between_layers_only() -> None:
    x = torch.randn(B, T, E)
    single = random_stack("lstm", 1, dropout=0.9)
    assert torch.equal(single.train()(x, single.initial_state(B))[0], single.eval()(x, single.initial_state(B))[0])
    stack = random_stack("lstm", 2, dropout=0.5, is_variational=True)
    torch.manual_seed(3)
    outputs, _ = stack(x, stack.initial_state(B))
    first, second = stack.layers
    y, _ = first(x, first.initial_state(B))
    torch.manual_seed(3)
    mask = dropped_out(torch.ones(B, 1, D), 0.5)
    expected, _ = second(y * mask, second.initial_state(B))
    assert_same(outputs, expected)


@each_cell
@both_directions
@padded_or_not
def test_dropped_weights_are_the_same_at_all_steps_of_a_call(
    name: str, bidirectional: bool, lengths: Tensor | None
) -> None:
    cells = [CELLS[name](E) for _ in range(1 + bidirectional)]
    layer = with_random_weights(RecurrentLayer(cells, weight_dropout=0.5))
    x, state, real = torch.randn(B, T, E), random_state(layer), is_real(lengths)
    torch.manual_seed(3)
    outputs, after = layer(x, state, lengths)
    torch.manual_seed(3)
    kept = [dropped_out(cell.weights.hidden, 0.5) for cell in cells]  # one mask per direction
    assert all((0.1 < (u == 0).float().mean() < 0.9) for u in kept)
    plain, plain_after = layer.forward_by_steps(x, state, lengths, kept)
    assert_same(outputs[real], plain[real])
    assert_same(after, plain_after)


@each_cell
def test_dropped_weights_change_with_each_call_and_none_are_dropped_after_training(name: str) -> None:
    stack = random_stack(name, weight_dropout=0.5)
    untouched = random_stack(name)
    untouched.load_state_dict(stack.state_dict())
    x, state = torch.randn(B, T, E), random_state(stack)
    assert not torch.allclose(stack(x, state)[0], stack(x, state)[0])
    assert torch.equal(stack.eval()(x, state)[0], untouched(x, state)[0])


def test_a_dropped_weight_gets_no_gradient_and_is_not_changed() -> None:
    layer = with_random_weights(RecurrentLayer([RNNCell(E, D)], weight_dropout=0.5))
    hidden = layer.cells[0].weights.hidden
    before, x, state = hidden.detach().clone(), torch.randn(B, T, E), random_state(layer)
    torch.manual_seed(3)
    layer(x, state)[0].sum().backward()
    torch.manual_seed(3)
    is_dropped = dropped_out(torch.ones(D, D), 0.5) == 0
    assert torch.equal(hidden.grad == 0, is_dropped)
    assert torch.equal(hidden, before)


# --- the start, shapes, gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.9])
def test_recurrent_weights_begin_as_a_multiple_of_the_identity(scale: float) -> None:
    cell = RNNCell(100, 50, activation="relu", identity=scale)
    assert torch.equal(cell.weights.hidden, scale * torch.eye(50))
    assert cell.weights.input.std().item() == pytest.approx(0.01, rel=0.1)
    assert not torch.equal(RNNCell(100, 50, activation="relu").weights.hidden, torch.eye(50))


@torch.no_grad()
def test_an_identity_keeps_a_positive_state_for_as_long_as_nothing_comes_in() -> None:
    layer = RecurrentLayer([RNNCell(E, D, activation="relu", identity=1.0)])
    h = torch.rand(B, 1, D)
    _, (after,) = layer(torch.zeros(B, 200, E), (h,))
    assert torch.equal(after, h)


@pytest.mark.parametrize("forget_bias", [0.0, 1.0, 1.5])
@pytest.mark.parametrize("options", [{}, {"projection_dim": P}, {"normalise": True}], ids=str)
def test_the_forget_gate_begins_as_open_as_asked(forget_bias: float, options: dict[str, object]) -> None:
    weights = LSTMCell(E, D, forget_bias=forget_bias, **options).weights
    i, f, g, o = (weights.bias_input + weights.bias_hidden).chunk(4)
    assert (f == forget_bias).all()
    assert all((gate == 0).all() for gate in (i, g, o))


@both_directions
def test_a_projection_narrows_what_is_shown_beside_a_wide_memory(bidirectional: bool) -> None:
    stack = random_stack("lstm projected", 2, bidirectional=bidirectional)
    directions = 1 + bidirectional
    h, c = stack.initial_state(B)
    assert (h.shape, c.shape) == ((B, 2 * directions, P), (B, 2 * directions, D))
    outputs, (h, c) = stack(torch.randn(B, T, E), (h, c))
    assert (h.shape, c.shape) == ((B, 2 * directions, P), (B, 2 * directions, D))
    assert outputs.shape == (B, T, stack.output_dim) == (B, T, directions * P)
    assert stack.layers[0].cells[0].weights.hidden.shape == (4 * D, P)
    assert stack.layers[1].cells[0].weights.input.shape == (4 * D, directions * P)


@each_cell
@both_directions
def test_a_fresh_state_is_zeros_batch_first(name: str, bidirectional: bool) -> None:
    stack = random_stack(name, 3, bidirectional=bidirectional)
    state = stack.initial_state(B)
    assert len(state) == (2 if "lstm" in name else 1)
    assert all((part == 0).all() and part.shape[:2] == (B, 3 * (1 + bidirectional)) for part in state)
    assert [part.shape for part in stack(torch.randn(B, T, E), state)[1]] == [part.shape for part in state]


@each_cell
def test_weights_say_how_many_matrices_are_stacked_in_them(name: str) -> None:
    weights = CELLS[name](E).weights
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[name.split()[0]]
    assert weights.stacked == {"input": gates, "hidden": gates}
    assert weights.input.shape == (gates * D, E)


@each_cell
@pytest.mark.parametrize("connections", ["plain", "residual", "highway", "dense"])
def test_a_gradient_reaches_every_parameter(name: str, connections: str) -> None:
    stack = random_stack(
        name, 2, connections=connections, bidirectional=True, normalise=True, dropout=0.1, weight_dropout=0.1
    )
    outputs, _ = stack(torch.randn(B, T, E), random_state(stack), LENGTHS)
    (outputs[is_real(LENGTHS)] * torch.randn(int(LENGTHS.sum()), stack.output_dim)).sum().backward()
    for parameter_name, parameter in stack.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert parameter.grad.abs().max() > 0, parameter_name


# --- what is shown ----------------------------------------------------------------------------------------------------


@each_kernel
@both_directions
def test_all_steps_at_once_show_what_single_steps_show(name: str, bidirectional: bool) -> None:
    """Where gradients are wanted the cells step; otherwise a kernel runs, and what it did is worked out behind it."""
    stack = random_stack(name, 2, bidirectional=bidirectional)
    x, state = torch.randn(B, T, E), random_state(stack)
    with torch.enable_grad(), record(stack) as stepped:
        outputs, _ = stack(x, state)
    with torch.no_grad(), record(stack) as at_once:
        assert_same(stack(x, state)[0], outputs.detach())
    assert set(stepped) == set(at_once)
    for key in stepped:
        assert_same(at_once[key], stepped[key].detach())
