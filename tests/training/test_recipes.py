"""Recipes: those we ship can be read and built; a figure is reached or not; the shortened form never says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from runs_by_hand import prepare

import seqwise
from seqwise.cli import reproducing
from seqwise.config import read_toml
from seqwise.data import scene_questions, toys
from seqwise.data.builtin import BUILTIN, PAIR_TOYS, is_example_set
from seqwise.data.public import PUBLIC
from seqwise.data.schema import (
    CAPTION,
    CHOICE,
    LABEL,
    LABELS,
    MASKED_TOKEN,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    PICTURE,
    RECONSTRUCTION,
    SEQUENCE,
    SPAN,
    TAG,
)
from seqwise.data.seen_looks import is_seen_set
from seqwise.errors import ConfigError
from seqwise.evaluation.answers import LabelScore, LabelSetScore, NumberScore
from seqwise.evaluation.captions import CaptionScore, RowNats
from seqwise.evaluation.choices import ChoiceScore
from seqwise.evaluation.entities import TagScore
from seqwise.evaluation.forecasts import ForecastScore
from seqwise.evaluation.likelihood import Score
from seqwise.evaluation.masked import MaskedScore
from seqwise.evaluation.pictures import PictureScore
from seqwise.evaluation.reconstruction import ReconstructionScore
from seqwise.evaluation.spans import SpanScore
from seqwise.evaluation.translations import Likelihood, TranslationScore
from seqwise.goals import GOALS
from seqwise.training.recipes import Recipe, RecipeFile, all_recipes, find_recipe, read_recipe

FIXTURES = Path(__file__).parents[1] / "fixtures" / "format-3"
FOLDER = Path(seqwise.__file__).parent / "recipes"
SHIPPED = sorted(FOLDER.glob("*.toml"))
each_shipped = pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
TEXT = "the cat sat on the mat.\nthe dog sat on the log.\na cat and a dog sat.\n" * 60

CATS = """
family = "ngram"
[recipe]
title = "n-grams on cats"
data = "cats.txt"
metric = "nats_per_token"
published = 100.0
source = "made up"
signature = "nats per character"
minutes = 0.1
quick = ["model.order=2"]
[model]
order = 4
"""


@pytest.fixture
def cats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe and its text, in the folder where one stands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cats.txt").write_text(TEXT)
    (tmp_path / "cats.toml").write_text(CATS)
    return tmp_path / "cats.toml"


def a_recipe(**values: Any) -> Recipe:
    known = {
        "title": "t",
        "data": "d",
        "metric": "m",
        "published": 10.0,
        "source": "s",
        "signature": "s",
        "minutes": 1.0,
    }
    return Recipe(**{**known, **values})


# -- those we ship ---------------------------------------------------------------------------------------------------


def test_there_are_recipes() -> None:
    assert SHIPPED
    assert set(all_recipes()) >= {path.stem for path in SHIPPED}


@each_shipped
def test_a_recipe_can_be_read(path: Path) -> None:
    file = read_recipe(path)
    recipe = file.recipe
    assert file.name == path.stem
    assert find_recipe(file.name).resolve() == path.resolve()
    assert recipe.title
    assert recipe.source
    assert recipe.signature
    assert recipe.minutes > 0
    assert recipe.quick, "a recipe needs a shortened form"
    for source in recipe.sources:
        known = source.partition(":")[0] in {*BUILTIN, *PUBLIC, *PAIR_TOYS}
        assert known or is_example_set(source) or is_seen_set(source)


def names_of_score(kind: str) -> set[str]:
    one, one_row = np.ones((1, 1, 1)), RowNats(np.ones(1), np.ones(1, int), 1)
    scores: dict[str, Any] = {
        NEXT_TOKEN: Score(np.ones(4), np.ones(4, dtype=np.int64), 4, ""),
        NEXT_VALUES: ForecastScore(
            np.zeros(4), np.ones(4, bool), {"model": one, "naive": one, "seasonal": one}, one, ["a"], [1], ""
        ),
        LABEL: LabelScore(np.zeros(4, int), np.zeros(4, int), np.zeros((4, 1)), ["a"], ""),
        LABELS: LabelSetScore(np.ones((4, 1), bool), np.ones((4, 1), bool), np.ones(4), ["a"], ""),
        NUMBER: NumberScore(np.ones(4), np.ones(4), np.ones(4), ""),
        TAG: TagScore([["B"]], [["B"]], 0.1, "IOB2", ""),
        CHOICE: ChoiceScore(np.zeros(4, int), np.zeros(4, int), np.zeros((4, 1)), ["a"], ""),
        SPAN: SpanScore(["a"], [["a"]], 0.1, ""),
        MASKED_TOKEN: MaskedScore(np.ones(4), np.ones(4), np.ones(4), np.ones(4, bool), np.ones(4), np.ones(4)),
        PICTURE: PictureScore(np.ones(4), np.ones(4), 4),
        RECONSTRUCTION: ReconstructionScore(np.ones(4), np.ones(4)),
        CAPTION: CaptionScore(["a"], ["b"], [["b"]], one_row, np.zeros(1, int), one_row, None, ""),
        SEQUENCE: TranslationScore(["a"], ["b"], ["b"], Likelihood(1.0, 1, 1), ""),
    }
    return set(scores[kind].to_dict())


@each_shipped
def test_what_a_recipe_compares_is_a_number_of_the_score(path: Path) -> None:
    file = read_recipe(path)
    kinds = file.task.kinds
    assert any(file.recipe.metric in names_of_score(kind) for kind in kinds)
    assert all(set(file.evaluate_options()) <= set(GOALS[kind].score_options) for kind in kinds)


def test_what_a_goal_calls_its_metrics_are_numbers_of_its_score() -> None:
    for kind, goal in GOALS.items():
        if not goal.metrics:  # nothing to be judged by
            continue
        alike = [other for other, one in GOALS.items() if type(one) is type(goal)]  # one goal for all answers
        assert set(goal.metrics) <= set().union(*map(names_of_score, alike)), kind


@each_shipped
@pytest.mark.parametrize("quick", [False, True], ids=["whole", "quick"])
def test_the_settings_of_a_recipe_build(
    path: Path, quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On other data of the same kind, up to the first step."""
    file = read_recipe(path)
    (tmp_path / "cats.txt").write_text(TEXT * 10)
    for part in toys.EXAMPLES:
        monkeypatch.setitem(toys.EXAMPLES, part, 100)
    (tmp_path / "cats.tsv").write_text("".join(f"cat {n}\t{n} chats\n" for n in range(300)))
    rows = [(f"the {animal} {n} sat", animal) for n in range(100) for animal in ("cat", "rat")]
    (tmp_path / "cats.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    (tmp_path / "both.csv").write_text(
        "text,text2,label\n" + "".join(f"{text},a {label},{label}\n" for text, label in rows)
    )
    tagged = (f"{text.split()[2]} O\n{animal} B-animal\nsat O\n" for text, animal in rows)
    (tmp_path / "cats.conll").write_text("\n".join(tagged))
    task, labelled = file.task.name, "both.csv" if "pairing" in read_toml(path).get("model", {}) else "cats.csv"
    other = {
        "captions": "cats",
        "pairs": "cats.tsv",
        "text": "cats.txt",
        "masked": "cats.txt",
        "label": labelled,
        "tags": "cats.conll",
    }
    (tmp_path / "cats").mkdir()
    for n in range(40):
        Image.new("L", (16, 16), 5 * n).save(tmp_path / "cats" / f"{n}.png")
    (tmp_path / "cats" / "captions.csv").write_text("image,caption\n" + "".join(f"{n}.png,a cat\n" for n in range(40)))
    name = file.recipe.sources[0]
    monkeypatch.setattr(scene_questions, "SCENES", {"train": 12, "valid": 3, "test": 3})
    drawn = {"span": "rooms", "images": "digits8x8", "paint": "digits8x8", "questions": "scenes"}
    data = name if is_example_set(name) else drawn[task] if task in drawn else str(tmp_path / other[task])
    data = "digits-pixels" if data.startswith("mnist") else data
    session = prepare(
        data, model=file.family, out=tmp_path / "run", config_file=path, overrides=file.recipe.quick if quick else []
    )
    values, config = read_toml(path), session.run.config
    changed = {setting.partition("=")[0] for setting in file.recipe.quick} if quick else set()
    for section in ("model", "training"):
        for name, value in values.get(section, {}).items():
            if f"{section}.{name}" not in changed:
                assert getattr(getattr(config, section), name) == value
    assert session.run.build_model() is not None


