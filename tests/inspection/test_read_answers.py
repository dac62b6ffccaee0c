"""Labelled texts and tagged words as inspection reads them: what was answered, what it cost, what moved it; and the
page in Chromium."""

from __future__ import annotations

import csv
import json
import math
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from conftest import Terminal
from torch import nn

from seqwise.api import TrainedRun, train
from seqwise.errors import ConfigError, DataError
from seqwise.inspection.evidence import GRADIENT, GRAMS, HIDDEN, LEFT_OUT
from seqwise.inspection.held_out import units_over_rows
from seqwise.inspection.inspect import InspectOptions, inspect_run
from seqwise.inspection.page import write_inspection
from seqwise.inspection.read_answers import word_spans
from seqwise.inspection.tagging import kind_of_tag

FILLERS = ["the", "a", "film", "it", "was", "and", "of", "this", "with", "plot", "cast", "scene"]
OPINION = {"good": ("fine", "lovely", "funny"), "bad": ("dull", "weak", "awful")}


def _reviews(random: np.random.Generator, num: int) -> list[tuple[str, str]]:
    found = []
    for _ in range(num):
        label = ("good", "bad")[int(random.integers(2))]
        words = random.choice(FILLERS, size=int(random.integers(4, 9))).tolist()
        words.insert(int(random.integers(len(words))), str(random.choice(OPINION[label])))
        found.append((" ".join(words), label))
    return found


