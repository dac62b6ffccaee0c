"""Units, heads, embeddings, positions, search, minimal pairs: each against a case whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import schemas
import torch
from models.test_contract import Case, build

from seqwise.data.batch import prompt_batch
from seqwise.decoding import DecodingConfig, generate
from seqwise.errors import DataError
from seqwise.inspection.embeddings import EmbeddingSpace
from seqwise.inspection.heads import AttentionMap
from seqwise.inspection.minimal_pairs import MinimalPair, builtin_pairs, by_distance, judge, read_pairs_file
from seqwise.inspection.positions import positions_of, similarity_by_distance
from seqwise.inspection.search_tree import search_tree
from seqwise.inspection.units import FEATURES, by_token, find_units
from seqwise.layers.positions import sinusoidal_table
from seqwise.models import MODELS
from seqwise.text import train_tokenizer

WORDS = ["he", "she", "said", "read", "wrote", "of", "the", "and", "left", "them", "once", "again", "nobody", "house"]


def _sentence(random: np.random.Generator) -> str:
    words = random.choice(WORDS, size=12).tolist()
    opening, closing = sorted(random.choice(12, size=2, replace=False).tolist())
    words[opening], words[closing] = f'"{words[opening]}', f'{words[closing]}"'
    return " ".join(words) + f" ({random.integers(100)}).\n"


def test_features_are_read_off_the_text() -> None:
    text = 'a "b" (c1)\nD'
    assert FEATURES["inside quotes"](text).tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert FEATURES["inside brackets"](text).tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert FEATURES["digit"](text).tolist() == [0] * 8 + [1, 0, 0, 0]
    assert FEATURES["capital"](text).tolist() == [0] * 11 + [1]
    assert FEATURES["place in the line"](text).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a “b c” d", "001111000"),
        ("„ab“ «c» d", "1110011000"),
        ("“a\nb” c", "1111000"),
        ("“a\n\nb", "11100"),
        ('"a\nb" c', "1100111"),
        ('“it’s "so"” x', "1111111111000"),
    ],
)
def test_quotation_marks_of_all_kinds_are_known(text: str, expected: str) -> None:
    assert "".join(str(int(inside)) for inside in FEATURES["inside quotes"](text)) == expected


def test_a_token_has_the_feature_of_its_last_character() -> None:
    assert by_token(np.array([0.0, 1, 2, 3, 4]), ["ab", "c", "de"]).tolist() == [1, 2, 4]
    assert by_token(np.array([0.0, 1, 2, 3, 4]), ["ab ", " ", "c"]).tolist() == [1, 3, 4]  # not the space behind a word


def test_a_unit_that_was_made_to_follow_quotes_is_found_and_noise_is_not() -> None:
    random = np.random.default_rng(0)
    text = "".join(_sentence(random) for _ in range(60))  # a text that does not repeat itself
    pieces = list(text)
    noise = random.normal(size=(len(pieces), 30))
    planted = noise.copy()
    planted[:, 17] = -FEATURES["inside quotes"](text) + 0.3 * random.normal(size=len(pieces))
    found = {track.feature: track for track in find_units({("layer", "state"): planted}, pieces, best=1)}
    quotes = found["inside quotes"]
    assert (quotes.unit, quotes.is_found) == (17, True)
    assert quotes.correlation < -0.7
    in_noise = find_units({("layer", "state"): noise}, pieces, best=1)
    assert not any(abs(track.correlation) > track.chance + 0.05 for track in in_noise)


def test_a_feature_that_never_changes_is_left_out() -> None:
    found = find_units({("", "state"): np.random.default_rng(0).normal(size=(30, 3))}, list("a" * 30))
    assert {track.feature for track in found} <= {"place in the line", "place in the word"}


def test_heads_are_told_apart() -> None:
    T = 5
    before = np.eye(T, k=-1)
    before[0, 0] = 1
    evenly = np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None]
    previous, spread = AttentionMap("", "causal", np.stack([before, evenly])).heads()
    assert previous.on_the_one_before == pytest.approx(1)
    assert previous.distance == pytest.approx(0.8)
    assert previous.spread == pytest.approx(1)
    assert spread.on_itself == pytest.approx(np.mean([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]))
    assert spread.spread == pytest.approx(np.exp(np.log([1, 2, 3, 4, 5]).mean()))


def test_neighbours_and_analogies_of_a_space_that_was_built_for_them() -> None:
    man, king, woman, queen, other = [1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [-1, -1, -1]
    space = EmbeddingSpace(np.array([man, king, woman, queen, other], dtype=float))
    assert space.analogy(0, 1, 2, 1)[0][0] == 3
    assert space.neighbours(4, 1)[0][0] == 0  # the least far away
    near = space.neighbours(0)
    assert 0 not in [token for token, _ in near]
    assert [cosine for _, cosine in near] == sorted((cosine for _, cosine in near), reverse=True)


def test_the_map_shows_the_directions_that_differ_most() -> None:
    random = np.random.default_rng(0)
    table = random.normal(size=(2000, 6)) * [9, 0.1, 0.1, 4, 0.1, 0.1]
    drawn = EmbeddingSpace(table).map(range(2000))
    assert abs(np.corrcoef(drawn.places[:, 0], table[:, 0])[0, 1]) > 0.99
    assert abs(np.corrcoef(drawn.places[:, 1], table[:, 3])[0, 1]) > 0.99
    assert sum(drawn.shares) == pytest.approx(1, abs=0.01)
    assert EmbeddingSpace(table).map([3]).places.tolist() == [[0, 0]]


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rotary"])
def test_positions_by_distance(kind: str) -> None:
    model = build(Case("gpt", {"context": 20, "num_layers": 1, "model_dim": 16, "num_heads": 2, "positions": kind}))
    found = positions_of(model)
    assert found.kind == kind
    assert found.by_distance[0] == pytest.approx(1)
    if kind == "sinusoidal":
        table = sinusoidal_table(20, 16).double()
        expected = torch.nn.functional.cosine_similarity(table[:-3], table[3:]).mean()
        assert found.by_distance[3] == pytest.approx(float(expected), abs=1e-6)
    assert positions_of(build(Case("lstm", {"model_dim": 8}))) is None


def test_similarity_of_equal_vectors_is_one_at_every_distance() -> None:
    assert similarity_by_distance(np.ones((4, 3))) == pytest.approx([1, 1, 1, 1])


# --- search -----------------------------------------------------------------------------------------------------------


def test_the_tree_holds_the_answer_of_the_search_and_its_parts_add_up() -> None:
    model = build(Case("lstm", {"model_dim": 8}))
    config = DecodingConfig(method="beam", beam_width=3, max_tokens=6, length_penalty=1.0, stop=0)
    tree = search_tree(model, prompt_batch([[0, 3]]), config)
    assert tree.answers == generate(model, [[0, 3]], config)[0]
    path = tree.path(tree.answers[0].tokens)
    assert [tree.nodes[place].token for place in path] == tree.answers[0].tokens
    assert tree.nodes[path[-1]].log_prob == pytest.approx(tree.answers[0].log_prob)
    for step in range(6):
        here = [node for node in tree.nodes if node.step == step]
        assert sum(node.fate == "kept" for node in here) <= 3
    for node in tree.nodes:
        if node.parent is not None:
            parent = tree.nodes[node.parent]
            assert (parent.step, parent.fate) == (node.step - 1, "kept")
            assert node.log_prob <= parent.log_prob


# --- minimal pairs ----------------------------------------------------------------------------------------------------


def test_the_built_in_pairs_agree_and_mislead() -> None:
    pairs = builtin_pairs()
    assert MinimalPair("The writer of the books", " is", " are", 3) in pairs
    assert MinimalPair("The writers of the book", " are", " is", 3) in pairs
    assert {pair.distance for pair in pairs} == {0, 3, 4, 7}
    assert len(pairs) == len(set(pairs))


def test_a_model_that_counted_the_right_ones_is_right() -> None:
    pairs = [pair for pair in builtin_pairs() if pair.distance == 0]
    text = "\n".join(f"{pair.beginning}{pair.good} here" for pair in pairs) + "\n"
    wrong = "\n".join(f"{pair.beginning}{pair.bad} here" for pair in pairs) + "\n"
    tokenizer = train_tokenizer("char", [text])
    row = MODELS["ngram"]
    right, model = {}, None
    for name, learned in (("right", text), ("wrong", wrong)):
        model = row.build(row.config(order=12), schemas.of_text(tokenizer.vocab_size, tokenizer.boundary))
        model.fit(tokenizer.encode(learned))
        judged = judge(model, tokenizer, pairs)
        right[name] = sum(one.right for one in judged) / len(judged)
        assert by_distance(judged)[0].of == len(pairs)
    assert right == {"right": 1.0, "wrong": 0.0}


def test_two_words_that_are_not_known_are_right_by_half() -> None:
    tokenizer = train_tokenizer("word", ["The writer reads .\n" * 3], vocab_size=50)
    model = MODELS["ngram"].build(
        MODELS["ngram"].config(order=2), schemas.of_text(tokenizer.vocab_size, tokenizer.boundary)
    )
    model.fit(tokenizer.encode("The writer reads .\n" * 3))
    (judged,) = judge(model, tokenizer, [MinimalPair("The writer", " is", " are", 0)])
    assert judged.right == 0.5


def test_a_file_of_pairs_is_read_and_a_bad_line_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("The dog\truns\trun\t0\n\nThe dogs of him\trun\truns\n")
    first, second = read_pairs_file(path)
    assert first == MinimalPair("The dog", " runs", " run", 0)
    assert second.distance == 3
    for line, said in (
        ("one part", "line 1"),
        ("a\tb\tc\tfar", "whole number"),
        ("a\tb\tc\t²", "whole number"),
        ("a\t\tc", "line 1"),
        ("", "no pairs"),
    ):
        path.write_text(line + "\n")
        with pytest.raises(DataError, match=said):
            read_pairs_file(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_pairs_file(tmp_path / "missing.tsv")