# -- reading ---------------------------------------------------------------------------------------------------------


def test_a_recipe_is_read_with_its_defaults(cats: Path) -> None:
    file = read_recipe(cats)
    assert (file.name, file.family) == ("cats", "ngram")
    assert (file.recipe.better, file.recipe.tolerance, file.recipe.split) == ("lower", 0.0, "test")
    assert (file.recipe.evaluate, file.recipe.quick) == ([], ["model.order=2"])


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("[recipe]", "[recipes]", "a recipe needs a section [recipe] with its data set and figure."),
        ('family = "ngram"', "", 'a recipe needs to name its family, such as family = "lstm".'),
        ('family = "ngram"', "family = 3", "a recipe needs to name its family"),
        ('data = "cats.txt"\n', "", 'setting "recipe.data" is missing.'),
        ("published = 100.0\n", "", 'setting "recipe.published" is missing.'),
        ("published = 100.0", 'published = "low"', "recipe.published = 'low' should be a number."),
        ("metric =", "metrics =", 'unknown setting "recipe.metrics". Did you mean "recipe.metric"?'),
        ("minutes = 0.1", 'minutes = 0.1\nbetter = "more"', 'recipe.better = "more" is not one of lower, higher.'),
        ("minutes = 0.1", 'minutes = 0.1\nsplit = "train"', 'recipe.split = "train" is not one of valid, test.'),
        ('quick = ["model.order=2"]', 'quick = "model.order=2"', "recipe.quick = 'model.order=2' should be a list."),
        ("[recipe]", "[recipe", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_recipe_names_the_file(cats: Path, before: str, after: str, sentence: str) -> None:
    assert before in CATS
    cats.write_text(CATS.replace(before, after))
    with pytest.raises(ConfigError) as caught:
        read_recipe(cats)
    assert str(caught.value).startswith(f"{cats}: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (SHIPPED[0].stem[:-1], f'unknown recipe "{SHIPPED[0].stem[:-1]}". Did you mean "'),
        ("nowhere.toml", "nowhere.toml: no such recipe."),
        ("recipes/nowhere", "recipes/nowhere: no such recipe."),
    ],
)
def test_an_unknown_recipe_is_told(name: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_recipe(name)
    assert str(caught.value).startswith(sentence)


def test_a_recipe_beside_where_one_stands_comes_first(cats: Path) -> None:
    name = SHIPPED[0].stem
    folder = cats.parent / "recipes"
    folder.mkdir()
    (folder / f"{name}.toml").write_text(CATS)
    assert read_recipe(find_recipe(name)).recipe.title == "n-grams on cats"
    assert find_recipe(str(cats)) == cats


def test_options_of_the_evaluation_are_words_and_whole_numbers() -> None:
    recipe = a_recipe(evaluate=["view=sliding", "context=16", "stride=8"])
    file = RecipeFile(Path("x.toml"), recipe, "gpt")
    assert file.evaluate_options() == {"view": "sliding", "context": 16, "stride": 8}


# -- the verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("better", "tolerance", "value", "reached"),
    [
        ("lower", 0.0, 9.9, True),
        ("lower", 0.0, 10.0, True),
        ("lower", 0.0, 10.1, False),
        ("lower", 0.5, 10.5, True),
        ("lower", 0.5, 10.6, False),
        ("higher", 0.0, 10.1, True),
        ("higher", 0.0, 10.0, True),
        ("higher", 0.0, 9.9, False),
        ("higher", 0.5, 9.5, True),
        ("higher", 0.5, 9.4, False),
        ("lower", 0.0, float("nan"), False),
        ("higher", 0.0, float("nan"), False),
    ],
)
def test_a_figure_is_reached_or_not(better: Any, tolerance: float, value: float, reached: bool) -> None:
    assert a_recipe(better=better, tolerance=tolerance).reached(value) is reached


