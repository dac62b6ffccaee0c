"""Toys with exact answers: what they ask for is known, so what a model lacks can be seen.

Texts, for language models; the fewest bits per character that any model can reach are known:

    markov          a chain of order 2 over 8 letters
    hidden-markov   a hidden chain of 6 states that speak 8 letters
    copy:N          8 letters, N dots, then the same 8 letters: memory over N steps

Sequences with an answer:

    adding:N        N pairs (a number, a mark); the answer is the sum of the two marked numbers  (Hochreiter 1997)
    parity:N        N bits; whether the number of ones is even or odd
    digits-rows, digits-pixels                  scikit-learn's 8x8 digits, a row or a pixel a step
    mnist-rows, mnist-pixels, mnist-pixels-14   28x28 digits where the set is at hand; the last one shrunk to 14x14
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import DataError, did_you_mean
from .builtin import EXAMPLE_SETS, with_length
from .examples import ExampleData, ExampleStore
from .files import read_bytes
from .paths import data_folders

LETTERS = "abcdefgh"
TEXT_LENGTH = 400_000
COPY_LINES, COPIED = 20_000, 8
EXAMPLES = {"train": 50_000, "valid": 1_000, "test": 2_000}


# -- texts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """A hidden Markov chain: p(first state), p(next state | state), p(letter | state)."""

    initial: np.ndarray  # (Z,)
    transition: np.ndarray  # (Z, Z)
    emission: np.ndarray  # (Z, V)

    def sample(self, length: int, seed: int) -> np.ndarray:
        """Letters (length,)."""
        random = np.random.default_rng(seed)
        cumulative, speaks = self.transition.cumsum(axis=1), self.emission.cumsum(axis=1)
        chance, letters = random.random((length, 2)), np.empty(length, dtype=np.int64)
        state = int(np.searchsorted(self.initial.cumsum(), random.random()))
        for t in range(length):
            letters[t] = min(np.searchsorted(speaks[state], chance[t, 0]), self.emission.shape[1] - 1)
            state = min(int(np.searchsorted(cumulative[state], chance[t, 1])), len(cumulative) - 1)
        return letters

    def nats_per_letter(self, letters: np.ndarray) -> float:
        """What the truth itself needs for a text, by the forward recursion: no model can expect to do better."""
        belief, total = self.initial.copy(), 0.0
        for letter in letters:
            joint = belief * self.emission[:, letter]
            total -= math.log(joint.sum())
            belief = joint / joint.sum() @ self.transition
        return total / len(letters)


def markov_chain() -> Chain:
    """Order 2 over letters, as a chain whose states are pairs of letters, each speaking its second."""
    V = len(LETTERS)
    table = np.random.default_rng(2).dirichlet(np.full(V, 0.4), size=(V, V))  # p(c | a, b)
    transition, emission = np.zeros((V * V, V * V)), np.zeros((V * V, V))
    for a in range(V):
        for b in range(V):
            transition[a * V + b, b * V : (b + 1) * V] = table[a, b]
            emission[a * V + b, b] = 1.0
    return Chain(np.full(V * V, 1 / V**2), transition, emission)


def hidden_chain() -> Chain:
    random = np.random.default_rng(7)
    Z, V = 6, len(LETTERS)
    transition = 0.15 * random.dirichlet(np.full(Z, 0.5), size=Z) + 0.85 * np.roll(np.eye(Z), 1, axis=1)
    return Chain(np.full(Z, 1 / Z), transition, random.dirichlet(np.full(V, 0.25), size=Z))


CHAINS: dict[str, Callable[[], Chain]] = {"markov": markov_chain, "hidden-markov": hidden_chain}


def chain_text(name: str) -> str:
    return "".join(np.array(list(LETTERS))[CHAINS[name]().sample(TEXT_LENGTH, seed=1)])


def copy_text(length: int) -> str:
    random = np.random.default_rng(length)
    words = random.choice(list(LETTERS), size=(COPY_LINES, COPIED))
    return "".join(f"{''.join(word)}{'.' * length}{''.join(word)}\n" for word in words)


def copy_floor(length: int) -> float:
    """Bits per character of the copy text: only the first eight letters of each line carry news."""
    return COPIED * math.log2(len(LETTERS)) / (2 * COPIED + length + 1)


# -- sequences with an answer --------------------------------------------------------------------------------------


def adding(length: int) -> ExampleData:
    """Two columns: numbers from [0, 1), and a mark on one step of each half."""
    if length < 2:
        raise DataError(f"adding:{length} needs at least 2 steps.")
    parts = {}
    for seed, (part, num) in enumerate(EXAMPLES.items()):
        random = np.random.default_rng((length, seed))
        numbers, marks = random.random((num, length), dtype=np.float32), np.zeros((num, length), dtype=np.float32)
        first = random.integers(length // 2, size=num)
        second = random.integers(length // 2, length, size=num)
        rows = np.arange(num)
        marks[rows, first] = marks[rows, second] = 1
        parts[part] = ExampleStore(np.stack([numbers, marks], axis=-1), numbers[rows, first] + numbers[rows, second])
    return ExampleData(f"adding:{length}", parts, labels=[])


def parity(length: int) -> ExampleData:
    if length < 1:
        raise DataError(f"parity:{length} needs at least 1 step.")
    parts = {}
    for seed, (part, num) in enumerate(EXAMPLES.items()):
        bits = np.random.default_rng((length, seed)).integers(2, size=(num, length))
        parts[part] = ExampleStore(bits, bits.sum(axis=1) % 2)
    return ExampleData(f"parity:{length}", parts, labels=["even", "odd"], vocab_size=2)


def digits(name: str) -> ExampleData:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError(
            f"{name}: scikit-learn carries these digits; install it with: pip install scikit-learn"
        ) from None
    found = load_digits()
    images, answers = (found.images / 16).astype(np.float32), found.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(images))
    edges = {"train": (0, 1297), "valid": (1297, 1497), "test": (1497, 1797)}
    parts = {part: _image_store(images[order[a:b]], answers[order[a:b]], name) for part, (a, b) in edges.items()}
    return ExampleData(name, parts, labels=[str(d) for d in range(10)])


def mnist(name: str) -> ExampleData:
    """The last 5,000 training images validate; the official test set tests."""
    images, answers = _read_idx("train-images-idx3-ubyte", name), _read_idx("train-labels-idx1-ubyte", name)
    pieces = {"train": (images[:-5000], answers[:-5000]), "valid": (images[-5000:], answers[-5000:])}
    pieces["test"] = (_read_idx("t10k-images-idx3-ubyte", name), _read_idx("t10k-labels-idx1-ubyte", name))
    parts = {}
    for part, (some, wanted) in pieces.items():
        scaled = some.astype(np.float32) / 255
        if name.endswith("-14"):
            scaled = scaled.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))  # the mean of each 2x2 square
        parts[part] = _image_store(scaled, wanted.astype(np.int64), name)
    return ExampleData(name, parts, labels=[str(d) for d in range(10)])


def _image_store(images: np.ndarray, answers: np.ndarray, name: str) -> ExampleStore:
    """Images (N, H, W) read a row or a pixel a step."""
    steps = images if "rows" in name else images.reshape(len(images), -1, 1)
    return ExampleStore(np.ascontiguousarray(steps), answers)


def _read_idx(name: str, wanted: str) -> np.ndarray:
    candidates = [folder / "mnist" / (name + packed) for folder in data_folders() for packed in ("", ".gz")]
    path = next((p for p in candidates if p.exists()), None)
    if path is None:
        raise DataError(
            f"{wanted}: MNIST is not on this machine. Put its four idx files into a folder mnist below SEQWISE_DATA."
        )
    return parse_idx(path)


def parse_idx(path: Path) -> np.ndarray:
    """The idx format: magic (0, 0, 8 = bytes, number of axes), the length of each axis, then the bytes."""
    data = b"".join(read_bytes(path))
    num_axes = data[3] if len(data) > 3 else 0
    start = 4 + 4 * num_axes
    if data[:3] != b"\x00\x00\x08" or len(data) < start:
        raise DataError(f"{path}: not an idx file of bytes. Get it again.")
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(num_axes)]
    if len(data) != start + math.prod(shape):
        raise DataError(f"{path}: cut short: {len(data) - start:,} bytes, expected {math.prod(shape):,}. Get it again.")
    return np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape)


def open_examples(name: str) -> ExampleData:
    kind, length = with_length(name)
    if kind == "adding":
        return adding(200 if length is None else length)
    if kind == "parity":
        return parity(32 if length is None else length)
    if name in EXAMPLE_SETS:
        return (digits if name.startswith("digits") else mnist)(name)
    raise DataError(f'unknown set of examples "{name}". {did_you_mean(name, EXAMPLE_SETS)}')
