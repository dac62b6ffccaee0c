"""seqwise inspect as a user meets it: every family, two at once, hostile texts, JSON; and the page in Chromium."""

from __future__ import annotations

import io
import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from conftest import Terminal

from seqwise.api import TrainedRun, train
from seqwise.data.batch import prompt_batch
from seqwise.errors import ConfigError, DataError
from seqwise.inspection.heads import AttentionMap
from seqwise.inspection.inspect import InspectOptions, OverText, inspect_run
from seqwise.inspection.minimal_pairs import Judged, about_halves, builtin_pairs
from seqwise.inspection.page import write_inspection
from seqwise.inspection.reading import END

SMALL = {
    "ngram": [],
    "hmm": ["model.num_states=5"],
    "lstm": ["model.model_dim=24"],
    "gpt": ["model.num_layers=2", "model.model_dim=16", "model.num_heads=2", "model.context=64"],
    "conv": ["model.model_dim=12", "model.num_layers=3"],
}
TEXT = 'The writer of the books said "it is (2) late".\nThe animals are here.\n'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainedRun]:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "text.txt").write_text(TEXT * 60)
    found = {}
    for family, overrides in SMALL.items():
        budget = {} if family == "ngram" else {"steps": 3}
        found[family] = train(
            folder / "text.txt", family, out=folder / family, tokenizer="char", overrides=overrides, **budget
        )
    pairs = ["model.model_dim=16"]
    for attention in ("general", "none"):
        overrides = [*pairs, f"model.attention={attention}"]
        found[attention] = train("dates:en-fr:200", "seq2seq", out=folder / attention, overrides=overrides, steps=3)
    more = ["model.num_layers=2", "model.num_heads=2"]
    found["transformer"] = train(
        "dates:en-fr:200", "transformer", out=folder / "transformer", overrides=[*pairs, *more], steps=3
    )
    return found


HAS = {
    "ngram": {"over_text", "influence", "search"},
    "hmm": {"over_text", "influence", "search"},
    "lstm": {"over_text", "tracked", "flow", "factors", "truncation", "influence", "search", "word_map"},
    "gpt": {"over_text", "attention", "flow", "influence", "search", "word_map", "positions"},
    "conv": {"over_text", "flow", "influence", "search", "word_map"},
}


@pytest.mark.parametrize("family", SMALL)
def test_every_family_shows_what_it_has_and_says_what_it_has_not(family: str, runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs[family], "The writer of the books is here.")
    for name in HAS[family]:
        assert getattr(found, name), name
    assert found.reading.pieces[1:] == list("The writer of the books is here.")
    assert all(bits >= 0 for bits in found.reading.bits[1:])
    assert math.isnan(found.reading.bits[0])
    for options in found.reading.expected:
        assert options == sorted(options, key=lambda option: -option.probability)
    page = write_inspection([found])
    assert page.count('class="nothing"') == len(found.absent)
    for why in found.absent.values():
        assert escape(why) in page
    assert ("attention" in found.absent) == (family != "gpt")
    assert ("gradients" in found.absent) == (family in ("ngram", "hmm"))


def test_bits_are_those_of_the_score(runs: dict[str, TrainedRun]) -> None:
    """What is shown of a text is what evaluation would say of it."""
    found = inspect_run(runs["ngram"], "The writer")
    tokens = [runs["ngram"].tokenizer.boundary, *runs["ngram"].tokenizer.encode("The writer").tolist()]
    for place in range(1, len(tokens)):
        log_probs, _ = runs["ngram"].model.start(prompt_batch([tokens[:place]]))
        assert found.reading.bits[place] == pytest.approx(-float(log_probs[0, tokens[place]]) / math.log(2))


@pytest.mark.parametrize("name", ["general", "none", "transformer"])
def test_pairs_show_source_target_and_alignment(name: str, runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs[name], "March 5, 2024", target="5 mars 2024")
    assert found.reading.source[:-1] == list("March 5, 2024")
    assert found.reading.pieces[1:-1] == list("5 mars 2024")
    assert found.source_gradients.shape == (12, 14)
    kinds = {each.kind for each in found.attention}
    assert kinds == {"general": {"cross"}, "none": set(), "transformer": {"self", "causal", "cross"}}[name]
    for each in found.attention:
        assert each.weights.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    own = inspect_run(runs[name], "March 5, 2024")
    written = runs[name].run.schema.specs["tokens"].tokenizer.decode(own.reading.ids[1:-1])
    assert written == runs[name].translate("March 5, 2024")


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "<script>alert(1)</script></script>",
        "\x00\x1b[2J\u202e\ud800",
        "日本語 ☃ never seen",
        "long " * 300,
        "\n\n",
    ],
    ids=["one token", "markup", "control", "unseen", "longer than the context", "newlines"],
)
@pytest.mark.parametrize("family", ["ngram", "lstm", "gpt"])
def test_hostile_texts_make_a_page_that_cannot_act(family: str, text: str, runs: dict[str, TrainedRun]) -> None:
    page = write_inspection([inspect_run(runs[family], text)])
    assert page.count("<script") == page.count("</script>")
    assert "<script>alert" not in page
    page.encode("utf-8")