def _write(path: Path, heads: list[str], rows: list[tuple[Any, ...]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([heads, *rows])
    return path


def _random_weights(run: TrainedRun) -> TrainedRun:
    """As fresh heads say the same of everything."""
    if isinstance(run.model, nn.Module):
        torch.manual_seed(1)
        for weight in run.model.parameters():
            nn.init.normal_(weight, std=0.4)
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainedRun]:
    folder, random = tmp_path_factory.mktemp("answers"), np.random.default_rng(0)
    reviews = _reviews(random, 120)
    labelled = _write(folder / "reviews.csv", ["text", "label"], reviews)
    pairs = [(a, b, "same" if first == second else "other") for (a, first), (b, second) in pairwise(reviews)]
    paired = _write(folder / "pairs.csv", ["text", "text2", "label"], pairs)
    numbers = [(text, 2.5 * (label == "good") + 10 + n % 7 / 10) for n, (text, label) in enumerate(reviews)]
    numbered = _write(folder / "numbers.csv", ["text", "number"], numbers)
    sets = [{"text": text, "labels": [label, *(["plot"] if "plot" in text else [])]} for text, label in reviews]
    (folder / "sets.jsonl").write_text("\n".join(map(json.dumps, sets)) + "\n")
    tagged = folder / "tagged"
    tagged.mkdir()
    for part, num in (("train", 60), ("valid", 10), ("test", 10)):
        rows = [("to the city", "O O B-place", "go"), ("new york now", "B-place I-place O", "stay")] * (num // 2)
        for suffix, column in ((".seq.in", 0), (".seq.out", 1), (".label", 2)):
            (tagged / f"{part}{suffix}").write_text("\n".join(row[column] for row in rows) + "\n")
    small = {"steps": 2, "overrides": ["model.model_dim=12"]}
    two = ["text=text", "text2=text2", "label=label"]

    def made(name: str, source: Path, family: str, *settings: str, **more: Any) -> TrainedRun:
        asked = {**small, **more} if family != "ngram" else more
        overrides = [*asked.pop("overrides", []), *settings]
        return _random_weights(train(source, family, out=folder / name, overrides=overrides, **asked))

    return {
        "bag": made("bag", labelled, "ngram"),
        "lstm": made("lstm", labelled, "lstm", "model.pooling=attention", "model.bidirectional=true"),
        "short": made("short", labelled, "gru", "model.max_steps=6"),
        "gpt": made("gpt", labelled, "gpt", "model.num_heads=2", "model.num_layers=2", "model.context=32"),
        "bpe": made("bpe", labelled, "conv", tokenizer="bpe"),
        "siamese": made("siamese", paired, "gpt", "model.pairing=siamese", "model.pooling=attention",
                        "model.num_heads=2", "model.num_layers=1", "model.context=32", columns=two),
        "pair bag": made("pair-bag", paired, "ngram", columns=two),
        "number": made("number", numbered, "gru", "model.pooling=mean", columns=["text=text", "number=number"]),
        "sets": made("sets", folder / "sets.jsonl", "conv"),
        "tags": made("tags", tagged, "lstm", "model.crf=true", "model.characters=conv", "model.character_dim=4"),
        "plain tags": made("plain-tags", tagged, "gru", "model.crf=false"),
    }  # fmt: skip


def methods(found: Any) -> list[str]:
    return [each.method for each in found.evidence.attributions]


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bag", "lstm", "gpt", "bpe"])
def test_a_text_is_answered_as_predict_answers_it(name: str, runs: dict[str, TrainedRun]) -> None:
    text = "the plot was dull and weak"
    found, (said,) = inspect_run(runs[name], text), runs[name].answer_texts([text])
    assert found.reading.answer == [said["label"]]
    assert found.reading.wanted is None
    assert all(math.isnan(bits) for bits in found.reading.bits)
    assert "".join(found.reading.pieces[1:-1]).strip() == text
    shown = {option.piece: option.probability for option in found.reading.expected[-1]}
    assert shown == pytest.approx(said["probabilities"], abs=1e-5)
    assert found.evidence.answers[0] == said["label"]
    assert found.evidence.words == text.split()
    assert len(found.reading.bits) == len(found.reading.expected) == len(found.reading.pieces)


def test_what_was_wanted_has_its_cost_and_is_asked_for_first(runs: dict[str, TrainedRun]) -> None:
    for name in ("bag", "lstm"):
        for label in ("good", "bad"):
            found = inspect_run(runs[name], "a lovely film", target=label)
            share = dict(zip(found.evidence.answers, found.evidence.probabilities, strict=True))
            assert found.reading.bits[-1] == pytest.approx(-math.log2(share[label]), abs=1e-4)
            assert found.evidence.answers[0] == label
            assert f"which cost {found.reading.bits[-1]:.2f} bits" in write_inspection([found])


def test_a_row_of_the_held_out_part_is_read_with_its_answer(runs: dict[str, TrainedRun]) -> None:
    run = runs["lstm"]
    row = run.unseen_store().rows[3]
    found = run.inspect(row=3)
    assert found.text == f"row 3 of the held-out part: {row.texts[0]}"
    assert found.reading.wanted == [row.answer]
    score = run.evaluate()
    assert found.reading.bits[-1] == pytest.approx(-score.log_probs[3, score.wanted[3]] / math.log(2), abs=1e-4)
    other = next(name for name in ("good", "bad") if name != row.answer)
    asked = run.inspect(row=3, target=other)  # what speaks for another answer than the right one
    assert (asked.evidence.answers[0], asked.reading.wanted) == (other, [row.answer])
    with pytest.raises(DataError, match="none with the number 9,999"):
        run.inspect(row=9999)


def test_each_model_is_asked_in_the_ways_that_it_can_answer(runs: dict[str, TrainedRun]) -> None:
    text = "a lovely film"
    assert methods(inspect_run(runs["bag"], text)) == [GRAMS, HIDDEN, LEFT_OUT]
    assert methods(inspect_run(runs["lstm"], text)) == [GRADIENT, HIDDEN, LEFT_OUT]
    assert methods(inspect_run(runs["bpe"], text)) == [GRADIENT, LEFT_OUT]  # byte pairs have no token for the unknown


def test_the_word_that_was_planted_moves_the_answer(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["bag"], "the plot was awful and a scene").evidence
    assert found.answers[0] == "bad"
    for each in found.attributions:
        assert found.words[each.values[0].argmax()] == "awful", each.method
        np.testing.assert_allclose(each.values[0], -each.values[1], atol=1e-9)
    grams, bias = found.attributions[0], runs["bag"].model.bias
    total = grams.values[0].sum() + grams.elsewhere[0]
    names = runs["bag"].run.schema.main_spec.names
    first, second = (names.index(name) for name in found.answers)
    assert total + bias[first] - bias[second] == pytest.approx(found.scores[0], abs=1e-5)
    assert max(found.grams, key=lambda gram: gram.parts[0]).text.find("awful") >= 0
    assert found.moved.phrase == "awful"


def test_attention_pooling_is_shown_as_shares(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["lstm"], "a lovely film it was")
    assert found.evidence.pooling.sum() == pytest.approx(1, abs=1e-6)
    assert len(found.evidence.pooling) == len(found.reading.pieces)
    np.testing.assert_allclose(found.evidence.pooling, found.reading.trace["head.label.pooling", "pooling"][0, 0])
    assert inspect_run(runs["short"], "a lovely film").evidence.pooling is None
    apart = inspect_run(runs["siamese"], "a lovely film\tthe plot").evidence.pooling
    assert apart[0] == 0  # the boundary before the first text is not read
    assert (apart[1:5].sum(), apart[5:].sum()) == pytest.approx((0.5, 0.5), abs=1e-6)


def test_units_over_held_out_rows_are_those_of_each_row_by_itself(runs: dict[str, TrainedRun]) -> None:
    for name in ("lstm", "short", "siamese"):
        run = runs[name]
        store, tokenizer = run.unseen_store(), run.run.schema.only_input().tokenizer
        units, pieces = units_over_rows(run.model, tokenizer, store, int(store.lengths[:2].sum()))
        one = run.inspect(row=0)
        is_read = np.ones(len(one.reading.pieces), dtype=bool)
        is_read[0] = name != "siamese"
        T = int(is_read.sum())
        for over in one.over_text:
            if (over.site, over.what) in units:
                np.testing.assert_allclose(units[over.site, over.what][:T], over.values[is_read], atol=1e-6)
        assert {len(values) for values in units.values()} == {len(pieces)}


def test_other_views_work_for_labelled_text(runs: dict[str, TrainedRun]) -> None:
    lstm, gpt = (inspect_run(runs[name], "the plot was dull") for name in ("lstm", "gpt"))
    assert lstm.flow
    assert lstm.tracked
    assert lstm.word_map is not None
    assert any(each.what == "forget gate" for each in lstm.over_text)
    assert all(len(each.values) == 6 for each in lstm.over_text)
    assert gpt.attention[0].weights.shape == (2, 6, 6)
    assert gpt.flow
    assert set(lstm.absent) == {"attention", "memory", "search", "positions"}


def test_gradients_are_followed_where_the_answer_is_not_known(runs: dict[str, TrainedRun]) -> None:
    for name in ("lstm", "number", "sets"):
        flow = inspect_run(runs[name], "the plot was dull").flow
        assert flow
        assert all(max(each.by_lag) > 1e-4 for each in flow)


def test_long_texts_are_cut_in_the_middle_as_the_model_does(runs: dict[str, TrainedRun]) -> None:
    text = "the plot was dull and the cast of it was weak"
    found = inspect_run(runs["short"], text)
    assert found.reading.pieces == ["⟨start⟩", "the ", "plot ", "was ", "weak ", "⟨end⟩"]
    assert any("the model reads 6" in note for note in found.reading.notes)
    (said,) = runs["short"].answer_texts([text])
    assert found.evidence.probabilities[0] == pytest.approx(max(said["probabilities"].values()), abs=1e-5)
    cut = inspect_run(runs["lstm"], text, options=InspectOptions(max_tokens=4))
    assert len(cut.reading.pieces) == 6
    assert any("the page holds 6" in note for note in cut.reading.notes)


def test_a_number_is_moved_in_its_own_unit(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["number"], "the plot was dull", target="11.5")
    (said,) = runs["number"].answer_texts(["the plot was dull"])
    assert float(found.reading.answer[0]) == pytest.approx(said["number"], rel=1e-5)
    assert found.evidence.scores[0] == pytest.approx(said["number"], rel=1e-5)
    others = runs["number"].answer_texts(["plot was dull", "the was dull", "the plot dull", "the plot was"])
    lost = next(each for each in found.evidence.attributions if each.method == LEFT_OUT)
    expected = [said["number"] - other["number"] for other in others]
    np.testing.assert_allclose(lost.values[0], expected, atol=1e-4)
    spec = runs["number"].run.schema.main_spec
    nats = 0.5 * ((11.5 - said["number"]) / spec.scale) ** 2 + 0.5 * math.log(2 * math.pi) + math.log(spec.scale)
    assert found.reading.bits[-1] == pytest.approx(nats / math.log(2), abs=1e-3)
    write_inspection([found])


def test_of_several_labels_each_is_asked_by_itself(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["sets"], "the plot was dull", target="plot | bad")
    assert found.reading.wanted == ["plot", "bad"]
    assert found.evidence.answers[:2] == ["plot", "bad"]
    for score, probability in zip(found.evidence.scores, found.evidence.probabilities, strict=True):
        assert score == pytest.approx(math.log(probability / (1 - probability)), abs=1e-4)


# --- two texts --------------------------------------------------------------------------------------------------------


def test_two_texts_stand_in_one_row_and_are_put_back_where_they_are_read_apart(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["siamese"], "a lovely film\tthe plot was")
    T = len(found.reading.pieces)
    assert found.reading.pieces.count("⟨end⟩") == 2
    assert found.evidence.words == ["a", "lovely", "film", "the", "plot", "was"]
    assert found.evidence.begins_text == [False, False, False, True, False, False]
    (weights,) = (each.weights for each in found.attention)
    assert weights.shape == (2, T, T)
    np.testing.assert_allclose(weights.sum(axis=-1), [[0, *[1] * (T - 1)]] * 2, atol=1e-6)  # the first is not read
    assert not weights[:, 5:, :5].any()
    alone = inspect_run(runs["siamese"], "a lovely film\tfunny")
    stream, other = (one.over_text[0].values for one in (found, alone))
    np.testing.assert_allclose(stream[1:5], other[1:5], atol=1e-6)
    assert np.abs(stream[5:]).min(axis=1).max() > 0
    assert "gradients" in found.absent
    assert inspect_run(runs["pair bag"], "a lovely film\tthe film").evidence.grams
    with pytest.raises(DataError, match="two texts"):
        inspect_run(runs["siamese"], "one only")


# --- a phrase at other places -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bag", "lstm", "bpe"])
def test_a_phrase_is_put_at_every_place(name: str, runs: dict[str, TrainedRun]) -> None:
    words = ["the", "cast", "was", "dull"]
    found = inspect_run(runs[name], " ".join(words), options=InspectOptions(phrase="and funny")).evidence
    moved, label = found.moved, found.answers[0]
    assert moved.places == [0, 1, 2, 3, 4]
    assert moved.stood_at is None
    texts = [" ".join([*words[:place], "and funny", *words[place:]]) for place in moved.places]
    said = runs[name].answer_texts([*texts, " ".join(words)])
    expected = [one["probabilities"][label] for one in said]
    skipped = 1 if name == "bpe" else 0  # at the very beginning byte pairs begin without a space
    assert moved.values[skipped:] == pytest.approx(expected[skipped:-1], abs=1e-5)
    assert moved.without == moved.as_given == pytest.approx(expected[-1], abs=1e-5)


def test_a_phrase_of_the_text_is_taken_out_and_moved(runs: dict[str, TrainedRun]) -> None:
    text = "the cast was dull and weak"
    found = inspect_run(runs["bag"], text, options=InspectOptions(phrase="was dull")).evidence
    moved, label = found.moved, found.answers[0]
    assert moved.stood_at == 2
    texts = ["the cast and weak", "was dull the cast and weak", text]
    without, first, given = (one["probabilities"][label] for one in runs["bag"].answer_texts(texts))
    assert (moved.without, moved.values[0], moved.as_given) == pytest.approx((without, first, given), abs=1e-5)
    assert moved.values[moved.places.index(2)] == pytest.approx(moved.as_given)


def test_about_twenty_places_of_a_long_text_are_tried(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["bag"], "the plot of it was dull " * 10)
    assert len(found.evidence.moved.places) == 20
    assert (found.evidence.moved.places[0], found.evidence.moved.places[-1]) == (0, 59)


# --- tags -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tags", "plain tags"])
def test_words_have_tags_with_probabilities_and_alternatives(name: str, runs: dict[str, TrainedRun]) -> None:
    text = "to new city nowhere"
    found, (said,) = inspect_run(runs[name], text), runs[name].answer_texts([text])
    words = found.tagging.words
    assert [word.tag for word in words] == said["tags"] == found.reading.answer
    assert [word.probability for word in words] == pytest.approx(said["probabilities"], abs=1e-5)
    assert words[3].word == "nowhere⟨unk⟩"
    for word in words:
        assert sum(option.probability for option in word.options) == pytest.approx(1, abs=1e-5)
        assert word.options == sorted(word.options, key=lambda option: -option.probability)
    assert found.tagging.rests_on.shape == (4, 4)
    assert found.evidence.target == "label"
    assert found.evidence.answers[0] == said["label"]
    assert (found.tagging.transitions is not None) == (name == "tags")


def test_tags_that_are_wanted_have_their_cost(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["plain tags"], "to the city", target="O O B-place")
    for word in found.tagging.words:
        share = next(option.probability for option in word.options if option.piece == word.wanted)
        assert word.bits == pytest.approx(-math.log2(share), abs=1e-4)
    assert [bits for bits in found.reading.bits if not math.isnan(bits)] == [word.bits for word in found.tagging.words]
    row = runs["tags"].inspect(row=1)
    assert row.reading.wanted == ["B-place", "I-place", "O"]
    assert row.text.endswith("new york now")
    page = write_inspection([row])
    right = sum(word.tag == word.wanted for word in row.tagging.words)
    assert f"{right} of 3 tags are right" in page
    assert "Strongest transitions" in page


def test_transitions_are_those_of_the_crf(runs: dict[str, TrainedRun]) -> None:
    moves = inspect_run(runs["tags"], "to the city").tagging.transitions
    crf, names = runs["tags"].model.main_head.crf, runs["tags"].run.schema.main_spec.names
    for row, before in enumerate(moves.tags):
        for column, after in enumerate(moves.tags):
            place = names.index(before), names.index(after)
            score = float(crf.follow.detach()[place]) if crf.can_follow[place] else -math.inf
            assert moves.scores[row, column] == pytest.approx(score)
    assert moves.scores[moves.tags.index("O"), moves.tags.index("I-place")] == -math.inf


def test_kinds_of_tags() -> None:
    assert [kind_of_tag(tag, "IOB2") for tag in ("B-a-b", "I-a-b", "O")] == ["a-b", "a-b", ""]
    assert [kind_of_tag(tag, "") for tag in ("NOUN", "O")] == ["NOUN", "O"]


def test_a_long_row_of_tags_is_cut_and_told(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["tags"], "to the city " * 10, options=InspectOptions(max_tokens=4))
    assert len(found.tagging.words) == 4
    assert any("the first 4 are read" in note for note in found.reading.notes)


def test_pieces_are_joined_to_words_at_white_space() -> None:
    pieces, is_boundary = ["⟨start⟩", "un", "seen", " film", "s", ".", "⟨end⟩"], [True, *[False] * 5, True]
    assert word_spans(pieces, is_boundary, by_piece=False) == [(1, 3), (3, 6)]
    assert word_spans(pieces, is_boundary, by_piece=True) == [(place, place + 1) for place in range(1, 6)]


# --- what does not go -------------------------------------------------------------------------------------------------


def test_what_cannot_be_read_or_answered_is_refused(runs: dict[str, TrainedRun]) -> None:
    for name, text, target, message in (
        ("lstm", " ", None, "no text to look at"),
        ("tags", "", None, "no words to look at"),
        ("lstm", "a film", "splendid", "answers with: bad, good"),
        ("number", "a film", "many", "should be a number"),
        ("tags", "to the city", "O", "1 tags and the text 3 words"),
        ("tags", "to", "B-nowhere", "not among what the model answers with"),
    ):
        with pytest.raises((ConfigError, DataError), match=message):
            inspect_run(runs[name], text, target=target)
    with pytest.raises(ConfigError, match="phrase is empty"):
        inspect_run(runs["bag"], "a film", options=InspectOptions(phrase=" "))
    noted = inspect_run(runs["plain tags"], "to the city", options=InspectOptions(row=2)).reading.notes
    assert any(note.startswith("row does not apply") for note in noted)


def test_a_label_that_training_never_had_costs_without_end(runs: dict[str, TrainedRun], tmp_path: Path) -> None:
    rows = [("a film it was", "x" if n % 2 else "y") for n in range(20)]
    files = {part: _write(tmp_path / f"{part}.csv", ["text", "label"], rows) for part in ("train", "valid")}
    files["test"] = _write(tmp_path / "test.csv", ["text", "label"], [("a film", "never"), ("it was", "x")])
    parts = {"valid": files["valid"], "test": files["test"], "task": "label"}
    run = train(files["train"], "gru", out=tmp_path / "run", steps=1, overrides=["model.model_dim=4"], **parts)
    found = run.inspect()
    assert found.reading.wanted == ["never"]
    assert found.reading.bits[-1] == math.inf
    assert "∞ bits" in write_inspection([found])


def test_markup_in_texts_labels_and_phrases_cannot_act(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    rows = [(f"film {n} {evil if n % 2 else 'it'} was", evil if n % 2 else "</style>") for n in range(40)]
    run = train(_write(tmp_path / "t.csv", ["text", "label"], rows), "ngram", out=tmp_path / "run", task="label")
    page = write_inspection([inspect_run(run, f"a {evil} film\x1b\u202e", options=InspectOptions(phrase=evil))])
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>")
    assert page.count("</style>") == 1
    assert escape(evil) in page


# --- the command, and in a browser ------------------------------------------------------------------------------------


def test_json_holds_what_the_page_shows(runs: dict[str, TrainedRun], terminal: Terminal) -> None:
    out, _ = terminal.done("inspect", runs["lstm"].path, "--text", "a lovely film", "--phrase", "dull", "--json")
    (found,) = json.loads(out)["results"]
    assert found["reading"]["answer"]
    assert [each["method"] for each in found["evidence"]["attributions"]] == [GRADIENT, HIDDEN, LEFT_OUT]
    assert len(found["evidence"]["moved"]["values"]) == 4
    out, _ = terminal.done("inspect", runs["tags"].path, "--row", "1", "--json")
    (found,) = json.loads(out)["results"]
    assert [word["wanted"] for word in found["tagging"]["words"]] == ["B-place", "I-place", "O"]
    assert "drop --target" in terminal.refuses("inspect", _language_model(runs), "--text", "a", "--target", "b")


def _language_model(runs: dict[str, TrainedRun]) -> Path:
    folder = runs["lstm"].path.parent
    if not (folder / "language").exists():
        (folder / "text.txt").write_text("the cat sat on the mat\n" * 60)
        train(folder / "text.txt", "ngram", out=folder / "language")
    return folder / "language"


def test_two_models_of_labels_stand_side_by_side(
    runs: dict[str, TrainedRun], terminal: Terminal, tmp_path: Path
) -> None:
    page = tmp_path / "two.html"
    terminal.done("inspect", runs["bag"].path, runs["lstm"].path, "--text", "a lovely film", "--out", page)
    written = page.read_text(encoding="utf-8")
    assert written.count('data-view="answer"') == 2
    assert written.count('data-part="method-0"') == 2


def colours(page: Any, part: str) -> list[str]:
    return page.eval_on_selector_all(
        f"#answer [data-part={part}] span", "spans => spans.map(span => span.style.backgroundColor)"
    )


def below(page: Any, part: str) -> list[str]:
    return page.eval_on_selector_all(
        f"#answer [data-part={part}] span", "spans => spans.map(span => span.dataset.below)"
    )


def test_words_have_colours_and_numbers_of_the_chosen_answer(show: Any, runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["bag"], "the plot was awful")
    page = show(found, accept_downloads=True)
    page.click("nav a[href='#answer']")
    left = found.evidence.attributions[2].values

    def told(values: np.ndarray) -> list[str]:
        """What rounds to nothing has no sign."""
        return [f"{'−' if round(float(value), 2) < 0 else '+'}{abs(value):.2f}" for value in values]

    assert below(page, "method-2") == told(left[0])
    first = colours(page, "method-2")
    assert "--c0" in first[3]  # awful speaks for bad
    page.select_option("#answer [data-part=controls] select", "1")
    assert below(page, "method-2") == told(left[1])
    assert "--c1" in colours(page, "method-2")[3]
    assert page.inner_text("#answer [data-part=score]").startswith("good: ")
    assert page.is_visible("#answer [data-answer='1']")
    assert not page.is_visible("#answer [data-answer='0']")
    page.focus("#answer [data-part=method-1] span:nth-child(3)")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#answer [data-part=controls] output").startswith("awful: n-grams ")
    assert "is-current" in page.locator("#answer [data-part=method-0] span").nth(3).get_attribute("class")
    with page.expect_download() as download:
        page.locator("#answer button.save").first.click()
    texts = [each.text for each in ElementTree.fromstring(Path(download.value.path()).read_text()).iter()]
    assert {"awful", told(found.evidence.attributions[0].values[1])[3]} <= set(texts)


def test_a_chosen_tag_shows_its_alternatives_and_what_it_rests_on(show: Any, runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["tags"], "to the city", target="O O B-place")
    page = show(found, color_scheme="dark")
    page.click("nav a[href='#answer']")
    page.hover("#answer [data-part=tagged] span:nth-child(2)")
    word = found.tagging.words[1]
    card = page.inner_text("#answer [data-part=tag-card]")
    assert word.tag in card
    assert all(option.piece in card for option in word.options)
    assert below(page, "tagged")[1].startswith(f"{word.tag}\n")
    rests = [f"{'−' if value < 0 else '+'}{abs(value):.2f}" for value in found.tagging.rests_on[1]]
    assert below(page, "rests") == rests
    page.keyboard.press("Tab")
    page.focus("#answer [data-part=tagged] span:nth-child(2)")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#answer [data-part=tag-card] h4") == "city"
    wrong = page.eval_on_selector_all("#answer [data-part=tagged] .is-wrong", "spans => spans.map(s => s.textContent)")
    assert wrong == [word.word for word in found.tagging.words if word.tag != word.wanted]
    before = colours(page, "tagged")
    page.select_option("#answer [data-part=tag-controls] select", "1")
    assert colours(page, "tagged") != before
    page.hover("#answer [data-part=map]")
    assert ", then " in page.inner_text("#answer [data-part=transition]")


def test_runs_without_answers_have_no_such_tab(runs: dict[str, TrainedRun]) -> None:
    page = write_inspection([inspect_run(TrainedRun(_language_model(runs)), "the cat")])
    assert 'href="#answer"' not in page
