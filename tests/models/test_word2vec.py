"""word2vec: what is planted in a text is found, probabilities are the text's, and one worker repeats to the bit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqwise.data.batch import Batch, Tokens, next_token_batch
from seqwise.data.schema import text_schema
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.models import word2vec
from seqwise.models.word2vec import Word2Vec, Word2VecConfig, block_edges, steps_per_epoch
from seqwise.text.words import WordTokenizer

NUM_TOPICS, WORDS_OF_TOPIC = 4, 6
TOPICS = [[f"{name}{k}" for k in range(WORDS_OF_TOPIC)] for name in "abcd"]
ALL_KINDS = pytest.mark.parametrize(
    "kind", [{"method": m, "hierarchical": h} for m in ("skip_gram", "cbow") for h in (False, True)], ids=str
)


def lines_on_topics(num: int = 1500, seed: int = 0) -> list[list[str]]:
    """Each line is on one topic, and words of different topics never meet."""
    random = np.random.default_rng(seed)
    return [list(random.choice(TOPICS[random.integers(NUM_TOPICS)], size=8)) for _ in range(num)]


def model_of(lines: list[list[str]], *, tokenizer_min_count: int = 1, **settings: Any) -> tuple[Word2Vec, np.ndarray]:
    """A model without vectors, and the text as ids, with the boundary first as in a token store."""
    text = "".join(" ".join(line) + "\n" for line in lines)
    tokenizer = WordTokenizer.train([text], min_count=tokenizer_min_count)
    config = Word2VecConfig(**{"embed_dim": 16, "subsample": 0.0, "min_count": 1, **settings})
    return Word2Vec(config, text_schema(tokenizer)), np.append(tokenizer.boundary, tokenizer.encode(text))


def fitted(lines: list[list[str]], *, steps: int = 5, **settings: Any) -> Word2Vec:
    model, ids = model_of(lines, **settings)
    for part in model.fit(ids, steps=steps):
        assert np.isfinite(part.loss)
    return model


@ALL_KINDS
def test_words_of_a_topic_are_neighbours(kind: dict[str, Any]) -> None:
    words = fitted(lines_on_topics(), steps=20, **kind).words
    for topic in TOPICS:
        for word in topic:
            nearest = {name for name, _ in words.neighbours(word, WORDS_OF_TOPIC - 1)}
            assert nearest == set(topic) - {word}


@ALL_KINDS
def test_one_worker_repeats_to_the_bit_and_another_seed_does_not(kind: dict[str, Any]) -> None:
    model, ids = model_of(lines_on_topics(200), **kind)
    found = []
    for seed in (3, 3, 4):
        losses = [part.loss for part in model.fit(ids, steps=3, seed=seed)]
        found.append((losses, model.vectors.copy(), model.outputs.copy()))
    first, second, other = found
    assert first[0] == second[0] != other[0]
    assert np.array_equal(first[1], second[1])
    assert np.array_equal(first[2], second[2])
    assert not np.array_equal(first[1], other[1])


def test_learning_goes_on_from_any_step_as_if_it_had_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "STEP_TOKENS", 2_000)
    model, ids = model_of(lines_on_topics(1000))
    assert steps_per_epoch(len(ids)) == 5
    whole = list(model.fit(ids, steps=13))
    wanted = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for part in model.fit(ids, steps=13):
        if part.step == 6:
            saved = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            break
    resumed, _ = model_of(lines_on_topics(1000))
    resumed.load_state_dict(saved)
    rest = list(resumed.fit(ids, steps=13, begin=6))
    assert [(part.step, part.tokens, part.loss, part.rate) for part in rest] == [
        (part.step, part.tokens, part.loss, part.rate) for part in whole[6:]
    ]
    assert all(torch.equal(resumed.state_dict()[name], wanted[name]) for name in wanted)


def test_the_rate_falls_in_a_line_to_its_end() -> None:
    model, ids = model_of(lines_on_topics(50))
    rates = [part.rate for part in model.fit(ids, steps=4, learning_rate=0.1, final_rate=0.2)]
    np.testing.assert_allclose(rates, [0.08, 0.06, 0.04, 0.02])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_in_an_epoch_every_token_is_read_once_by_one_worker(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "STEP_TOKENS", 3_000)
    monkeypatch.setattr(word2vec, "BLOCK_TOKENS", 100)
    monkeypatch.setattr(word2vec, "BLOCKS_AT_ONCE", 4)
    read: list[tuple[str, ...]] = []

    def spy(text: np.ndarray, boundary: int, *_: object) -> tuple[float, int]:
        assert text[-1] == boundary
        assert len(text) <= 4 * (100 + 9 + 1)
        ends = np.flatnonzero(text == boundary)
        read.extend(tuple(line.tolist()) for line in np.split(text, ends + 1))
        return 1.0, 1

    model, ids = model_of(lines_on_topics(1000))
    monkeypatch.setattr(word2vec, "learn_text", spy)
    orders = []
    for _ in range(2):
        read.clear()
        parts = list(model.fit(ids, steps=2 * steps_per_epoch(len(ids)), workers=workers, begin=0))
        half = len(read) // 2
        orders.append(read[:half])
        texts = Counter(tuple(line.tolist()) for line in np.split(ids, np.flatnonzero(ids == model.boundary) + 1))
        found = Counter(line for line in read if len(line) > 1)
        assert found == Counter({line: 2 * num for line, num in texts.items() if len(line) > 1})
        assert parts[-1].tokens == 2 * len(ids)
    if workers == 1:
        assert orders[0] == orders[1]
        assert read[:half] != read[half:]  # another order in the second epoch


def test_several_workers_learn_the_same_things() -> None:
    model, ids = model_of(lines_on_topics(3000))
    for _ in model.fit(ids, steps=10, workers=3):
        pass
    for topic in TOPICS:
        assert {name for name, _ in model.words.neighbours(topic[0], 5)} == set(topic[1:])


def test_a_text_on_disk_gives_the_same_vectors(tmp_path: Path) -> None:
    model, ids = model_of(lines_on_topics(300))
    list(model.fit(ids, steps=2))
    wanted = model.vectors.copy()
    ids.astype(np.uint16).tofile(tmp_path / "ids.bin")
    list(model.fit(np.memmap(tmp_path / "ids.bin", dtype=np.uint16, mode="r"), steps=2))
    assert np.array_equal(model.vectors, wanted)


def test_rare_and_unknown_words_and_the_end_of_a_line_have_no_vector() -> None:
    lines = [["often", "too", "rare"], ["often", "too", "once"], ["often", "too"], ["often", "too"]]
    model, ids = model_of([*lines, ["rare", "often"]], tokenizer_min_count=2, min_count=3)
    list(model.fit(ids, steps=1))
    tokenizer = model.spec.tokenizer
    named = {tokenizer.piece(token) for token in np.flatnonzero(model.has_vector)}
    assert named == set(model.words.words) == {"often", "too"}
    assert not model.vectors[~model.has_vector].any()
    assert not model.outputs[~model.has_vector].any()
    assert model.num_parameters == 2 * 2 * 16
    with pytest.raises(DataError, match='"rare" has no vector'):
        model.words.neighbours("rare")


def test_the_window_reaches_over_words_that_are_dropped() -> None:
    """A rare word between two others: they are next to each other, where the window is one."""
    lines = [["left", f"only{k}", "right"] for k in range(40)]
    words = fitted(lines, steps=200, min_count=2, window=1, negative=2, hierarchical=True).words
    assert words.words == ["left", "right"]
    model = fitted(lines, steps=200, min_count=2, window=1)
    log_probs = model.step(torch.tensor([model.spec.tokenizer.encode("left")[0]]), model.initial_state(1))[0][0]
    assert log_probs[model.spec.tokenizer.encode("right")[0]] > log_probs[model.spec.tokenizer.encode("left")[0]]


def test_frequent_words_are_dropped_as_equation_6_says() -> None:
    lines = [["the"] * 90 + ["cat"] * 9 + ["sat"]]
    model, ids = model_of(lines, subsample=0.05)
    model.initialise(ids)
    keep = model._tables[0]
    wanted = {"the": np.sqrt(0.05 / 0.9) + 0.05 / 0.9, "cat": np.sqrt(0.05 / 0.09) + 0.05 / 0.09, "sat": 1.0}
    for word, chance in wanted.items():
        assert keep[model.spec.tokenizer.encode(word)[0]] == pytest.approx(min(1.0, chance))
    assert keep[model.boundary] == 0


@pytest.mark.parametrize("hierarchical", [False, True])
@pytest.mark.parametrize("noise_power", [0.75, 1.0])
def test_equation_7_gives_the_conditional_probabilities_of_the_text(hierarchical: bool, noise_power: float) -> None:
    """Lines of two words, so that the context of each is the other: how often they meet is known."""
    random, V = np.random.default_rng(0), 5
    joint = random.dirichlet(np.full(V * V, 0.7)).reshape(V, V)
    joint = (joint + joint.T) / 2
    drawn = random.choice(V * V, size=8000, p=joint.ravel())
    lines = [[f"w{cell // V}", f"w{cell % V}"] for cell in drawn]
    seen = np.bincount(drawn, minlength=V * V).reshape(V, V)
    seen = seen + seen.T
    model = fitted(lines, steps=60, hierarchical=hierarchical, noise_power=noise_power, window=1)
    words = torch.from_numpy(model.spec.tokenizer.encode(" ".join(f"w{k}" for k in range(V))))
    found = model.step(words, model.initial_state(V))[0][:, words].exp().numpy()
    wanted = seen / seen.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), wanted, atol=0.06)


@ALL_KINDS
def test_probabilities_sum_to_one_and_stepping_gives_what_scoring_gives(kind: dict[str, Any]) -> None:
    lines = [*lines_on_topics(100), ["rare", "a0"], ["a1", "rarer"]]
    model = fitted(lines, steps=3, min_count=2, **kind)
    ids = torch.from_numpy(model.spec.tokenizer.encode("a0 b1 rare a2\nunseen c0 c1\n"))
    batch = next_token_batch(torch.cat([torch.tensor([model.boundary]), ids])[None])
    log_probs, after = model.score(batch)
    assert torch.isfinite(log_probs).all()
    inputs, targets = batch.inputs["tokens"].ids[0], batch.targets["tokens"].ids[0]
    state = model.initial_state(1)
    for place, token in enumerate(inputs):
        expected, state = model.step(token[None], state)
        assert expected.exp().sum().item() == pytest.approx(1.0)
        assert expected[0, targets[place]].item() == pytest.approx(log_probs[0, place].item(), abs=1e-6)
        from_start, _ = model.start(next_token_batch(torch.cat([inputs[: place + 1], token[None]])[None]))
        torch.testing.assert_close(from_start, expected)
    assert torch.equal(after.per_row["last"], state.per_row["last"])


def test_padding_and_other_rows_change_nothing() -> None:
    model = fitted(lines_on_topics(100), steps=2)
    ids = torch.tensor([[2, 3, 4], [5, 6, 0]])
    is_token = torch.tensor([[True, True, True], [True, True, False]])
    batch = Batch({"tokens": Tokens(ids, is_token)}, {"tokens": Tokens(ids.flip(1), is_token)})
    log_probs, after = model.score(batch)
    alone = Batch({"tokens": Tokens(ids[1:, :2])}, {"tokens": Tokens(ids.flip(1)[1:, :2])})
    torch.testing.assert_close(model.score(alone)[0][0], log_probs[1, :2])
    assert after.per_row["last"].tolist() == [4, 6]


def test_a_saved_model_gives_the_same_numbers() -> None:
    model = fitted(lines_on_topics(100), steps=2, min_count=2)
    other = Word2Vec(model.config, text_schema(model.spec.tokenizer))
    other.load_state_dict({name: tensor.clone() for name, tensor in model.state_dict().items()})
    assert other.words.words == model.words.words
    assert np.array_equal(other.words.vectors, model.words.vectors)
    tokens, state = torch.arange(5), model.initial_state(5)
    assert torch.equal(other.step(tokens, state)[0], model.step(tokens, state)[0])


def test_a_tree_has_no_vectors_of_contexts() -> None:
    model, _ = model_of(lines_on_topics(10), hierarchical=True)
    assert model.context_vectors is None
    flat, _ = model_of(lines_on_topics(10))
    assert flat.context_vectors is flat.outputs


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"vectors": None}, "lacks 'vectors'"),
        ({"counts": torch.zeros(3, dtype=torch.int64)}, "shape"),
        (
            {"vectors": torch.zeros(26, 8)},
            r"shape \(26, 8\), but the vocabulary has 26 tokens and model.embed_dim is 16",
        ),
        ({"outputs": torch.full((26, 16), float("nan"))}, "damaged"),
        ({"counts": -torch.ones(26, dtype=torch.int64)}, "damaged"),
        ({"counts": torch.ones(26)}, "damaged"),
    ],
)
def test_a_damaged_file_is_refused(change: dict[str, Any], told: str) -> None:
    model = fitted(lines_on_topics(100), steps=1)
    saved = {name: tensor for name, tensor in {**model.state_dict(), **change}.items() if tensor is not None}
    with pytest.raises(CheckpointError, match=told):
        Word2Vec(model.config, text_schema(model.spec.tokenizer)).load_state_dict(saved)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"embed_dim": 0}, "model.embed_dim = 0 should be at least 1"),
        ({"window": 0}, "model.window = 0"),
        ({"negative": 0}, "model.negative = 0"),
        ({"min_count": 0}, "model.min_count = 0"),
        ({"subsample": -1.0}, "model.subsample = -1.0 should be at least 0"),
        ({"subsample": float("nan")}, "model.subsample = nan"),
        ({"noise_power": 1.5}, "model.noise_power = 1.5 should be between 0 and 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Word2VecConfig(**settings)


def test_a_text_without_frequent_words_and_ids_that_no_word_has_are_refused() -> None:
    model, ids = model_of([["a", "b"], ["c", "a"]], min_count=2)
    with pytest.raises(DataError, match="the text has 1 word at least 2 times, and two are needed"):
        next(model.fit(ids))
    with pytest.raises(DataError, match="token 99 is not in the vocabulary"):
        next(model.fit(np.array([1, 2, 99])))


@given(lengths=st.lists(st.integers(0, 40), min_size=1, max_size=30), size=st.integers(1, 50))
def test_blocks_are_whole_lines_and_together_the_text(lengths: list[int], size: int) -> None:
    ids = np.concatenate([np.append(np.full(length, 5), 1) for length in lengths])
    before = word2vec.BLOCK_TOKENS
    word2vec.BLOCK_TOKENS = size
    try:
        edges = block_edges(ids, 1)
    finally:
        word2vec.BLOCK_TOKENS = before
    assert edges[0] == 0
    assert edges[-1] == len(ids)
    assert (np.diff(edges) > 0).all()
    assert (np.diff(edges)[:-1] >= min(size, len(ids))).all()
    assert (np.diff(edges) < size + 41).all()
    assert (ids[edges[1:] - 1] == 1).all()


def test_a_line_without_end_is_cut_into_blocks() -> None:
    edges = block_edges(np.full(35_000, 5), 1)
    assert edges[-1] == 35_000
    assert np.diff(edges).max() <= word2vec.BLOCK_TOKENS + word2vec.LONGEST_LINE