def test_words_that_are_not_known_are_shown_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat .\n" * 60)
    run = train(tmp_path / "text.txt", "ngram", out=tmp_path / "run", tokenizer="word")
    found = inspect_run(run, "the animal sat")
    assert found.reading.pieces[1:] == ["the ", "animal⟨unk⟩ ", "sat "]
    assert any("1 word is not in the vocabulary" in note for note in found.reading.notes)


def test_a_text_longer_than_the_context_is_cut_and_told(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["gpt"], "The writer " * 20)
    assert len(found.reading.pieces) == 64
    assert any("the first 63 are shown" in note for note in found.reading.notes)


def test_nothing_to_read_and_what_does_not_belong_are_refused(runs: dict[str, TrainedRun]) -> None:
    with pytest.raises(DataError, match="no text"):
        inspect_run(runs["lstm"], "")
    with pytest.raises(DataError, match="no source"):
        inspect_run(runs["general"], "  ", target="x")
    with pytest.raises(ConfigError, match="no target"):
        inspect_run(runs["lstm"], "a", target="b")


# --- numbers and examples ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainedRun]:
    folder = tmp_path_factory.mktemp("series")
    rows = [f"{10 + 3 * math.sin(t / 2):.3f},{'' if t % 17 == 5 else t % 4}" for t in range(240)]
    (folder / "waves.csv").write_text("wave,saw\n" + "\n".join(rows) + "\n")
    settings = {"kalman": [], "hmm": ["model.num_states=3"], "lstm": ["model.model_dim=8"]}
    return {
        family: train(folder / "waves.csv", family, out=folder / family, overrides=overrides, steps=3)
        for family, overrides in settings.items()
    }


@pytest.mark.parametrize(
    ("family", "inside"), [("kalman", "mean"), ("hmm", "belief"), ("lstm", "forget gate")], ids=lambda name: name
)
def test_a_series_is_read_beside_what_was_expected(family: str, inside: str, series: dict[str, TrainedRun]) -> None:
    run = series[family]
    found = inspect_run(run, options=InspectOptions(max_tokens=12, row=2))
    wave, saw = found.reading.columns
    store = run.unseen_store()
    first = store.first + 2
    expected = run.run.schema.specs["values"].decode(store.values[first : first + 12])
    assert wave.values == pytest.approx(expected[:, 0].tolist())
    gaps = [not there for there in store.is_observed[first : first + 12, 1].tolist()]
    assert [math.isnan(value) for value in saw.values] == gaps
    assert all(low < middle < high for low, middle, high in zip(wave.low, wave.middle, wave.high, strict=True))
    assert len(found.reading.bits) == 13
    values = next(each for each in found.over_text if each.what == inside).values
    assert len(values) == 12
    assert ("gradients" in found.absent) == (family != "lstm")
    page = write_inspection([found])
    assert 'id="read-0-0-title"' in page
    assert "numbers are not searched for" in page


def test_a_kalman_filters_expectation_is_what_its_surprise_is_measured_by(series: dict[str, TrainedRun]) -> None:
    """The log density of a step, from the mean and spread that the page shows of it; where one column is missing, as
    two belong together."""
    found = inspect_run(series["kalman"], options=InspectOptions(max_tokens=20))
    wave, saw = found.reading.columns
    gaps = [t for t in range(20) if math.isnan(saw.values[t])]
    assert gaps
    for t in gaps:
        sd = (wave.high[t] - wave.low[t]) / 2 / 1.96
        z = (wave.values[t] - wave.middle[t]) / sd
        nats = 0.5 * z**2 + math.log(sd) + 0.5 * math.log(2 * math.pi)
        assert found.reading.bits[t + 1] == pytest.approx(nats / math.log(2), rel=1e-3, abs=1e-3)


