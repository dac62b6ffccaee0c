"""Toys: their answers by hand, their chains by enumeration, and the examples in batches."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from seqwise.data import toys
from seqwise.data.builtin import EXAMPLE_SETS, builtin_file, is_example_set, with_length
from seqwise.data.examples import ExampleData, Examples, ExampleStore
from seqwise.data.toys import (
    COPIED,
    LETTERS,
    Chain,
    chain_text,
    copy_floor,
    copy_text,
    hidden_chain,
    markov_chain,
    open_examples,
    parse_idx,
)
from seqwise.errors import DataError

SIZES = {"train": 300, "valid": 40, "test": 60}


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Toys of a size that suits a test, in a cache where no other test finds them."""
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    for part, size in SIZES.items():
        monkeypatch.setitem(toys.EXAMPLES, part, size)
    monkeypatch.setattr(toys, "TEXT_LENGTH", 40_000)
    monkeypatch.setattr(toys, "COPY_LINES", 2_000)


# -- chains ----------------------------------------------------------------------------------------------------------


def stationary(chain: Chain) -> np.ndarray:
    """How often each state is visited in the long run, (Z,)."""
    visits = chain.initial
    for _ in range(2000):
        visits = visits @ chain.transition
    return visits


def letters_of(text: str) -> np.ndarray:
    return np.array([LETTERS.index(letter) for letter in text])


@pytest.mark.parametrize("make", [markov_chain, hidden_chain])
def test_the_tables_of_a_chain_are_probabilities(make: Callable[[], Chain]) -> None:
    chain = make()
    for probabilities in (chain.initial, chain.transition, chain.emission):
        assert (probabilities >= 0).all()
        assert probabilities.sum(axis=-1) == pytest.approx(np.ones(probabilities.shape[:-1]))


@pytest.mark.parametrize("name", ["markov", "hidden-markov"])
def test_pairs_of_letters_are_as_frequent_as_the_chain_says(name: str) -> None:
    chain, letters = toys.CHAINS[name](), letters_of(chain_text(name))
    here = stationary(chain)[:, None] * chain.emission  # (Z, V)
    expected = here.T @ chain.transition @ chain.emission  # (V, V): p(x_t, x_{t+1})
    found = np.zeros_like(expected)
    np.add.at(found, (letters[:-1], letters[1:]), 1 / (len(letters) - 1))
    assert np.abs(found - expected).max() < 0.01


def test_the_markov_text_goes_on_by_its_last_two_letters() -> None:
    chain, letters = markov_chain(), letters_of(chain_text("markov"))
    V = len(LETTERS)
    counts = np.zeros((V, V, V))
    np.add.at(counts, (letters[:-2], letters[1:-1], letters[2:]), 1)
    table = np.array([chain.transition[i, (i % V) * V : (i % V + 1) * V] for i in range(V * V)]).reshape(V, V, V)
    seen = counts.sum(axis=2, keepdims=True)
    deviations = (counts - seen * table) / np.sqrt(np.maximum(seen * table * (1 - table), 1e-9))
    assert np.abs(deviations[seen * table > 20]).max() < 5
    assert (counts[table < 1e-9] == 0).all()


@pytest.mark.parametrize("name", ["markov", "hidden-markov"])
def test_a_chain_text_is_always_the_same(name: str) -> None:
    text = chain_text(name)
    assert chain_text(name) == text
    assert set(text) == set(LETTERS)
    assert len(text) == 40_000


def tiny_chain(num_states: int = 2, num_letters: int = 3) -> Chain:
    random = np.random.default_rng(4)
    one, many = np.ones(num_states), np.ones(num_letters)
    return Chain(random.dirichlet(one), random.dirichlet(one, num_states), random.dirichlet(many, num_states))


@pytest.mark.parametrize("length", [1, 2, 6])
def test_what_the_truth_needs_is_the_sum_over_all_hidden_paths(length: int) -> None:
    chain = tiny_chain()
    letters = np.random.default_rng(length).integers(3, size=length)
    probability = 0.0
    for path in product(range(2), repeat=length):
        joint = chain.initial[path[0]]
        for t, state in enumerate(path):
            joint *= chain.emission[state, letters[t]] * (chain.transition[path[t - 1], state] if t else 1)
        probability += joint
    assert chain.nats_per_letter(letters) == pytest.approx(-math.log(probability) / length)