# -- seqwise reproduce -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("published", "verdict"), [(100.0, "reached"), (0.001, "not reached")])
def test_a_recipe_is_trained_scored_and_judged(terminal: Any, cats: Path, published: float, verdict: str) -> None:
    cats.write_text(CATS.replace("published = 100.0", f"published = {published}"))
    out, err = terminal.done("reproduce", cats)
    assert out.splitlines()[-1] == verdict
    assert f"to reach: {published:g} (nats per character)" in out.splitlines()[0]
    assert out.splitlines()[1].startswith("signature: ")
    whole_score = [line.partition(":")[0] for line in out.splitlines()[2:-1]]
    assert whole_score == ["bits per character", "nats per token", "perplexity per token"]
    assert f"n-grams on cats: nats_per_token of {published:g} (made up)" in err
    assert "about 0.1 minutes on two cores" in err
    assert (cats.parent / "runs" / "cats" / "card.md").exists()


def test_the_shortened_form_never_says_reached(terminal: Any, cats: Path) -> None:
    out, err = terminal.done("reproduce", cats, "--quick")
    assert out.splitlines()[-1] == "shortened form: no verdict"
    assert "reached" not in out
    assert "shortened: model.order=2; this form shows that the recipe runs, not what it reaches" in err
    config = read_toml(cats.parent / "runs" / "cats-quick" / "config.toml")
    assert config["model"]["order"] == 2