def test_what_has_a_state_has_read_the_rows_before(series: dict[str, TrainedRun]) -> None:
    """What the page says each step cost is what evaluation says of it."""
    for run in series.values():
        found = inspect_run(run, options=InspectOptions(max_tokens=9))
        score = run.evaluate()
        np.testing.assert_allclose(found.reading.bits[1:], -score.log_densities[:9] / math.log(2), rtol=1e-4, atol=1e-4)


def test_an_example_shows_its_answers_and_what_reaches_its_first_step(tmp_path: Path) -> None:
    run = train("parity:8", "rnn", out=tmp_path / "run", steps=3, overrides=["model.model_dim=8"])
    found = inspect_run(run, options=InspectOptions(row=1))
    store = run.unseen_store()
    T = store.inputs.shape[1]
    assert len(found.reading.pieces) == T
    answers = found.reading.expected[-1]
    assert sum(option.probability for option in answers) == pytest.approx(1)
    right = run.run.schema.specs["label"].names[store.answers[1]]
    probability = next(option.probability for option in answers if option.piece == right)
    assert found.reading.bits[-1] == pytest.approx(-math.log2(probability), abs=1e-4)
    state = next(flow for flow in found.flow if flow.what == "state")
    assert len(state.by_lag) == T
    assert found.text.endswith(f"whose answer is {right}")
    write_inspection([found])


def test_what_was_asked_in_vain_is_said(runs: dict[str, TrainedRun], series: dict[str, TrainedRun]) -> None:
    for run, options in (
        (runs["ngram"], {"analogies": ("a b c",)}),
        (runs["ngram"], {"row": 3}),
        (series["kalman"], {"pairs": "missing.tsv"}),
    ):
        found = inspect_run(run, options=InspectOptions(**options))
        assert any(note.startswith(next(iter(options))) for note in found.reading.notes)


def test_text_for_what_reads_numbers_and_rows_that_are_not_there_are_refused(series: dict[str, TrainedRun]) -> None:
    with pytest.raises(ConfigError, match="reads numbers, not text"):
        inspect_run(series["kalman"], "some text")
    with pytest.raises(DataError, match="none with the number 9,999"):
        inspect_run(series["kalman"], options=InspectOptions(row=9999))


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_page_and_json_holds_what_it_shows(
    runs: dict[str, TrainedRun], tmp_path: Path, terminal: Terminal
) -> None:
    page = tmp_path / "pages" / "inspect.html"
    out, _ = terminal.done("inspect", runs["lstm"].path, runs["ngram"].path, "--text", "The books are", "--out", page)
    assert str(page) in out
    assert page.read_text(encoding="utf-8").count('class="column"') == 2 * 8
    out, _ = terminal.done("inspect", runs["gpt"].path, "--text", "The books", "--json")
    (found,) = json.loads(out)["results"]
    assert found["reading"]["pieces"][1:] == list("The books")
    assert len(found["attention"]) == 2
    assert found["flow"]
    assert found["reach"] >= 1


def test_without_a_text_unseen_text_of_the_run_is_read(
    runs: dict[str, TrainedRun], tmp_path: Path, terminal: Terminal
) -> None:
    out, _ = terminal.done("inspect", runs["ngram"].path, "--json", "--max-tokens", "40")
    assert len(json.loads(out)["results"][0]["reading"]["pieces"]) == 41


def test_standard_input_is_read_once_for_two_runs(
    runs: dict[str, TrainedRun], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"The \xff books")))
    out, _ = terminal.done("inspect", runs["ngram"].path, runs["lstm"].path, "--text", "-", "--json")
    assert [one["text"] for one in json.loads(out)["results"]] == ["The \ufffd books"] * 2


def test_a_notebook_shows_the_page_and_python_saves_it(runs: dict[str, TrainedRun], tmp_path: Path) -> None:
    found, other = (runs[name].inspect("The books") for name in ("gpt", "ngram"))
    found.save(tmp_path / "new" / "page.html", beside=other)
    with pytest.raises(DataError, match="cannot be written"):
        found.save(tmp_path)
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8").count('class="column"') == 2 * 8
    framed = found._repr_html_()
    assert framed.count("<") == 2  # all else is inside the attribute
    assert found.to_dict()["flow"]


def test_two_texts_of_one_run_are_told_apart(runs: dict[str, TrainedRun]) -> None:
    page = write_inspection([inspect_run(runs["ngram"], text) for text in ("The books", "The animals")])
    assert "<h3>The books</h3>" in page
    assert "<h3>The animals</h3>" in page