def test_the_truth_needs_the_entropy_of_its_chain_and_any_other_more() -> None:
    chain = markov_chain()
    letters = chain.sample(20_000, seed=3)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(chain.transition > 0, np.log(chain.transition), 0.0)
    entropy = -float(stationary(chain) @ (chain.transition * logs).sum(axis=1))
    assert chain.nats_per_letter(letters) == pytest.approx(entropy, abs=0.02)
    flat = Chain(np.ones(1), np.ones((1, 1)), np.full((1, len(LETTERS)), 1 / len(LETTERS)))
    assert flat.nats_per_letter(letters) == pytest.approx(math.log(len(LETTERS)))
    assert chain.nats_per_letter(letters) < hidden_chain().nats_per_letter(letters)


# -- copy ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 20])
def test_each_line_of_the_copy_text_ends_as_it_began(length: int) -> None:
    lines = copy_text(length).splitlines()
    assert len(lines) == 2_000
    for line in lines:
        word = line[:COPIED]
        assert set(word) <= set(LETTERS)
        assert line == word + "." * length + word


@pytest.mark.parametrize("length", [0, 20])
def test_the_floor_of_the_copy_text_is_what_its_letters_carry(length: int) -> None:
    """The first eight letters are even and independent: three bits each; all the rest of a line is certain."""
    text = copy_text(length)
    first = [line[:COPIED] for line in text.splitlines()]
    shares = np.array([sum(word.count(letter) for word in first) for letter in LETTERS]) / (COPIED * len(first))
    assert np.abs(shares - 1 / 8).max() < 0.01
    assert copy_floor(length) == pytest.approx(3 * COPIED * len(first) / len(text))


def test_a_copy_text_is_named_by_its_length() -> None:
    assert builtin_file("copy:3").read_text().splitlines()[0][COPIED:-COPIED] == "..."
    assert builtin_file("copy").read_text() == builtin_file("copy:20").read_text()
    assert builtin_file("copy:0").read_text().splitlines()[0][COPIED:-COPIED] == ""


# -- examples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 3, 10, 51])
def test_adding_asks_for_the_sum_of_the_two_marked_numbers(length: int) -> None:
    data = open_examples(f"adding:{length}")
    assert (data.name, data.labels, data.vocab_size, data.num_columns) == (f"adding:{length}", [], 0, 2)
    for part, store in data.parts.items():
        numbers, marks = store.inputs[..., 0], store.inputs[..., 1]
        assert store.inputs.shape == (SIZES[part], length, 2)
        assert ((numbers >= 0) & (numbers < 1)).all()
        assert set(np.unique(marks)) <= {0, 1}
        assert (marks[:, : length // 2].sum(axis=1) == 1).all()
        assert (marks[:, length // 2 :].sum(axis=1) == 1).all()
        assert store.answers == pytest.approx((numbers * marks).sum(axis=1), abs=1e-6)


def test_marks_of_the_adding_problem_stand_anywhere_in_their_half() -> None:
    marks = open_examples("adding:10").parts["train"].inputs[..., 1]
    assert (marks.sum(axis=0) > 30).all()  # 60 expected


@pytest.mark.parametrize("length", [1, 8, 33])
def test_parity_asks_whether_the_ones_are_even_or_odd(length: int) -> None:
    data = open_examples(f"parity:{length}")
    assert (data.labels, data.vocab_size, data.num_columns) == (["even", "odd"], 2, 0)
    for part, store in data.parts.items():
        assert store.inputs.shape == (SIZES[part], length)
        for bits, answer in zip(store.inputs.tolist(), store.answers, strict=True):
            assert set(bits) <= {0, 1}
            assert data.labels[answer] == ("odd" if bits.count(1) % 2 else "even")


@pytest.mark.parametrize("name", ["adding:10", "parity:20"])
def test_examples_are_the_same_each_time_and_differ_between_parts(name: str) -> None:
    one, other = open_examples(name), open_examples(name)
    assert one.fingerprint == other.fingerprint
    rows = [row.tobytes() for store in one.parts.values() for row in store.inputs]
    assert len(set(rows)) == sum(SIZES.values())


def test_digits_are_read_a_row_or_a_pixel_a_step() -> None:
    rows, pixels = open_examples("digits-rows"), open_examples("digits-pixels")
    assert rows.labels == pixels.labels == [str(digit) for digit in range(10)]
    assert sum(len(store) for store in rows.parts.values()) == 1797
    for part, store in rows.parts.items():
        assert store.inputs.shape[1:] == (8, 8)
        assert (store.inputs.min(), store.inputs.max()) == (0, 1)
        assert set(store.answers) == set(range(10))
        assert (pixels.parts[part].inputs == store.inputs.reshape(len(store), 64, 1)).all()
        assert (pixels.parts[part].answers == store.answers).all()
    images = [image.tobytes() for store in rows.parts.values() for image in store.inputs]
    assert len(set(images)) == 1797  # no image in two parts
    assert rows.fingerprint == open_examples("digits-rows").fingerprint
    assert rows.num_columns == 8
    assert "sequences of 8 steps of 8 numbers, each with one of 10 labels as its answer" in rows.description


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("adding:10", "adding:10: sequences of 10 steps of 2 numbers, each with a number as its answer (train 300, "),
        ("parity:10", "parity:10: sequences of 10 tokens, each with one of 2 labels as its answer (train 300, "),
    ],
)
def test_the_description_says_what_is_asked(name: str, words: str) -> None:
    assert open_examples(name).description.startswith(words)


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("adding:50", ("adding", 50)),
        ("adding", ("adding", None)),
        ("copy:0", ("copy", 0)),
        ("parity:07", ("parity", 7)),
    ],
)
def test_a_number_behind_the_colon_is_a_length(name: str, found: tuple[str, int | None]) -> None:
    assert with_length(name) == found