@pytest.mark.parametrize(
    ("quick", "published", "reached"),
    [(False, 100.0, True), (False, 0.001, False), (True, 100.0, None), (True, 0.001, None)],
)
def test_a_program_reads_one_json_object(
    terminal: Any, cats: Path, quick: bool, published: float, reached: bool | None
) -> None:
    cats.write_text(CATS.replace("published = 100.0", f"published = {published}"))
    out, _ = terminal.done("reproduce", cats, "--json", "--out", "here", *(["--quick"] if quick else []))
    found = json.loads(out)["results"][0]
    assert found["reached"] is reached
    assert (found["recipe"], found["quick"], found["run"]) == ("cats", quick, "here")
    assert (found["metric"], found["published"], found["split"]) == ("nats_per_token", published, "test")
    assert 0 < found["value"] < 10
    assert "seqwise=" in found["signature"]
    assert found["score"]["nats_per_token"] == found["value"]
    assert {"bits_per_char", "perplexity"} < set(found["score"])


def test_the_part_and_the_options_of_the_evaluation_are_those_of_the_recipe(terminal: Any, cats: Path) -> None:
    more = 'split = "valid"\nevaluate = ["view=disjoint", "context=16"]\nquick ='
    cats.write_text(CATS.replace("quick =", more))
    found = json.loads(terminal.done("reproduce", cats, "--json")[0])["results"][0]
    assert found["split"] == "valid"
    assert found["signature"].startswith("disjoint:context=16|valid:")


def test_the_list_names_every_recipe_with_its_figure(terminal: Any) -> None:
    out, err = terminal.done("reproduce")
    assert err == ""
    names = [line.split()[0] for line in out.splitlines()[1:]]
    assert names == sorted(all_recipes())
    for path in SHIPPED:
        recipe = read_recipe(path).recipe
        (line,) = (line for line in out.splitlines() if line.split()[0] == path.stem)
        assert f"{recipe.metric} {'<=' if recipe.better == 'lower' else '>='} {recipe.published:g}" in line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no-such-recipe-at-all"], 'unknown recipe "no-such-recipe-at-all".'),
        (["nowhere.toml"], "nowhere.toml: no such recipe."),
        (["cats.toml", "--resume"], "no such run folder"),
    ],
)
def test_a_mistake_is_one_sentence(terminal: Any, cats: Path, arguments: list[str], sentence: str) -> None:
    code, out, err = terminal.run("reproduce", *arguments)
    assert (code, out) == (2, "")
    told = [line for line in err.splitlines() if line.startswith("error: ")]
    assert told == [err.splitlines()[-1]]
    assert sentence in told[0]