def test_what_is_impossible_is_shown_as_such(show: Any, tmp_path: Path) -> None:
    """A model of counts alone gives unseen characters no probability: the page must bear a cost without end."""
    (tmp_path / "text.txt").write_text("abab abba " * 200)
    run = train(
        tmp_path / "text.txt", "ngram", out=tmp_path / "run", tokenizer="char",
        overrides=["model.smoothing=maximum_likelihood", "model.order=3"],
    )  # fmt: skip
    found = inspect_run(run, "abba bbbbb")
    assert math.inf in found.reading.bits
    page = show(found)
    page.hover(f"#reading [data-part=tokens] span:nth-child({found.reading.bits.index(math.inf) + 1})")
    assert "impossible" in page.inner_text("#reading [data-part=card]")


def test_the_tree_of_a_translation_ends_in_the_translation(tmp_path: Path) -> None:
    run = train("dates:en-fr:500", "seq2seq", out=tmp_path / "run", steps=60, overrides=["model.model_dim=32"])
    found = inspect_run(run, "March 5, 2024")
    best = found.search.path(found.search.answers[0].tokens)
    pieces = [found.search_pieces[found.search.nodes[place].token] for place in best]
    assert pieces in (found.reading.pieces[1:], found.reading.pieces[1:-1])  # what was cut has no end


def test_the_boundary_is_the_end_of_a_translation(runs: dict[str, TrainedRun]) -> None:
    """A beam as wide as the vocabulary keeps every first token, the boundary among them."""
    run = runs["general"]
    boundary = run.run.schema.specs["tokens"].tokenizer.boundary
    found = inspect_run(run, "March 5, 2024", options=InspectOptions(beam_width=run.model.vocab_size))
    assert found.search_pieces[boundary] == END


def test_encoders_stand_over_the_source_and_what_was_read_from_behind_is_turned(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["general"], "March 5, 2024", target="5 mars")
    sides = {each.side: len(each.values) for each in found.over_text}
    assert sides == {"source": len("March 5, 2024") + 1, "pieces": len("5 mars") + 1}
    encoder = next(module for name, module in runs["general"].model.named_modules() if name.endswith("encoder"))
    backwards = next(each for each in found.over_text if each.site.endswith("cells.1") and each.what == "state")
    with torch.no_grad():
        embedded = runs["general"].model.body.source_embedding(found.reading.batch.inputs["source"])
        outputs = encoder(embedded, encoder.initial_state(1))[0][0]  # (S, 2 * D)
    half = outputs.shape[1] // 2
    np.testing.assert_allclose(backwards.values, outputs[:, half:].numpy(), atol=1e-5)


def test_tokens_used_are_those_of_the_token_they_stand_over(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["ngram"], "The writer")
    (used,) = found.over_text
    order = runs["ngram"].model.config.order
    assert used.values[:, 0].tolist() == [0, *(min(place, order - 1) for place in range(1, 11))]


def test_what_does_not_go_together_is_refused(runs: dict[str, TrainedRun], tmp_path: Path, terminal: Terminal) -> None:
    paths = [runs[name].path for name in ("lstm", "gpt", "ngram")]
    assert "one or two" in terminal.refuses("inspect", *paths, "--text", "a")
    assert "no text fits both" in terminal.refuses("inspect", paths[0], runs["general"].path, "--text", "a")
    assert "not be negative" in terminal.refuses("inspect", paths[0], "--text", "a", "--seed", "-1")
    assert "at least 1" in terminal.refuses("inspect", paths[0], "--text", "a", "--max-tokens", "0")
    assert "three words" in terminal.refuses("inspect", paths[0], "--text", "a", "--analogy", "king")
    assert "cannot be written" in terminal.refuses("inspect", paths[0], "--text", "a", "--out", tmp_path)


def _attention(random: np.random.Generator, heads: int, T: int, *, is_causal: bool) -> np.ndarray:
    scores = 2 * random.normal(size=(heads, T, T)).astype(np.float32)
    weights = np.exp(np.where(np.tri(T, dtype=bool), scores, -np.inf) if is_causal else scores)
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("kinds", [["causal"], ["self", "causal", "cross"]], ids=["gpt", "transformer"])
def test_a_page_of_500_tokens_and_six_layers_stays_below_8_megabytes(
    kinds: list[str], runs: dict[str, TrainedRun]
) -> None:
    """Attention and streams of noise, which cannot be deflated as what a model does can."""
    random, T = np.random.default_rng(0), 501
    found = inspect_run(runs["lstm"], "The writer " * 50)
    found.attention = [
        AttentionMap(f"blocks.{layer}", kind, _attention(random, 8, T, is_causal=kind == "causal"))
        for layer in range(6)
        for kind in kinds
    ]
    found.over_text = [OverText(f"blocks.{layer}", "stream", random.normal(size=(T, 512))) for layer in range(6)]
    assert len(write_inspection([found]).encode()) < 8_000_000


