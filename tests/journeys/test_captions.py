"""From a folder of drawn pictures with captions.csv to captions of new pictures, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import seqwise
from seqwise.errors import ConfigError, DataError
from seqwise.trained_run import TrainedRun

FORMS, SIDES = ("square", "bar", "post", "cross"), ("left", "right")


def drawing(random: np.random.Generator) -> tuple[np.ndarray, str]:
    """A form on one side of a picture of 16 x 16, and what is said of it."""
    pixels = random.integers(0, 40, (16, 16)).astype(np.uint8)
    form, side = int(random.integers(4)), int(random.integers(2))
    row, column = int(random.integers(3, 12)), 3 + 8 * side + int(random.integers(2))
    wide, high = slice(column - 2, column + 3), slice(row - 2, row + 3)
    if form == 0:
        pixels[high, wide] = 255
    if form in (1, 3):
        pixels[row, wide] = 255
    if form in (2, 3):
        pixels[high, column] = 255
    return pixels, f"a {FORMS[form]} on the {SIDES[side]}"


def drawn(folder: Path, num: int, seed: int) -> list[str]:
    """Pictures below a folder, with two captions each in a table."""
    folder.mkdir(parents=True)
    random, lines, said = np.random.default_rng(seed), ["image,caption"], []
    for number in range(num):
        pixels, text = drawing(random)
        Image.fromarray(pixels).save(folder / f"{number:04d}.png")
        lines += [f"{number:04d}.png,{text}", f"{number:04d}.png,there is {text}"]
        said.append(text)
    (folder / "captions.csv").write_text("\n".join(lines) + "\n")
    return said


SETTINGS = ["model.model_dim=32", "model.dropout=0.0", "training.learning_rate=0.006", "training.warmup_steps=20"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    folder = tmp_path_factory.mktemp("captions")
    drawn(folder / "drawings", 400, seed=0)
    overrides = [*SETTINGS, "model.widths=[8,16,32]", "training.batch_size=32", "training.threads=1"]
    return seqwise.train(folder / "drawings", "captioner", out=folder / "run", steps=160, overrides=overrides)


def test_a_folder_of_pictures_with_captions_is_learned_scored_and_described(
    trained: TrainedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    score = trained.evaluate()
    assert score.exact_match >= 0.9
    assert score.bleu_4 > 90
    assert score.shuffled_nats_per_token > score.nats_per_token + 0.3
    said = drawn(tmp_path / "new", 12, seed=5)
    files = [str(tmp_path / "new" / f"{number:04d}.png") for number in range(12)]
    written = trained.caption(files)
    right = [text in (wanted, f"there is {wanted}") for text, wanted in zip(written, said, strict=True)]
    assert np.mean(right) >= 0.8
    run(["caption", str(trained.path), files[0]])
    assert capsys.readouterr().out.strip() == written[0]
    run(["caption", str(trained.path), *files[:3], "--json"])
    found = json.loads(capsys.readouterr().out)["results"]
    assert found == [{"picture": f, "caption": t} for f, t in zip(files[:3], written[:3], strict=True)]
    (tmp_path / "new" / "captions.csv").unlink()
    run(["predict", str(trained.path), str(tmp_path / "new")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[2] for line in lines] == written


def run(arguments: list[str]) -> None:
    from seqwise.cli import app

    app(arguments, standalone_mode=False)


def test_what_every_model_should_keep_is_kept(trained: TrainedRun) -> None:
    found = trained.check()
    assert len([one for one in found if one.difference is not None]) >= 5
    assert all(one.difference is None or one.is_kept for one in found), found


def test_what_cannot_be_described_is_told(trained: TrainedRun, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture at all")
    for name, sentence in (("missing.png", "missing.png: no such file"), ("broken.png", "broken.png")):
        with pytest.raises(DataError, match=sentence):
            run(["caption", str(trained.path), str(tmp_path / name)])
        with pytest.raises(DataError, match=sentence):
            trained.caption([tmp_path / name])
    with pytest.raises(DataError, match="a folder; of all pictures in one: seqwise predict RUN FOLDER"):
        run(["caption", str(trained.path), str(tmp_path)])
    with pytest.raises(ConfigError, match=r"not go on from a prompt. It describes pictures: .*caption\(IMAGE\)"):
        run(["generate", str(trained.path), "--prompt", "a"])


def test_a_run_of_something_else_writes_no_captions(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a b c a b c\n" * 200)
    other = seqwise.train(tmp_path / "text.txt", "ngram", out=tmp_path / "run")
    with pytest.raises(ConfigError, match="it writes no captions"):
        other.caption([tmp_path / "text.txt"])
