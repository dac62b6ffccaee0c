"""From labelled texts and tagged words to models that answer, as a user would; what is said where that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs_by_hand import log_without_clock, prepare, stop_after

import seqwise
from seqwise.run import Run
from seqwise.training.preparing import resume

GOOD, BAD = ("fine", "funny", "warm", "wise"), ("dull", "loud", "slow", "cold")
SMALL = ["model.embed_dim=16", "model.model_dim=16", "training.batch_size=16", "training.learning_rate=0.01"]
TAGS = {"cat": "B-animal", "dog": "B-animal", "rome": "B-place", "oslo": "B-place"}


def reviews(num: int, seed: int = 0) -> list[tuple[str, str]]:
    """The label is told by one word among others; three in a hundred are wrong."""
    random = np.random.default_rng(seed)
    rows = []
    for n in range(num):
        label = "good" if random.random() < 0.5 else "bad"
        words = [
            *random.choice(["a", "the", "of", "film", "story", "it", "is"], size=6),
            random.choice(GOOD if label == "good" else BAD),
        ]
        random.shuffle(words)
        rows.append((" ".join([*words, f"number{n}"]), label if random.random() < 0.97 else "bad"))
    return rows


def write_csv(path: Path, rows: list[tuple[str, str]], header: str = "review,label") -> Path:
    path.write_text(header + "\n" + "".join(f'"{text}",{label}\n' for text, label in rows))
    return path


def tagged(num: int) -> str:
    random, found = np.random.default_rng(1), []
    for _ in range(num):
        words = random.choice(["the", "a", "saw", "in", *TAGS], size=random.integers(3, 8)).tolist()
        found.append("".join(f"{word}\t{TAGS.get(word, 'O')}\n" for word in words))
    return "\n".join(found)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    file = write_csv(folder / "reviews.csv", reviews(400))
    (folder / "words.conll").write_text(tagged(150))
    seqwise.train(file, "ngram", out=folder / "bag")
    seqwise.train(file, "lstm", out=folder / "lstm", steps=250, overrides=SMALL)
    seqwise.train(
        folder / "words.conll", "gru", out=folder / "tagger", steps=80, overrides=[*SMALL, "model.character_dim=4"]
    )
    seqwise.train(folder / "words.conll", "hmm", out=folder / "counted")
    return folder


def test_labelled_texts_are_recognised_learned_and_answered(world: Path, terminal: Any) -> None:
    for name in ("bag", "lstm"):
        run = seqwise.load(world / name)
        assert run.run.config.task == "label"
        assert run.run.config.data.columns == ["text=review", "label=label"]
        assert run.evaluate().accuracy >= 0.85
        assert [answer["label"] for answer in run.answer_texts(["a wise film", "it is dull"])] == ["good", "bad"]
    (world / "new.csv").write_text("id,review\n1,a funny story\n2,the loud film\n")
    out, _ = terminal.done("predict", world / "lstm", world / "new.csv")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["good", "bad"]
    found = json.loads(terminal.done("predict", world / "bag", world / "new.csv", "--json")[0])["results"]
    assert [sum(answer["probabilities"].values()) for answer in found] == [pytest.approx(1)] * 2
    out, _ = terminal.done("evaluate", world / "bag", world / "lstm")
    assert "macro F1" in out
    assert terminal.done("check", world / "lstm")[0].count("kept") == 5


def test_a_classifier_goes_on_from_a_language_model_of_its_texts(world: Path, tmp_path: Path, terminal: Any) -> None:
    arguments = ["--task", "text", "--tokenizer", "word", "--model", "lstm", "--steps", "30", "--out", tmp_path / "lm"]
    small = ["--set", "model.model_dim=16", "--set", "model.num_layers=2", "--set", "tokenizer.lower_case=true"]
    _, told = terminal.done("train", world / "reviews.csv", *arguments, *small)
    assert "its labels are not looked at" in told
    tuned = ["--set", "training.layer_rate_factor=0.5", "--set", "training.unfreeze_epochs=0.5"]
    _, told = terminal.done(
        "train",
        world / "reviews.csv",
        "--model",
        "lstm",
        "--from",
        tmp_path / "lm",
        "--steps",
        "200",
        "--out",
        tmp_path / "run",
        *tuned,
        "--set",
        "training.schedule=slanted_triangular",
        "--set",
        "training.learning_rate=0.02",
    )
    assert "kept: body.embedding, body.stack" in told
    assert "head.label" in told
    before, after = (seqwise.load(tmp_path / name).run for name in ("lm", "run"))
    assert after.schema.specs["tokens"].tokenizer.words == before.schema.specs["tokens"].tokenizer.words  # type: ignore[attr-defined]
    assert (after.config.model.num_layers, after.config.model.pooling) == (2, "mean")
    assert seqwise.load(tmp_path / "run").evaluate().accuracy > 0.7


def test_tagged_words_are_learned_and_written_in_their_layout(world: Path, terminal: Any) -> None:
    (world / "ask.conll").write_text("the\tX\nunseen\tX\ncat\tX\n\noslo\tX\n")
    for name in ("tagger", "counted"):
        assert seqwise.load(world / name).evaluate().f1 > 0.95
        out, _ = terminal.done("predict", world / name, world / "ask.conll")
        lines = out.split("\n")
        assert [line.split("\t")[-1] for line in (lines[0], lines[2], lines[4])] == ["O", "B-animal", "B-place"]
        assert lines[3] == ""
        assert terminal.done("check", world / name)[1] == ""


def test_a_run_on_labels_that_was_stopped_goes_on_to_the_bit(world: Path, tmp_path: Path) -> None:
    settings = {"overrides": [*SMALL, "training.threads=1"], "steps": 40}
    prepare(world / "reviews.csv", model="lstm", out=tmp_path / "whole", **settings).train()
    for _ in prepare(world / "reviews.csv", model="lstm", out=tmp_path / "stopped", **settings).reports(
        wants_stop=stop_after(17)
    ):
        pass
    resume(tmp_path / "stopped").train()
    assert log_without_clock(tmp_path / "stopped") == log_without_clock(tmp_path / "whole")


def test_some_labels_are_drawn_and_the_rest_is_not_looked_at(world: Path, tmp_path: Path) -> None:
    overrides = ["training.train_examples=40"]
    few = seqwise.train(world / "reviews.csv", "ngram", out=tmp_path / "few", overrides=overrides)
    assert few.run.config.training.train_examples == 40
    other = seqwise.train(world / "reviews.csv", "ngram", out=tmp_path / "other", overrides=overrides, seed=5)
    texts = ["a wise film of it", "the slow story"]
    whole = seqwise.load(world / "bag")
    assert few.answer_texts(texts) != other.answer_texts(texts) != whole.answer_texts(texts)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("review,label\n" + "a film,good\n" * 50, "good"),
        ("review,label\n", ""),
        ("review,label\na film,good\n", ""),
    ],
    ids=["one label", "no rows", "one row"],
)
def test_what_cannot_be_learned_is_told_and_nothing_is_written(
    content: str, sentence: str, tmp_path: Path, terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(content)
    told = terminal.refuses("train", "x.csv", "--task", "label", "--model", "ngram", "--out", "run")
    assert "x.csv: " in told
    assert sentence in told
    assert not (tmp_path / "run").exists()


def test_a_file_with_other_labels_is_told_by_line(world: Path, terminal: Any) -> None:
    write_csv(world / "other.csv", [*reviews(10), ("a film", "so-so")])
    told = terminal.refuses("evaluate", world / "bag", world / "other.csv")
    assert "so-so" in told
    assert "line 12" in told


def test_a_text_of_a_hundred_thousand_words_is_read(world: Path) -> None:
    text = "a film of it " * 25_000
    for name in ("bag", "lstm"):
        (answer,) = seqwise.load(world / name).answer_texts([f"wise {text}"])
        assert sum(answer["probabilities"].values()) == pytest.approx(1)


def test_an_empty_text_has_an_answer(world: Path) -> None:
    for name in ("bag", "lstm"):
        (answer,) = seqwise.load(world / name).answer_texts([""])
        assert answer["label"] in ("good", "bad")
    assert seqwise.load(world / "tagger").answer_texts([""])[0]["tags"] == []


def test_families_that_do_not_do_it_are_named(world: Path, tmp_path: Path, terminal: Any) -> None:
    told = terminal.refuses("train", world / "words.conll", "--model", "ngram", "--out", tmp_path / "x")
    assert "which ngram does not do. Families that do: hmm, window, conv, rnn, gru, lstm, gpt, bert." in told
    assert Run.open(world / "counted").config.model_name == "hmm"


def test_sets_that_have_a_name_are_learned_and_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their columns are their own: the run's data is read again without being told."""
    monkeypatch.setattr("seqwise.data.annotated_toys.MAX_NAMES", 600)
    monkeypatch.setattr("seqwise.data.annotated_toys.MAX_WORDS", 2000)
    for data, family, chance in (("cldr-languages", "ngram", 0.1), ("python-roles", "hmm", 0.5)):
        run = seqwise.train(data, family, out=tmp_path / data)
        assert run.run.config.data.columns == []
        assert seqwise.load(tmp_path / data).evaluate().accuracy > chance


def test_who_answers_one_thing_at_a_time_is_not_asked_for_two(tmp_path: Path, terminal: Any) -> None:
    """Tags and a label for each row: a network has two heads, an HMM is one model or the other."""
    for part, num in (("train", 60), ("valid", 10), ("test", 10)):
        rows = [("fly to rome", "O O B-city", "flight"), ("cost of oslo", "O O B-city", "price")] * (num // 2)
        for name, place in (("seq.in", 0), ("seq.out", 1), ("label", 2)):
            (tmp_path / f"{part}.{name}").write_text("".join(f"{row[place]}\n" for row in rows))
    told = terminal.refuses("train", tmp_path, "--task", "tags", "--model", "hmm", "--out", tmp_path / "run")
    assert (
        "asks for a tag for each word and a label, which hmm does not answer. Families that do: window, conv," in told
    )
    assert not (tmp_path / "run").exists()
    run = seqwise.train(tmp_path, "gru", out=tmp_path / "run", task="tags", steps=3, overrides=["model.model_dim=8"])
    assert "label" in run.evaluate().others
