"""The verbs from Python: they can be found, their parameters are named, what they return can be read."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import seqwise
from seqwise.comparison.request import ComparisonRequest
from seqwise.decoding import DecodingConfig
from seqwise.inspection.options import InspectOptions
from seqwise.training.preparing import prepare
from seqwise.training.request import Request

TEXT = "the cat sat on the mat and the rat sat on the cat\n" * 40
PUBLIC = [seqwise.train, seqwise.compare, seqwise.load, seqwise.continue_training, seqwise.continue_comparison]
METHODS = [member for name, member in vars(seqwise.TrainedRun).items() if name[0] != "_" and inspect.isfunction(member)]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "cats.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def run(text: Path) -> seqwise.TrainedRun:
    return seqwise.train(text, "ngram", out=text.with_name("cats"))


def test_names_are_found_before_torch_is_imported() -> None:
    code = "import sys, seqwise; print(*dir(seqwise)); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    names, has_torch = out.splitlines()
    assert set(names.split()) >= set(seqwise.__all__)
    assert not {"os", "Any"} & set(names.split())
    assert has_torch == "False"


def test_help_tells_the_functions_with_their_parameters() -> None:
    told = pydoc.render_doc(seqwise, renderer=pydoc.plaintext)
    for name in set(seqwise.__all__) - {"__version__"}:
        assert name in told
    assert "minutes: " in told
    assert "class TrainedRun" in told


@pytest.mark.parametrize("function", [*PUBLIC, *METHODS], ids=lambda function: function.__name__)
def test_every_parameter_is_named(function: Any) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    assert function.__doc__


def defaults(function: Any) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


@pytest.mark.parametrize("name", ["generate", "hypotheses"])
def test_continuing_is_told_what_search_is_told(name: str) -> None:
    told = defaults(getattr(seqwise.TrainedRun, name))
    assert {field.name: told[field.name] for field in fields(DecodingConfig)} == {
        field.name: field.default for field in fields(DecodingConfig)
    }


def test_functions_pass_on_all_that_the_library_can_be_told() -> None:
    told = defaults(seqwise.train)
    assert {field.name for field in fields(Request)} - set(told) == {"source"}  # called data
    assert set(defaults(prepare)) - set(told) == {"request", "schema"}
    assert set(defaults(ComparisonRequest)) - set(defaults(seqwise.compare)) == {"source"}
    inspected = defaults(seqwise.TrainedRun.inspect)
    assert {field.name: inspected[field.name] for field in fields(InspectOptions)} == {
        field.name: field.default for field in fields(InspectOptions)
    }
    search = {field.name for field in fields(DecodingConfig)} - {"stop"}
    for name in ("answers", "translate"):
        assert search <= set(defaults(getattr(seqwise.TrainedRun, name)))


def test_what_is_asked_arrives(run: seqwise.TrainedRun, text: Path) -> None:
    found = run.hypotheses("the ", method="beam", beam_width=3, num_results=3, max_tokens=4)
    assert [len(hypothesis.tokens) for hypothesis in found] == [4] * 3
    assert len(run.generate("the ", max_tokens=5, seed=3)) == len("the ") + 5
    assert "|valid:" in run.evaluate(split="valid").signature
    other = seqwise.train(text, "ngram", out=text.with_name("other"), tokenizer="word", overrides=["model.order=2"])
    assert (other.tokenizer.kind, other.model.config.order) == ("word", 2)


def test_runs_and_scores_can_be_read(run: seqwise.TrainedRun) -> None:
    assert repr(run).startswith(
        f"<TrainedRun {run.path}: ngram on text; tokenizer char, 29 tokens; trained 1 step; best"
    )
    assert repr(run.evaluate()) == f"<Score: {run.evaluate().headline()}>"
    page = run._repr_html_()
    assert f"<caption>{run.path}</caption>" in page
    assert '<td style="text-align: left">ngram</td>' in page
    assert "cats.txt: 2,000 characters" in page


def test_a_page_about_a_run_escapes_its_name(text: Path) -> None:
    folder = text.with_name("a<b>&c")
    assert "a&lt;b&gt;&amp;c" in seqwise.train(text, "ngram", out=folder)._repr_html_()


def test_mistakes_are_told_in_the_words_of_python(text: Path, run: seqwise.TrainedRun) -> None:
    with pytest.raises(seqwise.ConfigError, match=r"^give one budget: minutes=\.\.\., steps=\.\.\. or epochs=\.\.\.$"):
        seqwise.train(text, "gpt", minutes=1, steps=2)
    with pytest.raises(seqwise.ConfigError, match=r"seqwise\.continue_training, or choose another out=\.\.\.$"):
        seqwise.train(text, "ngram", out=run.path)
    with pytest.raises(seqwise.ConfigError, match=r"^minutes=0 should be above 0\.$"):
        seqwise.compare(text, minutes=0)
    with pytest.raises(seqwise.CheckpointError, match=r"Train one with: seqwise\.train\(DATA, out="):
        seqwise.load(text.with_name("nothing"))
    with pytest.raises(seqwise.ConfigError, match=r'temperature = 0.*: method="greedy"\.$'):
        run.generate(temperature=0)
    with pytest.raises(seqwise.ConfigError, match=r"which has no target; drop target=\.\.\.$"):
        run.inspect("the cat", target="x")


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("the cat", "the cat sat"),
        ("the cat ", "the cat sat"),
        ("the cat\n", "the cat\nsat"),
        ("", "sat"),
        ("<", "< sat"),
    ],
)
def test_a_word_stands_by_itself_behind_the_prompt(text: Path, tmp_path: Path, prompt: str, expected: str) -> None:
    words = seqwise.train(text, "ngram", out=tmp_path / "words", tokenizer="word")
    sat = words.tokenizer.encode("sat").tolist()
    assert prompt + words.text_after(prompt, sat) == expected


def test_characters_follow_the_prompt_as_they_are(run: seqwise.TrainedRun) -> None:
    for prompt in ("the ", "the", "", "Ж\n"):
        for text in (" sat", "sat", "\n", "é"):
            assert run.text_after(prompt, run.tokenizer.encode(text).tolist()) == text


def test_word_models_write_words(text: Path, terminal: Any) -> None:
    terminal.done("train", text, "--model", "ngram", "--tokenizer", "word", "--out", "words")
    for options in ([], ["--num", "2", "--method", "beam"]):
        out, _ = terminal.done("generate", "words", "--prompt", "the cat", "--max-tokens", "3", "--seed", "1", *options)
        assert "the cat " in out
