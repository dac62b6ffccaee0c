"""From SQuAD files to a model that answers from a passage, as a user would; what is said where that cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from runs_by_hand import log_without_clock, prepare, stop_after
from typer.testing import CliRunner

import seqwise
from seqwise.cli import app
from seqwise.comparison.baselines import nearest_sentence
from seqwise.data.questions import Question, Reference
from seqwise.data.span_files import open_spans
from seqwise.data.span_toys import room_questions
from seqwise.errors import ConfigError, DataError, SeqwiseError
from seqwise.run import Run
from seqwise.training.preparing import resume

SMALL = ["model.model_dim=16", "training.batch_size=8", "model.dropout=0"]
PASSAGE = "The key is in the blue box. The lamp is on the red shelf."


def squad(rows: list[Question], *, answered: bool = True) -> str:
    """A file as SQuAD is laid out, an article for each passage."""
    articles: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        asked: dict[str, Any] = {"id": row.id, "question": row.text}
        if answered:
            asked |= {"answers": [{"text": text, "answer_start": start} for text, start in row.references]}
            asked |= {"is_impossible": not row.references}
        articles.setdefault(row.passage, []).append(asked)
    data = [
        {"title": passage[:9], "paragraphs": [{"context": passage, "qas": qas}]} for passage, qas in articles.items()
    ]
    return json.dumps({"version": "v2.0", "data": data})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spans")
    rows = room_questions()[:360]
    (folder / "rooms.json").write_text(squad(rows))
    (folder / "asked.json").write_text(squad(rows[:9], answered=False))
    (folder / "always.json").write_text(squad([row for row in rows if row.references]))
    (folder / "passage.txt").write_text(PASSAGE)
    seqwise.train(folder / "rooms.json", "gru", out=folder / "run", steps=20, overrides=SMALL)
    return folder


def invoked(*args: str, given: str | None = None) -> Any:
    """The command, and its mistakes as they are."""
    return CliRunner().invoke(app, list(args), input=given, catch_exceptions=True)


def test_predictions_are_what_official_programs_read(world: Path) -> None:
    found = json.loads(invoked("predict", str(world / "run"), str(world / "asked.json")).stdout)
    asked = json.loads((world / "asked.json").read_text())["data"]
    assert list(found) == [one["id"] for article in asked for p in article["paragraphs"] for one in p["qas"]]
    passages = {one["id"]: p["context"] for article in asked for p in article["paragraphs"] for one in p["qas"]}
    assert all(answer in passages[name] for name, answer in found.items())
    as_rows = json.loads(invoked("predict", str(world / "run"), str(world / "asked.json"), "--json").stdout)
    rows = as_rows["results"]
    assert {row["id"]: row["answer"] for row in rows} == found
    for row in rows:
        if row["answer"]:
            assert passages[row["id"]][row["start"] : row["end"]] == row["answer"]
        else:
            assert row["start"] is row["end"] is None


def test_the_score_of_a_file_is_that_of_its_predictions(world: Path) -> None:
    run = seqwise.load(world / "run")
    score = run.evaluate(world / "rooms.json", split="test")
    said = json.loads("".join(run.predict(world / "rooms.json", split="test")))
    assert list(said.values()) == list(score.answers)
    assert "SQuAD 2.0" in score.signature
    assert json.loads(invoked("evaluate", str(world / "run"), "--json").stdout)["results"][0]["f1"] == score.f1


@pytest.mark.parametrize("how", ["context", "text", "stdin"])
def test_a_question_is_answered_from_a_file_a_text_or_a_pipe(how: str, world: Path) -> None:
    args = {"context": ["--context", str(world / "passage.txt")], "text": ["--text", PASSAGE], "stdin": []}[how]
    command = ["answer", str(world / "run"), *args, "Where is the key?", "Where is the lamp?", "--num", "2"]
    shown = invoked(*command, given=PASSAGE)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0] == "Where is the key?"
    found = json.loads(invoked(*command, "--json", given=PASSAGE).stdout)["results"]
    assert [one["question"] for one in found] == ["Where is the key?", "Where is the lamp?"]
    for one in found:
        assert len(one["answers"]) == 2
        for answer in one["answers"]:
            if answer["start"] is not None:
                assert PASSAGE[answer["start"] : answer["end"]] == answer["answer"]
                assert answer["line"] == 1


@pytest.mark.parametrize(
    ("args", "given", "message"),
    [
        (["--text", "  "], None, "there is no text in it to answer from"),
        ([], " \n", "standard input: there is no text"),
        (["--text", "a", "--context", "b"], None, "exclude each other"),
        (["--context", "nowhere.txt"], None, "nowhere.txt: no such file"),
    ],
)
def test_a_question_without_a_passage_is_told(args: list[str], given: str | None, message: str, world: Path) -> None:
    found = invoked("answer", str(world / "run"), *args, "Where?", given=given)
    assert isinstance(found.exception, SeqwiseError)
    assert message in str(found.exception)


def test_mistakes_from_python_are_told(world: Path, tmp_path: Path) -> None:
    run = seqwise.load(world / "run")
    with pytest.raises(DataError, match="has no passage to be answered from"):
        run.answer("Where?", " ")
    with pytest.raises(DataError, match="give both"):
        run.answer(" ", PASSAGE)
    (tmp_path / "t.txt").write_text("the cat sat\n" * 50)
    other = seqwise.train(tmp_path / "t.txt", "rnn", out=tmp_path / "rnn", steps=1, overrides=["model.model_dim=4"])
    with pytest.raises(ConfigError, match="finds no answers in passages"):
        other.answer("Where?", PASSAGE)
    with pytest.raises(ConfigError, match=r"span .* which window does not do\. Families that do: conv, rnn"):
        seqwise.train(world / "rooms.json", "window", out=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_the_threshold_is_chosen_on_validation_where_answers_may_lack(world: Path, tmp_path: Path) -> None:
    chosen = Run.open(world / "run").config.model.none_threshold
    assert chosen is not None
    assert seqwise.load(world / "run").model.main_head.threshold == chosen
    told: list[str] = []
    overrides = [*SMALL, "model.none_threshold=2.5"]
    seqwise.train(world / "rooms.json", "gru", out=tmp_path / "set", steps=2, overrides=overrides, tell=told.append)
    assert Run.open(tmp_path / "set").config.model.none_threshold == 2.5
    seqwise.train(world / "always.json", "gru", out=tmp_path / "always", steps=2, overrides=SMALL)
    always = seqwise.load(tmp_path / "always")
    assert always.run.config.model.none_threshold is None
    assert all(always.evaluate().answers)
    assert "SQuAD 1.1" in always.evaluate().signature


def test_a_body_is_kept_and_a_head_begins_anew(world: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("".join(f"{row.passage}\n" for row in room_questions()[:90]))
    small = [
        "model.model_dim=16",
        "model.num_layers=1",
        "model.num_heads=2",
        "model.context=24",
        "training.batch_size=4",
    ]
    seqwise.train(tmp_path / "t.txt", "bert", out=tmp_path / "base", steps=2, overrides=small)
    told: list[str] = []
    run = seqwise.train(
        world / "rooms.json", "bert", out=tmp_path / "run", start_from=tmp_path / "base", steps=2, tell=told.append
    )
    assert any(line.startswith("started from scratch: head.span") for line in told)
    assert any(line.startswith("kept: body.embedding") for line in told)
    assert (run.model.context, run.model.max_steps) == (24, 24)
    assert run.answer("Where is the key?", 20 * PASSAGE)
    again = seqwise.train(
        world / "always.json", "bert", out=tmp_path / "again", start_from=tmp_path / "run", steps=1, overrides=[]
    )
    assert again.run.config.model.none_threshold is None  # that of the other data is not taken over


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(world: Path, tmp_path: Path) -> None:
    def begun(name: str) -> Any:
        return prepare(world / "rooms.json", model="gru", out=tmp_path / name, steps=8, overrides=SMALL)

    begun("whole").train()
    begun("stopped").train(wants_stop=stop_after(4))
    resume(tmp_path / "stopped").train()
    assert log_without_clock(tmp_path / "whole") == log_without_clock(tmp_path / "stopped")


def test_a_run_keeps_the_invariances_and_can_be_looked_into(world: Path, tmp_path: Path) -> None:
    run = seqwise.load(world / "run")
    found = {one.name: one for one in run.check()}
    assert not any(one.is_broken for one in found.values())
    assert found["padding"].is_kept
    assert found["sums"].is_kept
    for asked in ({"row": 3}, {"text": f"Where is the key?\t{PASSAGE}", "target": "in the blue box"}):
        inspection = run.inspect(**asked)
        answering = inspection.answering
        assert answering is not None
        assert answering.begins.sum() == pytest.approx(1.0)
        assert answering.ends.sum() == pytest.approx(1.0)
        assert answering.pieces[0] == "no answer"
        assert len(answering.pieces) == len(answering.begins)
        assert inspection.to_dict()["answering"]["wanted"]
    inspection.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Where it begins" in page
    assert re.search(r"Wanted: (<[^>]*>)?in the blue box", page)
    unknown = run.inspect(f"Where is the key?\t{PASSAGE}")
    assert unknown.reading.wanted is None
    with pytest.raises(DataError, match="question TAB passage"):
        run.inspect("Where is the key?")
    with pytest.raises(ConfigError, match="does not stand in the passage"):
        run.inspect(f"Where?\t{PASSAGE}", target="nowhere")


def test_windows_of_long_passages_are_looked_into_where_the_answer_stands(world: Path) -> None:
    run = seqwise.load(world / "run")
    inspection = run.inspect(f"Where is the key?\t{30 * PASSAGE}")
    assert any("windows" in note for note in inspection.reading.notes)
    answer = inspection.answering.answers[0].piece
    assert len(inspection.reading.pieces) == len(inspection.reading.ids)
    assert answer == "no answer" or answer.split()[0].lower() in "".join(inspection.reading.pieces).lower()


def test_data_is_checked_by_the_command(world: Path) -> None:
    shown = invoked("data", "check", str(world / "rooms.json"))
    assert shown.exit_code == 0
    assert "without an answer" in shown.stdout
    found = json.loads(invoked("data", "check", str(world / "rooms.json"), "--json").stdout)
    assert found["results"][0]["parts"]["train"]["questions"] == len(open_spans([world / "rooms.json"]).parts["train"])


def test_what_one_gets_without_learning() -> None:
    always = [
        Question(
            str(n), "Where is the key?", "A lamp shines. The key is here.", (Reference("key is here", 19),), f"{n}"
        )
        for n in range(9)
    ]
    found = nearest_sentence(always, always)
    assert found.name == "the sentence most like the question"
    assert -found.segments.value == pytest.approx(1.0)  # without article and full stop
    never = [one._replace(references=()) for one in always]
    assert nearest_sentence([*never, *always[:3]], never).name == "never an answer"