def ticks_of(page: str, title: str) -> list[tuple[Any, ...]]:
    """The ticks below and beside each chart of a title, with their places."""
    charts = [chart for chart in page.split("<svg")[1:] if f">{title}</title>" in chart]
    return [tuple(re.findall(r'<text class="tick" x="([^"]*)" y="([^"]*)"[^>]*>([^<]*)<', chart)) for chart in charts]


def test_charts_side_by_side_have_one_scale(runs: dict[str, TrainedRun]) -> None:
    """Other models, and texts of different length."""
    one, other = inspect_run(runs["lstm"], "The writer of the books is"), inspect_run(runs["gpt"], "The writer of")
    page = write_inspection([one, other])
    for title in ("Gradient by lag", "Influence by distance", "Loss by position"):
        first, second = ticks_of(page, title)
        assert first == second, title
    alone = write_inspection([one]), write_inspection([other])
    assert ticks_of(alone[0], "Influence by distance") != ticks_of(alone[1], "Influence by distance")


def test_costs_are_told_by_character_too(runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["gpt"], "The writer")
    total = sum(bits for bits in found.reading.bits if not math.isnan(bits))
    assert f"({total / len('The writer'):.2f} a character)" in write_inspection([found])


def test_tabs_with_nothing_to_see_say_so(runs: dict[str, TrainedRun]) -> None:
    """Before they are opened; where one of two models has something, there is something to see."""
    ngram, gpt = (inspect_run(runs[name], "The writer") for name in ("ngram", "gpt"))
    pages = [write_inspection(found) for found in ([ngram], [ngram, gpt])]
    empty = [re.findall(r'<a href="#(\w+)" class="is-empty">', page) for page in pages]
    assert empty == [["attention", "gradients", "embeddings", "positions"], []]
    assert re.search(r'class="is-empty">Attention <small>\(nothing to see\)', pages[0])


def test_exactly_half_of_minimal_pairs_is_explained(runs: dict[str, TrainedRun]) -> None:
    pairs = builtin_pairs()
    undecided = about_halves([Judged(pair, 0.0) for pair in pairs])
    assert undecided == [
        f"In {len(pairs):,} of {len(pairs):,} both are equally probable, as two words are of which the model knows "
        "neither: these count as half right."
    ]
    plural = [Judged(pair, 1.0 if pair.good in (" are", " were", " have") else -1.0) for pair in pairs]
    assert about_halves(plural) == [
        "It chooses the same word whatever stands before, and in this list each is right as often as the other."
    ]
    by_noun = [Judged(pair, 1.0 if "writer" in pair.beginning or n % 2 else -1.0) for n, pair in enumerate(pairs)]
    assert about_halves(by_noun) == []
    found = inspect_run(runs["gpt"], "The writer")
    found.minimal_pairs = plural
    assert "It chooses the same word whatever stands before" in write_inspection([found])


# --- in a browser -----------------------------------------------------------------------------------------------------


def test_resting_on_a_token_shows_its_cost_gates_and_alternatives(show: Any, runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["lstm"], "The writer is")
    page = show(found)
    page.hover("#reading [data-part=tokens] span:nth-child(5)")
    card = page.inner_text("#reading [data-part=card]")
    assert f"{found.reading.bits[4]:.2f}".rstrip("0").rstrip(".") in card
    assert "forget gate" in card
    assert "expected here" in card.lower()
    page.keyboard.press("Tab")
    page.focus("#reading [data-part=tokens] span:nth-child(5)")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#reading [data-part=card] h4") == found.reading.pieces[5].replace(" ", "␣")
    page.click("nav a[href='#inside']")  # what was chosen is chosen there, too
    assert "is-current" in page.locator("#inside [data-part=tokens] span").nth(5).get_attribute("class")