@pytest.mark.parametrize("name", ["adding:x", "adding:", "parity:-3", "parity:1.5", "adding:5:5", "adding: 5"])
def test_anything_else_behind_the_colon_is_told(name: str) -> None:
    kind = name.partition(":")[0]
    with pytest.raises(DataError) as caught:
        open_examples(name)
    assert str(caught.value) == f'"{name}": expected a whole number behind the colon, such as {kind}:100.'


def test_a_raised_two_is_no_whole_number() -> None:
    with pytest.raises(DataError, match="expected a whole number behind the colon"):
        open_examples("adding:²")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("adding:1", "adding:1 needs at least 2 steps."),
        ("digits-row", 'unknown set of examples "digits-row". Did you mean "digits-rows"?'),
        ("digits-rows:3", 'unknown set of examples "digits-rows:3". Did you mean "digits-rows"?'),
        ("mnist-rows", "mnist-rows: MNIST is not on this machine. Put its four idx files into a folder mnist below"),
    ],
)
def test_a_set_that_cannot_be_had_is_told(name: str, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        open_examples(name)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("name", ["adding:0", "parity:0"])
def test_a_length_of_zero_is_told(name: str) -> None:
    with pytest.raises(DataError, match="needs at least"):
        open_examples(name)


def test_lengths_that_are_not_said_are_those_of_the_list() -> None:
    assert open_examples("adding").name == "adding:200"
    assert open_examples("parity").name == "parity:32"
    assert {"adding:200", "parity:32"} <= set(EXAMPLE_SETS)


@pytest.mark.parametrize("name", [*EXAMPLE_SETS, "adding", "adding:7", "parity:x"])
def test_sets_of_examples_are_known_by_their_names(name: str) -> None:
    assert is_example_set(name)


@pytest.mark.parametrize("name", ["markov", "copy:20", "python-reference", "x.csv", "adding.txt", ""])
def test_other_names_are_no_sets_of_examples(name: str) -> None:
    assert not is_example_set(name)


# -- the idx format --------------------------------------------------------------------------------------------------


def idx(values: np.ndarray) -> bytes:
    axes = b"".join(length.to_bytes(4, "big") for length in values.shape)
    return bytes([0, 0, 8, values.ndim]) + axes + values.astype(np.uint8).tobytes()


@pytest.mark.parametrize("shape", [(5,), (3, 4, 2), (0,)])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_idx_file_gives_its_numbers(tmp_path: Path, shape: tuple[int, ...], suffix: str) -> None:
    values = np.random.default_rng(0).integers(256, size=shape)
    path = tmp_path / f"images-idx-ubyte{suffix}"
    path.write_bytes(gzip.compress(idx(values)) if suffix else idx(values))
    found = parse_idx(path)
    assert found.shape == shape
    assert found.tolist() == values.tolist()


WHOLE = idx(np.arange(24).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not an idx file of bytes. Get it again."),
        (b"\x00\x00", "not an idx file of bytes."),
        (b"\x89PNG" + WHOLE[4:], "not an idx file of bytes."),
        (b"\x00\x00\x0d\x03" + WHOLE[4:], "not an idx file of bytes."),  # of floats
        (WHOLE[:9], "not an idx file of bytes."),
        (WHOLE[:-1], "cut short: 23 bytes, expected 24. Get it again."),
        (WHOLE[:16], "cut short: 0 bytes, expected 24."),
        (WHOLE + b"\x00", "25 bytes, expected 24."),
    ],
    ids=["empty", "two bytes", "png", "floats", "axes cut", "one byte short", "no data", "one byte more"],
)
def test_a_damaged_idx_file_is_named(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        parse_idx(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("content", [gzip.compress(WHOLE)[:-12], WHOLE], ids=["cut short", "no archive"])
def test_a_damaged_archive_of_an_idx_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"images-idx3-ubyte\.gz"):
        parse_idx(path)


def test_mnist_is_read_from_its_four_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random, folder = np.random.default_rng(0), tmp_path / "mnist"
    folder.mkdir()
    for prefix, num in (("train", 5_003), ("t10k", 4)):
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(idx(random.integers(256, size=(num, 28, 28))))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(np.arange(num) % 10))
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path))
    rows, pixels, small = (open_examples(f"mnist-{how}") for how in ("rows", "pixels", "pixels-14"))
    shapes = {"train": 3, "valid": 5_000, "test": 4}
    assert {part: store.inputs.shape for part, store in rows.parts.items()} == {
        p: (n, 28, 28) for p, n in shapes.items()
    }
    assert rows.parts["valid"].answers[:3].tolist() == [3, 4, 5]
    image = rows.parts["test"].inputs[1]
    assert (image.min(), image.max()) == (0, 1)
    assert pixels.parts["test"].inputs[1, :, 0].tolist() == image.flatten().tolist()
    squares = [image[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for i in range(14) for j in range(14)]
    assert small.parts["test"].inputs[1, :, 0] == pytest.approx(squares, abs=1e-6)


# -- batches ---------------------------------------------------------------------------------------------------------


def numbered(num: int) -> ExampleStore:
    """Examples that can be told apart by their answers."""
    return ExampleStore(np.arange(3 * num).reshape(num, 3), np.arange(num))


def answers(source: Examples, steps: range) -> list[int]:
    return [answer for step in steps for answer in source.batch(step).targets["label"].ids.tolist()]


@pytest.mark.parametrize(("num", "batch_size"), [(12, 4), (12, 1), (12, 12), (12, 100), (1, 5)])
def test_an_epoch_has_every_example_once(num: int, batch_size: int) -> None:
    source = Examples(numbered(num), batch_size=batch_size, seed=3)
    for epoch in range(3):
        steps = range(epoch * source.steps_per_epoch, (epoch + 1) * source.steps_per_epoch)
        assert sorted(answers(source, steps)) == list(range(num))


def test_examples_that_fill_no_batch_wait_for_another_epoch() -> None:
    source = Examples(numbered(11), batch_size=4)
    assert source.steps_per_epoch == 2
    epochs = [answers(source, range(2 * epoch, 2 * epoch + 2)) for epoch in range(10)]
    assert all(len(set(epoch)) == 8 for epoch in epochs)
    assert {answer for epoch in epochs for answer in epoch} == set(range(11))


def test_each_epoch_has_an_order_of_its_own() -> None:
    source = Examples(numbered(12), batch_size=4)
    orders = [tuple(answers(source, range(3 * epoch, 3 * epoch + 3))) for epoch in range(4)]
    assert len(set(orders)) == 4


def test_the_batch_of_a_step_is_the_same_whenever_it_is_asked_for() -> None:
    source = Examples(numbered(12), batch_size=4, seed=5)
    in_order = {step: answers(source, range(step, step + 1)) for step in range(9)}
    for step in (7, 0, 8, 2, 2):
        assert answers(Examples(numbered(12), batch_size=4, seed=5), range(step, step + 1)) == in_order[step]
        assert answers(source, range(step, step + 1)) == in_order[step]
    other = Examples(numbered(12), batch_size=4, seed=6)
    assert answers(other, range(9)) != [answer for step in range(9) for answer in in_order[step]]


def test_a_batch_keeps_inputs_beside_their_answers() -> None:
    batch = Examples(numbered(12), batch_size=5).batch(0)
    assert batch.inputs["tokens"].ids.dtype == batch.targets["label"].ids.dtype == torch.long
    assert (batch.inputs["tokens"].ids[:, 0] == 3 * batch.targets["label"].ids).all()
    assert batch.counts() == {"label": 5}


def test_numbers_as_inputs_and_as_answers_are_values() -> None:
    data: ExampleData = open_examples("adding:6")
    batch = data.parts["valid"].batch(slice(2, 7))
    assert batch.inputs["values"].values.shape == (5, 6, 2)
    assert batch.targets["number"].values.shape == (5, 1, 1)
    assert batch.inputs["values"].values.dtype == batch.targets["number"].values.dtype == torch.float32
    assert batch.targets["number"].values.flatten().tolist() == pytest.approx(data.parts["valid"].answers[2:7].tolist())
    assert batch.counts() == {"number": 5}
