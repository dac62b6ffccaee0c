"""What is told of pictures before training: copies between parts, damaged files, labels."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pictures_by_hand import captioned_folder, labelled_folder, write_pictures

from seqwise.data.check_seen import check_seen
from seqwise.data.seen_files import open_seen
from seqwise.settings import DataConfig


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))


def test_pictures_that_look_alike_in_two_parts_are_found_under_other_names(tmp_path: Path) -> None:
    pets = tmp_path / "pets"
    for part in ("train", "val", "test"):
        write_pictures(pets / part, [f"{label}/{part}{n}.png" for label in ("cat", "dog") for n in range(4)])
    for n in (0, 1):
        shutil.copy(pets / "train" / "cat" / f"train{n}.png", pets / "test" / "cat" / f"copy{n}.png")
    found = check_seen(open_seen(DataConfig(source=[str(tmp_path / "pets")]), "label"))
    assert found.parts["valid"].known == 8  # noise of the same seeds
    assert found.parts["test"].known == 10
    assert any("test: 10 of 10 pictures (100 %) stand in the training part too" in one for one in found.warnings)
    assert found.parts["train"].labels == {"cat": 4, "dog": 4}
    assert found.parts["train"].sizes == {"8 x 8": 8}
    assert "train: 8 pictures; 8 x 8 pixels" in list(found.sentences())


def test_damaged_pictures_are_named_and_do_not_stop_the_check(tmp_path: Path) -> None:
    folder = captioned_folder(tmp_path / "photos", 30)
    for n in range(3):
        (folder / "images" / f"{n}.png").write_text("no picture")
    found = check_seen(open_seen(DataConfig(source=[str(folder)]), "caption"))
    assert sum(len(facts.damaged) for facts in found.parts.values()) == 3
    assert sum(facts.texts for facts in found.parts.values()) == 60
    assert any("cannot be read: " in one for one in found.warnings)
    assert found.parts["train"].words is not None
    assert found.parts["train"].words.middle == 4


def test_a_sound_set_raises_no_alarm(tmp_path: Path) -> None:
    folder = labelled_folder(tmp_path / "pets", 300)
    found = check_seen(open_seen(DataConfig(source=[str(folder)]), "label"))
    known = {part: facts.known for part, facts in found.parts.items()}
    assert known == {"train": 0, "valid": 0, "test": 0}
    assert found.warnings == []