def test_equal_costs_have_equal_colours_in_both_columns(show: Any, runs: dict[str, TrainedRun]) -> None:
    one, other = (inspect_run(runs[name], "The writer") for name in ("lstm", "gpt"))
    one.reading.bits[1:] = [8.0] * 10
    other.reading.bits[1:] = [8.0] * 9 + [32.0]
    page = show(one, other)
    colours = [
        page.locator(f"[data-view=reading][data-model='{place}'] [data-part=tokens] span").nth(3).get_attribute("style")
        for place in (0, 1)
    ]
    assert colours[0] == colours[1]
    assert " 12%" in colours[0]  # a quarter of the strongest, which is 48


def test_tabs_switch_by_pointer_and_keyboard(show: Any, runs: dict[str, TrainedRun]) -> None:
    page = show(inspect_run(runs["gpt"], "The writer is"))
    assert page.is_visible("#reading")
    assert not page.is_visible("#attention")
    page.click("nav a[href='#attention']")
    assert page.is_visible("#attention")
    page.keyboard.press("ArrowRight")
    assert page.is_visible("#gradients")
    assert not page.is_visible("#attention")
    page.keyboard.press("Home")
    assert page.is_visible("#reading")


def test_heads_and_layers_switch_and_colour_the_text(show: Any, runs: dict[str, TrainedRun]) -> None:
    page = show(inspect_run(runs["gpt"], "The writer is"))
    page.click("nav a[href='#attention']")
    box = "#attention [data-part=controls]"
    assert page.locator(f"{box} select").nth(1).locator("option").all_inner_texts() == ["all heads", "head 1", "head 2"]

    def colours() -> list[str]:
        script = "spans => spans.map(span => span.style.backgroundColor)"
        return page.eval_on_selector_all("#attention [data-part=tokens] span", script)

    page.hover("#attention [data-part=tokens] span:nth-child(8)")
    seen = {}
    for layer in ("0", "1"):
        page.locator(f"{box} select").nth(0).select_option(layer)
        for head in ("0", "1"):
            page.locator(f"{box} select").nth(1).select_option(head)
            page.hover("#attention [data-part=tokens] span:nth-child(8)")
            seen[layer, head] = tuple(colours())
    assert len(set(seen.values())) > 1
    assert all(not colour for colour in seen["0", "0"][8:])  # the future is closed


def test_an_alignment_is_told_of_the_token_that_is_written(show: Any, runs: dict[str, TrainedRun]) -> None:
    """Row t of the map is the step that writes token t + 1: "5" is given an attention to "5", and so on."""
    found = inspect_run(runs["general"], "March 5, 2024", target="5 mars")
    planted = np.zeros_like(found.attention[0].weights)  # (1, T, S)
    for row, seen in ((0, 6), (2, 0), (6, 13)):
        planted[0, row, seen] = 1.0
    found.attention = [AttentionMap(found.attention[0].site, "cross", planted)]
    page = show(found)
    page.click("nav a[href='#attention']")
    for place, told in ((0, "5 looks at 5 100 %"), (2, "m looks at M 100 %"), (6, "⟨end⟩ looks at ⟨end⟩ 100 %")):
        page.hover(f"#attention [data-part=tokens] span:nth-child({place + 1})")
        assert page.inner_text("#attention output") == told


def test_a_unit_is_chosen_from_the_table(show: Any, runs: dict[str, TrainedRun]) -> None:
    found = inspect_run(runs["lstm"], "The writer (of) is")
    page = show(found)
    page.click("nav a[href='#inside']")
    button = page.locator("#inside button[data-layer]").first
    unit = button.get_attribute("data-unit")
    button.click()
    assert page.input_value("#inside input[type=number]") == unit


def test_figures_can_be_saved_as_svg(show: Any, runs: dict[str, TrainedRun]) -> None:
    page = show(inspect_run(runs["gpt"], "The writer is"), accept_downloads=True)
    for view in ("reading", "inside", "attention", "gradients", "memory", "search", "embeddings", "positions"):
        page.click(f"nav a[href='#{view}']")
        with page.expect_download() as download:
            page.locator(f"#{view} button.save").first.click()
        saved = Path(download.value.path()).read_text()
        drawn = ElementTree.fromstring(saved)
        assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(list(drawn.iter())) > 2


def test_two_models_stand_side_by_side_in_the_dark(show: Any, runs: dict[str, TrainedRun]) -> None:
    text = "The writer is"
    page = show(inspect_run(runs["ngram"], text), inspect_run(runs["lstm"], text), color_scheme="dark")
    boxes = [page.locator("#reading .column").nth(place).bounding_box() for place in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] < boxes[1]["x"]
    page.click("#theme")
    page.click("nav a[href='#attention']")
    assert page.inner_text("#attention").count("has no attention") == 2