def test_a_run_that_is_there_is_not_overwritten(terminal: Any, cats: Path) -> None:
    terminal.done("reproduce", cats)
    code, _, err = terminal.run("reproduce", cats)
    assert code == 2
    assert "runs/cats exists already." in err


def test_a_metric_that_the_score_does_not_have_is_told(terminal: Any, cats: Path) -> None:
    cats.write_text(CATS.replace("nats_per_token", "nats_per_letter"))
    code, _, err = terminal.run("reproduce", cats)
    assert code == 2
    assert "nats_per_letter" in err


def test_a_shortened_run_that_is_resumed_gets_no_verdict_either(terminal: Any, cats: Path) -> None:
    terminal.done("reproduce", cats, "--quick", "--out", "here")
    _, out, _ = terminal.run("reproduce", cats, "--resume", "--out", "here")
    assert out.splitlines()[-1:] != ["reached"]


# -- recipes that come first -----------------------------------------------------------------------------------------

LABELLED = """
family = "lstm"
[recipe]
title = "t"
data = "cats.csv"
metric = "METRIC"
published = 100.0
source = "made up"
signature = "s"
minutes = 0.1
split = "valid"
quick = ["training.steps=1"]
MORE
[tokenizer]
kind = "word"
[training]
steps = 2
"""


def test_a_recipe_starts_from_the_run_of_another_which_is_trained_once(
    terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(f"the {animal} {n} sat", animal) for n in range(60) for animal in ("cat", "rat")]
    (tmp_path / "cats.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    (tmp_path / "recipes").mkdir()
    writes = LABELLED.replace("METRIC", "perplexity").replace("MORE", 'task = "text"\n[model]\nmodel_dim = 12')
    (tmp_path / "recipes" / "writer.toml").write_text(writes)
    (tmp_path / "recipes" / "labeller.toml").write_text(
        LABELLED.replace("METRIC", "accuracy").replace("MORE", 'start = "writer"')
    )
    _, err = terminal.done("reproduce", "labeller")
    assert "writer comes first:" in err
    assert "started from scratch: head.label" in err
    config = read_toml(tmp_path / "runs" / "labeller" / "config.toml")
    assert config["model"]["model_dim"] == 12
    assert read_toml(tmp_path / "runs" / "writer" / "config.toml")["task"] == "text"
    _, err = terminal.done("reproduce", "labeller", "--out", "runs/again")
    assert "writer comes first, and is there: runs/writer" in err
    _, err = terminal.done("reproduce", "labeller", "--quick")
    assert (tmp_path / "runs" / "writer-quick").exists()


def test_a_recipe_starts_from_a_model_of_others_which_is_imported_once(
    terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []

    def fake_import(name: Path, out: Path, *, tell: Any) -> None:
        asked.append(str(name))
        shutil.copytree(FIXTURES / "bert", out)

    monkeypatch.setattr(reproducing, "import_hf", fake_import)
    rows = [(f"the {animal} {n} sat", animal) for n in range(60) for animal in ("cat", "rat")]
    (tmp_path / "cats.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    tuned = LABELLED.replace("METRIC", "accuracy").replace("MORE", 'imported = "cats/small-bert"')
    tuned = tuned.replace('"lstm"', '"bert"').replace('[tokenizer]\nkind = "word"\n', "")
    (tmp_path / "tuned.toml").write_text(tuned)
    _, err = terminal.done("reproduce", "tuned.toml")
    assert "cats/small-bert comes first:" in err
    assert read_toml(tmp_path / "runs" / "tuned" / "config.toml")["model"]["model_dim"] == 8
    _, err = terminal.done("reproduce", "tuned.toml", "--out", "runs/again")
    assert "cats/small-bert comes first, and is there: runs/small-bert" in err
    assert asked == ["cats/small-bert"]
