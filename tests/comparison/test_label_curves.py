"""Scores against the number of labels, and what a start from a run is worth: the plan, what is refused, a small real
comparison from beginning to end, and what is made of its scores."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from comparison.in_process import Here
from conftest import Terminal
from hypothesis import given
from hypothesis import strategies as st
from runs_by_hand import at_most, prepare

import seqwise
from seqwise.cli.preflight import label_counts_of
from seqwise.comparison import compare as module
from seqwise.comparison import plan, verdict
from seqwise.comparison.compare import run_comparison
from seqwise.comparison.entrants import Start, choose_models, entrants
from seqwise.comparison.fork_server import Job
from seqwise.comparison.label_curves import label_curves, told_as
from seqwise.comparison.label_table import label_rows, label_sentences, notes_of_points
from seqwise.comparison.page import write_page
from seqwise.comparison.plan import (
    RESERVE,
    Contender,
    Settings,
    Timing,
    Trial,
    ladder,
    minutes_for_all,
    next_round,
    shared_anew,
)
from seqwise.comparison.request import ComparisonRequest
from seqwise.comparison.results import Comparison, Entry, Figure, LabelCurves, Metric
from seqwise.comparison.verdict import recommend
from seqwise.comparison.workspace import Workspace
from seqwise.config import to_json
from seqwise.errors import ConfigError
from seqwise.evaluation.segments import Segments, joined
from seqwise.run import Run
from seqwise.training import planning
from seqwise.training.sizing import answer
from seqwise.wording import in_python

START = Start("/somewhere/runs/lm", "lstm")
WRONG = Metric("share of wrong answers", "wrong", digits=4, complement="accuracy")
GOOD, BAD = ["fine", "warm", "lovely", "bright", "kind"], ["dull", "cold", "awful", "grey", "mean"]
FILLING = ["the", "film", "a", "story", "of", "two", "and", "old", "house", "is", "was", "it"]


def asked(**changes: Any) -> Settings:
    models = ["ngram-bag", "lstm", "lstm-from-lm"]
    made = Settings(["x.csv"], 60.0, models, task="label", start=START, label_counts=[100, 1000, None], seeds=3)
    return replace(made, **changes)


def timings(**changes: float) -> dict[str, Timing]:
    """Of counting, and of a network from scratch and from a run, which is twice as slow."""
    network = Timing(2.0, 0.01, 1e-3, units=1000, updates_per_row=0.5)
    slower = replace(network, update=0.02)
    found = {"ngram-bag": Timing(2.0, 0.0, 1e-3, units=1000), "lstm": network, "lstm-from-lm": slower}
    return {name: replace(timing, **changes) for name, timing in found.items()}


# -- who takes part --------------------------------------------------------------------------------------------------


def test_the_family_of_the_run_takes_part_twice_and_the_others_once() -> None:
    assert choose_models(["lstm", "ngram"], "label", START) == ["ngram-bag", "ngram-generative", "lstm", "lstm-from-lm"]
    assert choose_models(["lstm-from-lm"], "label", START) == ["lstm-from-lm"]
    assert "lstm-from-lm" in choose_models(None, "label", START)
    assert choose_models(["seq2seq-dot"], "pairs", Start("runs/dates", "seq2seq")) == [
        "seq2seq-dot", "seq2seq-from-dates",
    ]  # fmt: skip
    found = entrants("label", START)["lstm-from-lm"]
    assert (found.family, found.start, found.kinds) == ("lstm", START, ("label", "labels", "number"))
    assert entrants("label", START)["lstm"].start is None


@pytest.mark.parametrize(
    ("folder", "name"),
    [("runs/lm", "from-lm"), ("my lm!", "from-my-lm"), ("ünï", "from-n"), ("x-final", "from-x"), ("日本", "from-run")],
)
def test_a_run_by_any_name_gives_a_name_that_a_folder_can_have(folder: str, name: str) -> None:
    assert Start(folder, "lstm").name == name
    assert Workspace(Path("x")).run(f"lstm-{name}").name == f"lstm-{name}"


def test_who_starts_from_a_run_reads_with_the_vocabulary_of_the_run() -> None:
    settings = asked(tokenizers=["char", "word"], label_counts=[None])
    assert settings.vocabularies == ["char", "word", "from-lm"]
    assert [one for one in settings.contenders if one.entrant != "ngram-bag"] == [
        Contender("lstm", "char"), Contender("lstm", "word"), Contender("lstm-from-lm", "from-lm"),
    ]  # fmt: skip
    assert {t.name for t in ladder(settings, 0.0).trials} >= {"lstm-char", "lstm-word", "lstm-from-lm"}


# -- the plan --------------------------------------------------------------------------------------------------------


def test_everyone_is_trained_with_every_number_of_labels_and_every_seed() -> None:
    trials = ladder(asked(), 0.0).trials
    found = {(t.entrant, t.labels, t.seed) for t in trials}
    networks = {(n, c, s) for n in ("lstm", "lstm-from-lm") for c in (100, 1000, None) for s in range(3)}
    counted = {("ngram-bag", c, s) for c in (100, 1000) for s in range(3)} | {("ngram-bag", None, 0)}
    assert found == networks | counted  # which labels are drawn is chance, even to who counts
    assert len({t.name for t in trials}) == len(trials) == len(found)
    assert {t.name for t in trials if t.seed == 1 and t.labels == 100} == {
        "ngram-bag-100-seed-1", "lstm-100-seed-1", "lstm-from-lm-100-seed-1",
    }  # fmt: skip
    assert {t.timed_as for t in trials} == {"ngram-bag", "lstm", "lstm-from-lm"}  # one number of labels tells for all
    assert Settings.from_dict(json.loads(json.dumps(asked().to_dict()))) == asked()


def filled(needs: Sequence[float], seconds: float) -> float:
    """The level to which water rises in columns that hold so much."""
    for place, need in enumerate(sorted(needs)):
        level = seconds / (len(needs) - place)
        if need >= level:
            return level
        seconds -= need
    return math.inf


@given(
    st.lists(st.one_of(st.just(math.inf), st.floats(0.1, 100)), min_size=1, max_size=12),
    st.floats(1, 300),
    st.integers(1, 4),
)
def test_shares_fill_the_time_and_nobody_has_more_than_it_can_use(
    needs: list[float], seconds: float, workers: int
) -> None:
    level = plan._level(needs, seconds, workers)
    shares = [min(need, level) for need in needs]
    assert plan._wall_clock(shares, workers) <= seconds * (1 + 1e-9)
    assert level >= seconds / -(-len(needs) // workers) * (1 - 1e-9)  # at least an equal share
    if workers == 1:
        assert shares == pytest.approx([min(need, filled(needs, seconds)) for need in needs], rel=1e-6)


def test_few_labels_have_what_they_need_and_many_have_the_rest() -> None:
    found = timings()
    trials = ladder(asked(), 0.0, found).trials
    share = {trial.entry: 60 * trial.minutes for trial in trials}
    for name in ("lstm", "lstm-from-lm"):
        update = found[name].update
        assert share[f"{name}-100"] == pytest.approx(1.3 * (2.0 + 500 * update / 0.8 + 1.0))  # never less than 500
        assert share[f"{name}-1000"] == pytest.approx(1.3 * (2.0 + 500 * update / 0.8 + 1.0))
        assert share[name] > 10 * share[f"{name}-1000"]
    assert sum(60 * trial.minutes for trial in trials) == pytest.approx((1 - RESERVE) * 3600)
    long = {name: replace(timing, updates_per_row=2.0) for name, timing in found.items()}
    share = {trial.entry: 60 * trial.minutes for trial in ladder(asked(), 0.0, long).trials}
    assert share["lstm-1000"] == pytest.approx(1.3 * (2.0 + 2000 * 0.01 / 0.8 + 1.0))


def test_it_begins_with_the_fewest_labels_and_with_who_counts() -> None:
    waiting, rounds = ladder(asked(), 0.0, timings()).trials, []
    while waiting:
        now = next_round(asked(), waiting)
        rounds.append((now[0].labels, {trial.entrant for trial in now}))
        waiting = [trial for trial in waiting if trial not in now]
    networks = {"lstm", "lstm-from-lm"}
    assert rounds == [(labels, who) for labels in (100, 1000, None) for who in ({"ngram-bag"}, networks)]


def test_what_few_labels_did_not_need_is_for_the_others_and_what_they_took_too_long_for_is_gone() -> None:
    settings, found = asked(), timings()
    planned = ladder(settings, 0.0, found).trials
    begun = [trial for trial in planned if trial.labels == 100]
    due = sum(60 * trial.minutes for trial in begun)

    def share_of_all(spent: float) -> float:
        made = shared_anew(settings, spent, found, begun, 1000)
        assert not made.left_out
        assert {trial.name for trial in made.trials} == {t.name for t in planned} - {t.name for t in begun}
        return next(60 * trial.minutes for trial in made.trials if trial.name == "lstm")

    as_planned = share_of_all(due)
    assert as_planned == pytest.approx(next(60 * trial.minutes for trial in planned if trial.name == "lstm"))
    assert share_of_all(due / 2) > as_planned > share_of_all(2 * due)
    late = shared_anew(settings, (1 - RESERVE) * 3600 - 60, found, begun, 1000)
    assert late.left_out
    assert all("it needs" in reason for reason in late.left_out.values())
    assert sum(60 * trial.minutes for trial in late.trials) <= 60
    over = shared_anew(settings, 3600.0, found, begun, 1000)
    assert (over.trials, set(over.left_out)) == ([], {t.entry for t in planned} - {t.entry for t in begun})
    assert all(reason.endswith("no time is left") for reason in over.left_out.values())


def test_many_trials_leave_more_time_to_score_them_all() -> None:
    """25 trials that take 40 seconds each to be loaded again: the reserve of 12 % of an hour is not enough."""
    trials = ladder(asked(), 0.0, timings(start=40.0)).trials
    assert sum(60 * trial.minutes for trial in trials) == pytest.approx(3600 - len(trials) * (40.0 + 1.0))


# -- what is refused -------------------------------------------------------------------------------------------------


def reviews(num: int) -> str:
    """Half good and half bad, by one word of twelve."""
    chance, lines = random.Random(0), ["text,label"]
    for row in range(num):
        words = [*chance.choices(FILLING, k=8), chance.choice(GOOD if row % 2 else BAD)]
        chance.shuffle(words)
        lines.append(f"{' '.join(words)} {row},{'good' if row % 2 else 'bad'}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Reviews, a language model of them, and runs that are no start for labels; jobs in this process, one core."""
    made = tmp_path_factory.mktemp("curves")
    (made / "reviews.csv").write_text(reviews(160), encoding="utf-8")
    (made / "words.txt").write_text("a line of text\n" * 200, encoding="utf-8")
    (made / "numbers.csv").write_text("\n".join(["x", *(f"{math.sin(t):.3f}" for t in range(200))]), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQWISE_CACHE", str(made / "cache"))
        patch.delenv("SEQWISE_DATA", raising=False)
        patch.setattr(os, "sched_getaffinity", lambda _: {0})
        patch.setattr(plan, "PLANNED_UPDATES", 0)  # nobody is left out, however slow this machine is
        patch.setattr(plan, "MIN_SECONDS", 0.0)
        patch.setattr(planning, "MIN_STEPS", 5)
        patch.setattr(answer, "TEXT_EPOCHS", 3)
        patch.setitem(answer.TEXT_SIZES, "lstm", {"embed_dim": 16, "model_dim": 16})
        patch.setattr(module, "MAX_TIMING", 10.0)
        patch.setattr(verdict, "MIN_UPDATES", 0)
        patch.setattr(module, "ForkServer", Here)
        small: dict[str, Any] = {"steps": 5, "overrides": ["model.model_dim=8", "model.embed_dim=12"]}
        seqwise.train(made / "reviews.csv", "lstm", task="text", tokenizer="word", out=made / "lm", **small)
        seqwise.train(made / "numbers.csv", "lstm", out=made / "series", steps=1)
        prepare(made / "words.txt", model="ngram", out=made / "counts")
        prepare(made / "numbers.csv", model="kalman", out=made / "kalman")
        prepare(made / "reviews.csv", model="lstm", out=made / "begun")
        yield made


REFUSED = {
    "no number": (["--labels", "10,some"], r'--labels: "some" is no number of labels\. Write numbers above 0, or all'),
    "nothing": (["--labels", ""], r'--labels: "" is no number of labels'),
    "none": (["--labels", "0,10"], r'--labels: "0" is no number of labels'),
    "less than none": (["--labels", "-5"], r'--labels: "-5" is no number of labels'),
    "no run": (["--from", "nowhere"], r"nowhere: no such run folder"),
    "another family": (
        ["--from", "lm", "--models", "gru,ngram"],
        r"lm is a lstm model, and --models gru,ngram has none",
    ),
    "a filter": (
        ["--from", "kalman"],
        r"kalman is a kalman model, and no start for the task label: drop --from, or name",
    ),
    "counts": (["--from", "counts"], r"counts is a ngram model, and no start for the task label"),
    "not trained": (["--from", "begun"], r"begun has no trained model yet\. Go on with: seqwise train --resume --out"),
    "of numbers": (
        ["--from", "series", "--models", "lstm"],
        r"series: that run does not read what reviews\.csv is made",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_input_is_told_in_one_sentence_and_nothing_is_left(
    what: str, world: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, sentence = REFUSED[what]
    monkeypatch.chdir(world)
    assert re.search(
        sentence, terminal.refuses("compare", "reviews.csv", "--minutes", "1", "--out", "refused", *options)
    )
    assert not (world / "refused").exists()


@pytest.mark.parametrize("data", ["words.txt", "numbers.csv"])
def test_numbers_of_labels_go_with_labels_and_tags_only(data: str, world: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"--labels goes with label or tags or span or choice, and this is taken for (text|numbers)"
    ):
        ComparisonRequest(world / data, label_counts=[10, None]).settings()
    with pytest.raises(ConfigError, match=r"label_counts=\[\.\.\.\]|label_counts=\.\.\. goes with label or tags"):
        seqwise.compare(world / data, label_counts=[10, None], out=world / "refused")


def test_sequences_that_are_no_texts_have_no_number_of_labels(world: Path, terminal: Terminal) -> None:
    told = terminal.refuses("compare", "digits-rows", "--labels", "10,all", "--minutes", "1", "--out", "refused")
    assert told == "--labels goes with texts that have labels or tags, and digits-rows is no text; drop it."
    assert not Path("refused").exists()


def test_going_on_takes_no_other_numbers_of_labels(world: Path, terminal: Terminal, made: Made) -> None:
    options = ["--labels", "10", "--from", world / "lm", "--split-at", "80/10/10"]
    told = terminal.refuses("compare", "--resume", "--out", made.folder, *options)
    assert told.endswith("goes on with the comparison's own settings; drop --split-at, --from, --labels.")


def test_what_is_typed_becomes_numbers() -> None:
    assert label_counts_of("100, 500,all") == [100, 500, None]
    assert label_counts_of(None) is None
    assert in_python("--labels 100,all") == "label_counts=[100, None]"


def test_python_is_told_what_is_wrong_with_a_number_of_labels() -> None:
    with pytest.raises(ConfigError, match=r"--labels 0 should be at least 1, or all"):
        ComparisonRequest("x.csv", label_counts=[0])
    with pytest.raises(ConfigError, match=r"--labels is empty"):
        ComparisonRequest("x.csv", label_counts=[])


def test_a_run_is_known_by_its_full_path(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    found = ComparisonRequest("reviews.csv", start_from="lm").settings()
    assert found.start == Start(str((world / "lm").resolve()), "lstm")


# -- a real one ------------------------------------------------------------------------------------------------------


class Stopping(Here):
    """Ends by Ctrl-C when the job `last` is done; `done` are all that were."""

    last: Job | None = None
    done: list[Job] = []  # noqa: RUF012

    def work(self, job: Job) -> int:
        found = super().work(job)
        type(self).done.append(job)
        return found


@dataclass(frozen=True)
class Made:
    folder: Path
    stopped: Comparison
    """As it was when it was stopped."""
    first: list[Job]
    """Done until then."""
    second: list[Job]
    """Done after that."""
    comparison: Comparison
    told: list[str]


@pytest.fixture(scope="module")
def made(world: Path) -> Made:
    """Three models with 20 labels, with 60, and with all; stopped in the middle, and gone on with."""
    told: list[str] = []

    class Watching:
        def tell(self, sentence: str) -> None:
            told.append(sentence)

        def begin(self, what: str, trials: Sequence[str]) -> None: ...
        def progress(self, trial: str, line: dict[str, Any]) -> None: ...
        def end(self, trial: str, sentence: str) -> None: ...

    request = ComparisonRequest(
        world / "reviews.csv",
        models=["lstm", "ngram-bag"],
        start_from=world / "lm",
        label_counts=[None, 5000, 60, 20],
        seeds=2,
        minutes=1.5,
    )
    with pytest.MonkeyPatch.context() as patch, at_most(180):
        patch.setattr(module, "ForkServer", Stopping)
        Stopping.done = []

        def is_enough() -> bool:
            return Job("train", "lstm-60") in Stopping.done

        folder = world / "comparison"
        stopped = run_comparison(folder, request.settings(), watch=Watching(), wants_stop=is_enough)
        first, Stopping.done = Stopping.done, []
        found = run_comparison(folder, watch=Watching())
    return Made(folder, stopped, first, Stopping.done, found, told)


ALL_TRIALS = {
    f"{model}{count}{seed}"
    for model in ("ngram-bag", "lstm", "lstm-from-lm")
    for count in ("-20", "-60", "")
    for seed in ("", "-seed-1")
} - {"ngram-bag-seed-1"}


def test_going_on_trains_what_is_missing_and_nothing_twice(made: Made) -> None:
    before, after = ([job.name for job in jobs if job.kind == "train"] for jobs in (made.first, made.second))
    assert not made.stopped.is_complete
    assert not set(before) & set(after)
    assert len(before) == len(set(before)) >= 6
    assert {*before, *after} == ALL_TRIALS
    assert made.comparison.is_complete
    assert sorted(job.name for job in made.second if job.kind == "score") == sorted(ALL_TRIALS)
    assert not [job for job in made.second if job.kind in ("time", "prepare")]


def test_a_start_that_was_trained_again_is_not_mixed_with_the_old(
    made: Made, world: Path, terminal: Terminal, tmp_path: Path
) -> None:
    folder = shutil.copytree(made.folder, tmp_path / "copy")
    weights = world / "lm" / "model.safetensors"
    before = weights.read_bytes()
    try:
        weights.write_bytes(before + b" ")
        told = terminal.refuses("compare", "--resume", "--out", folder)
    finally:
        weights.write_bytes(before)
    assert re.search(r"lm was trained again since the comparison began from it\. Restore it, or begin another", told)


def test_few_labels_come_first(made: Made) -> None:
    trained = [job.name for job in (*made.first, *made.second) if job.kind == "train"]
    counts = [next((int(n) for n in re.findall(r"-(\d\d+)", name)), 9999) for name in trained]
    assert counts == sorted(counts)


def test_what_is_trained_is_said_before(made: Made) -> None:
    (plan_told,) = [sentence for sentence in made.told if "will be trained" in sentence]
    who = "ngram-bag, lstm, lstm-from-lm"
    assert plan_told == f"17 trials will be trained. 20 labels: {who}; 60 labels: {who}; all labels: {who}"
    assert "the training part has 144 rows, so that --labels 5000 stands for all" in made.told


def test_all_models_of_a_seed_learn_from_the_same_rows_and_another_seed_from_others(made: Made) -> None:
    runs = {name: Run.open(made.folder / "runs" / name) for name in ALL_TRIALS}
    for name, run in runs.items():
        labels = 20 if "-20" in name else 60 if "-60" in name else 0
        seed = 1 if name.endswith("seed-1") else 0
        assert (run.config.training.train_examples, run.config.training.seed) == (labels, seed)

    def rows(name: str) -> list[str]:
        run = runs[name]
        task = seqwise.tasks.task_named("label")
        store = task.store(task.open(run.config.data), "train", run.schema)
        return [row.texts[0] for row in store.sample(run.config.training.train_examples, run.config.training.seed).rows]

    assert rows("lstm-20") == rows("lstm-from-lm-20") == rows("ngram-bag-20")
    assert rows("lstm-20-seed-1") == rows("lstm-from-lm-20-seed-1") != rows("lstm-20")
    assert len(rows("lstm-20")) == 20


def test_who_starts_from_a_run_has_its_body_and_its_vocabulary(made: Made, world: Path) -> None:
    base, started = Run.open(world / "lm"), Run.open(made.folder / "runs" / "lstm-from-lm-20")
    scratch = Run.open(made.folder / "runs" / "lstm-20")
    assert started.config.model.model_dim == base.config.model.model_dim == 8 != scratch.config.model.model_dim
    vocab = [next(iter(run.schema.specs.values())).tokenizer.to_dict() for run in (base, started, scratch)]  # type: ignore[union-attr]
    assert vocab[0] == vocab[1] != vocab[2]
    model = started.build_model()
    assert started.load_initial_weights(model)
    for name, weight in base.load_model().state_dict().items():
        if name.startswith("body.") and "embedding" not in name:
            assert torch.equal(model.state_dict()[name], weight)


def test_points_are_the_accuracies_of_the_runs(made: Made) -> None:
    curves = made.comparison.label_curves
    assert curves is not None
    assert (curves.counts, curves.num_rows, curves.metric.name) == ([20, 60, 144], 144, "accuracy in per cent")
    assert curves.models == ["ngram-bag", "lstm", "lstm-from-lm"]
    assert len(curves.points) == 9
    for point in curves.points:
        assert point.figure is not None, point.note
        folders = [made.folder / "runs" / name for name in (point.name, f"{point.name}-seed-1") if name in ALL_TRIALS]
        right = [100 * seqwise.load(folder).evaluate().accuracy for folder in folders]
        assert sorted(point.by_seed) == pytest.approx(sorted(right))
        assert point.figure.value == pytest.approx(sum(right) / len(right))
        assert point.figure.low <= point.figure.value <= point.figure.high
    assert [(lead.labels, lead.started, lead.from_scratch) for lead in curves.leads] == [
        (labels, "lstm-from-lm", "lstm") for labels in (20, 60, 144)
    ]
    for lead in curves.leads:
        values = [curves.point(name, lead.labels).figure.value for name in (lead.started, lead.from_scratch)]  # type: ignore[union-attr]
        assert lead.gain == pytest.approx(values[0] - values[1])
        assert lead.low <= lead.gain <= lead.high


def test_everything_else_is_of_those_with_the_most_labels(made: Made) -> None:
    found = made.comparison
    assert {entry.name for entry in found.ladder} == {"ngram-bag", "lstm", "lstm-from-lm"}
    assert found.final == []
    assert found.winner in {"ngram-bag", "lstm", "lstm-from-lm"}
    assert found.entry("lstm-from-lm").start_from
    assert any(sentence.startswith("With 20 labels lstm-from-lm ") for sentence in found.recommendation)
    assert Comparison.read(made.folder / "compare.json") == found


def test_tables_and_page_show_the_curves(made: Made) -> None:
    page, text = ((made.folder / name).read_text(encoding="utf-8") for name in ("report.html", "compare.md"))
    assert "## By number of labels" in text
    assert "| model | 20 labels | 60 labels | all 144 labels |" in text
    assert "## With all 144 labels" in text
    assert 'id="by-labels-chart-title"' in page
    chart = page[page.index('id="by-labels-chart-title"') :]
    chart = chart[: chart.index("</figure>")]
    assert chart.count('class="band ') == 3
    assert all("<text" in line for line in re.findall(r'<g class="name .*?</g>', chart))
    assert "labels learned from" in chart
    assert "accuracy in per cent, test" in chart


def test_the_command_repeats_it(made: Made, world: Path) -> None:
    words = shlex.split(made.comparison.command)
    assert words[words.index("--labels") + 1] == "20,60,all"
    assert words[words.index("--from") + 1] == str((world / "lm").resolve())
    assert words[words.index("--models") + 1] == "ngram-bag,lstm"


def test_the_terminal_shows_the_table_of_labels_first(made: Made) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        from seqwise.cli.comparing import show

        show(made.comparison, made.folder)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Accuracy in per cent (95 %), ± the spread over seeds; higher is better."
    assert lines[2].split()[:3] == ["model", "20", "labels"]
    assert [line.split("  ")[0] for line in lines[3:7]] == ["ngram-bag", "lstm", "lstm-from-lm", "lstm-from-lm − lstm"]
    assert "With all 144 labels:" in lines


def test_without_numbers_of_labels_a_start_is_one_more_row(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "STILL_IMPROVING", 2.0)  # no finals
    path = world / "one-more"
    with at_most(120):
        found = seqwise.compare(
            world / "reviews.csv", models=["lstm"], start_from=world / "lm", minutes=0.8, out=path, seeds=1
        )
    assert {entry.name: entry.status for entry in found.ladder} == {"lstm": "done", "lstm-from-lm": "done"}
    assert found.label_curves is None
    assert found.entry("lstm-from-lm").start_from == str((world / "lm").resolve())
    assert len({entry.minutes for entry in found.ladder}) == 1  # equal shares, as ever
    assert len(found.gaps) <= 1
    assert "by-labels" not in (path / "report.html").read_text(encoding="utf-8").partition("<main>")[2]
    assert "--labels" not in found.command


@given(st.integers(1, 3), st.integers(1, 3), st.floats(0.1, 20), st.floats(0.001, 0.1))
def test_the_budget_that_is_said_to_be_enough_for_all_numbers_of_labels_is(
    seeds: int, workers: int, start: float, update: float
) -> None:
    settings, found = asked(seeds=seeds, workers=workers), timings(start=start, update=update)
    enough = minutes_for_all(settings, found, 10.0)
    assert not ladder(replace(settings, minutes=1.001 * enough), 10.0, found).left_out


@pytest.mark.parametrize(
    ("start_from", "told"), [("", "the same family from scratch"), ("runs/other", "from other (95")]
)
def test_a_start_is_set_against_the_same_family_with_another(start_from: str, told: str) -> None:
    wrong, better = np.arange(400) % 2 == 0, np.arange(400) % 4 == 0
    names = {"lstm-from-lm": segments(better), "lstm": segments(wrong)}
    entries = [entry("lstm-from-lm", 0.25, start_from="runs/lm", valid=0.25), entry("lstm", 0.5, start_from=start_from)]
    winner, sentences = recommend([replace(one, bytes_on_disk=1) for one in entries], names, WRONG)
    assert winner == "lstm-from-lm"
    assert told in sentences[0]


# -- from scores to curves -------------------------------------------------------------------------------------------


def entry(name: str, wrong: float, **changes: Any) -> Entry:
    made = Entry(name, "lstm", "", "ladder", 1.0, "done", test=Figure(wrong, wrong - 0.02, wrong + 0.03))
    return replace(made, by_seed=[wrong - 0.01, wrong + 0.01], **changes)


def segments(*is_wrong: np.ndarray) -> Segments:
    return joined([Segments.of(one, np.ones(len(one))) for one in is_wrong])


def curves_of(gain: float, *, rows: int = 400) -> LabelCurves:
    """From scratch half of the rows are wrong; from a run fewer by `gain`."""
    wrong, better = np.arange(rows) % 2 == 0, np.arange(rows) % 2 == 0
    better[: round(2 * max(gain, 0.0) * rows) : 2] = False
    better[1 : round(2 * max(-gain, 0.0) * rows) : 2] = True
    found = {
        ("lstm", 100): entry("lstm-100", 0.5, labels=100),
        ("lstm", 900): entry("lstm", 0.2),
        ("lstm-from-lm", 100): entry("lstm-from-lm-100", 0.5 - gain, labels=100, start_from="lm"),
    }
    return label_curves(
        found, {"lstm-100": segments(wrong), "lstm-from-lm-100": segments(better)}, WRONG, [100, 900], 900
    )


def test_a_share_of_wrong_answers_is_told_as_accuracy() -> None:
    curves = curves_of(0.1)
    point = curves.point("lstm", 900)
    assert point is not None
    assert point.figure == Figure(pytest.approx(80.0), pytest.approx(77.0), pytest.approx(82.0))
    assert point.by_seed == pytest.approx([81.0, 79.0])
    assert told_as(WRONG) == Metric("accuracy in per cent", "accuracy", 1, True)
    f1 = Metric("F1 over entities", "F1", digits=4, is_higher_better=True)
    kept = label_curves({("lstm", 9): entry("lstm", 0.9)}, {}, f1, [9], 9)
    assert (kept.metric, kept.points[0].figure) == (f1, Figure(0.9, pytest.approx(0.88), pytest.approx(0.93)))


@pytest.mark.parametrize(
    ("gain", "sentence"),
    [
        (0.1, r"With 100 labels lstm-from-lm leads lstm by 10\.0 points \(\d+\.\d to 1\d\.\d\)\."),
        (
            -0.1,
            r"With 100 labels lstm-from-lm is behind lstm by 10\.0 points \(\d+\.\d to 1\d\.\d\): that start does not",
        ),
        (0.0, r"With 100 labels lstm-from-lm and lstm cannot be told apart: 0\.0 points"),
    ],
)
def test_a_lead_is_told_in_points_with_its_interval(gain: float, sentence: str) -> None:
    curves = curves_of(gain)
    (lead,) = curves.leads
    assert lead.gain == pytest.approx(100 * gain)
    assert lead.is_distinguishable == (gain != 0)
    (told,) = label_sentences(curves, example(curves).words)
    assert re.match(sentence, told), told


def test_too_few_rows_are_said_to_be_too_few() -> None:
    curves = curves_of(0.25, rows=4)
    assert "too little data to tell" in label_sentences(curves, example(curves).words)[0]
    again = Comparison.from_dict(json.loads(to_json(example(curves).to_dict())))
    assert again.label_curves == curves


def test_without_a_start_the_best_of_the_fewest_labels_is_told() -> None:
    found = {
        ("lstm", 50): entry("lstm-50", 0.4, labels=50),
        ("ngram-bag", 50): entry("ngram-bag-50", 0.3, labels=50, family="ngram"),
        ("lstm", 900): entry("lstm", 0.1),
        ("ngram-bag", 900): entry("ngram-bag", 0.2, family="ngram"),
    }
    curves = label_curves(found, {}, WRONG, [50, 900], 900)
    assert label_sentences(curves, example(curves).words) == [
        "With 50 labels ngram-bag is best: 70.0 accuracy in per cent."
    ]


def example(curves: LabelCurves) -> Comparison:
    names = [point.name for point in curves.points]
    ladder = [Entry(name, "lstm", "", "ladder", 1.0, "done", test=Figure(0.2, 0.1, 0.3)) for name in names]
    return Comparison(
        {"name": "x"}, "label", WRONG, "test", 2, 1, 2, 1, "x", ladder=ladder, kind="label", label_curves=curves
    )


def test_a_point_that_is_missing_is_shown_as_missing() -> None:
    """No line leads across it, the table says so, and why stands below."""
    found = {
        ("lstm", 10): entry("lstm-10", 0.5, labels=10),
        ("lstm", 20): replace(entry("lstm-20", 0.0, labels=20), test=None, status="left out", reason="no time"),
        ("lstm", 40): entry("lstm-40", 0.4, labels=40),
        ("lstm", 80): entry("lstm", 0.3),
    }
    curves = label_curves(found, {}, WRONG, [10, 20, 40, 80], 80)
    rows = label_rows(curves, example(curves).words)
    assert rows[1][2] == "missing"
    assert rows[0] == ["model", "10 labels", "20 labels", "40 labels", "all 80 labels"]
    assert notes_of_points(curves) == ["lstm-20: left out: no time"]
    page = write_page(example(curves))
    chart = page[page.index('id="by-labels-chart-title"') :]
    chart = chart[: chart.index("</svg></figure>") if "</svg></figure>" in chart else chart.index("</figure>")]
    assert len(re.findall(r'<path class="line" d="M[^"]*L', chart)) == 1  # from 40 to 80; 10 stands alone
    assert chart.count('<g class="series') == 2
    assert chart.count('<g class="name') == 1
    assert "left out: no time" in page


def test_a_page_without_numbers_of_labels_has_no_such_section() -> None:
    page = write_page(replace(example(curves_of(0.1)), label_curves=None))
    assert "by-labels" not in page.partition("<main>")[2]


def test_sentences_are_counted_where_words_have_tags() -> None:
    curves = curves_of(0.1)
    tags = replace(example(curves), task="tags", kind="tag")
    assert label_rows(curves, tags.words)[0] == ["model", "100 sentences", "all 900 sentences"]
    assert label_sentences(curves, tags.words)[0].startswith("With 100 sentences ")


def test_trials_of_before_are_read_as_they_were_meant(tmp_path: Path) -> None:
    """A plan of a version that knew no numbers of labels."""
    folder = Workspace(tmp_path)
    trial = {"name": "lstm-seed-1", "entry": "lstm", "entrant": "lstm", "family": "lstm", "tokenizer": "auto"}
    folder.write("plan.json", {"trials": [{**trial, "stage": "ladder", "seed": 1, "minutes": 2.0}]})
    (found,) = folder.trials
    assert found == Trial("lstm-seed-1", "lstm", "lstm", "lstm", "auto", "ladder", 1, 2.0, None, "lstm")
