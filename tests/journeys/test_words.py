"""From a text to vectors of words, by the command line: trained, asked, rated, written, read, looked at."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from seqwise.cli import app
from seqwise.errors import SeqwiseError

TOPICS = {"animals": ["cat", "dog", "cow", "hen"], "colours": ["red", "blue", "green", "white"]}


def ask(*words: str | Path) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(TOPICS[topic], size=12)) for topic in random.choice(list(TOPICS), size=1500)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    settings = ["--set", "model.embed_dim=8", "--set", "training.threads=1", "--epochs", "30"]
    told = ask("train", folder / "text.txt", "--model", "word2vec", "--out", folder / "run", *settings)
    assert f"next: seqwise words {folder / 'run'}" in told
    return folder / "run"


def test_neighbours_are_words_of_the_same_topic(run: Path) -> None:
    listed = [line.split()[1] for line in ask("words", run, "cat", "--num", "3").splitlines()]
    assert set(listed) == {"dog", "cow", "hen"}
    similar = {
        tuple(line.partition(":")[0].split()): float(line.split()[-1])
        for line in ask("words", run, "cat", "dog", "red").splitlines()
    }
    assert similar["cat", "dog"] > similar["cat", "red"]
    facts = json.loads(ask("words", run, "--analogy", "cat dog red", "--method", "multiply", "--json"))
    assert facts["results"][0]["answers"][0]["word"] in TOPICS["colours"]
    assert "8 words, vectors of 8 numbers" in ask("words", run)


def test_files_of_people_are_held_against_them(run: Path, tmp_path: Path) -> None:
    (tmp_path / "rated.txt").write_text(
        "".join(
            f"{a}\t{b}\t{9 if (a in TOPICS['colours']) == (b in TOPICS['colours']) else 1}\n"
            for a in ("cat", "dog", "red", "blue")
            for b in ("cow", "hen", "green", "white")
        )
        + "cat\tunheard\t5\n"
    )
    (tmp_path / "questions.txt").write_text(": any\ncat dog red blue\ncat dog red unheard\n")
    results = json.loads(
        ask("words", run, "--pairs", tmp_path / "rated.txt", "--analogies", tmp_path / "questions.txt", "--json")
    )["results"]
    assert results[0]["spearman"] > 0.8
    assert results[0]["share_known"] == pytest.approx(16 / 17)
    assert results[0]["one_hot"] == 0.0
    assert results[1]["share_known"] == 0.5
    table = ask("words", run, "--pairs", tmp_path / "rated.txt")
    assert "94.1 % of 17" in table


@pytest.mark.parametrize("format_", ["word2vec", "word2vec-binary", "glove"])
def test_vectors_go_out_and_come_back(run: Path, tmp_path: Path, format_: str) -> None:
    ask("export", run, tmp_path / "vectors", "--to", format_)
    before = ask("words", run, "cat", "--num", "3")
    assert ask("words", tmp_path / "vectors", "cat", "--num", "3") == before
    told = ask("import", format_, tmp_path / "vectors", "--out", tmp_path / "again")
    assert f"next: seqwise words {tmp_path / 'again'}" in told
    assert ask("words", tmp_path / "again", "cat", "--num", "3") == before


def test_the_page_has_a_map_of_them(run: Path, tmp_path: Path) -> None:
    ask("inspect", run, "--text", "cat dog red", "--out", tmp_path / "page.html", "--analogy", "cat dog red")
    page = (tmp_path / "page.html").read_text()
    assert "Map of tokens" in page
    assert "cat : dog = red : ?" in page


def test_phrases_are_joined_before(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = [
        " ".join(f"w{k}" for k in random.integers(60, size=15)) + (" New York ." if n % 4 else "") for n in range(200)
    ]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    told = ask("data", "phrases", tmp_path / "text.txt", "--out", tmp_path / "joined.txt", "--threshold", "5")
    assert "new_york" in told
    joined = (tmp_path / "joined.txt").read_text().splitlines()
    assert len(joined) == len(lines)
    assert joined[1].endswith(" new_york .")
    with pytest.raises(SeqwiseError, match="exists already"):
        ask("data", "phrases", tmp_path / "text.txt", "--out", tmp_path / "joined.txt")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["catt"], r'"catt" has no vector. Did you mean "cat"\?'),
        (["--analogy", "cat dog"], r'--analogy "cat dog": give three words'),
        (["--pairs", "nowhere"], r"nowhere: there is no such file"),
    ],
)
def test_mistakes_are_told(run: Path, asked: list[str], message: str) -> None:
    with pytest.raises(SeqwiseError, match=message):
        ask("words", run, *asked)
