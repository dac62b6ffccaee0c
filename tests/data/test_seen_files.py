"""Pictures and what is said of them: tables, folders and files of many; what does not fit is told."""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures_by_hand import asked_folder, captioned_folder, labelled_folder, write_pictures, write_rows

from seqwise.data.kinds import check_there, task_for, task_of
from seqwise.data.seen import SeenData, SeenRow
from seqwise.data.seen_files import open_seen, open_whole_seen
from seqwise.errors import ConfigError, DataError
from seqwise.settings import DataConfig


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))


def opened(source: Path | str, asks_for: str, **options: Any) -> SeenData:
    return open_seen(DataConfig(source=[str(source)], **options), asks_for)


def rows_of(data: SeenData) -> list[SeenRow]:
    return [row for rows in data.parts.values() for row in rows]


# -- captions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json"])
def test_captions_of_one_picture_are_one_row_in_one_part(tmp_path: Path, suffix: str) -> None:
    data = opened(captioned_folder(tmp_path / "photos", suffix=suffix), "caption")
    rows = rows_of(data)
    assert sorted(rows) == sorted(
        SeenRow((f"images/{n}.png",), (f"picture {n} said once", f"picture {n} said twice")) for n in range(12)
    )
    assert set(data.parts) == {"train", "valid", "test"}
    assert data.notes[0] == f"captions{suffix}: images are in image, captions are in caption"
    assert data.columns == ("image=image", "caption=caption")
    assert "12 pictures, 24 captions" in data.description
    assert opened(tmp_path / "photos", "caption").fingerprint == data.fingerprint


def test_a_token_file_is_read(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", [f"{n}.jpg" for n in range(5)])
    lines = [f"{n}.jpg#{k}\tA dog , runs {k} ." for n in range(5) for k in range(2)]
    (folder / "captions.token.txt").write_text("\n".join(lines))
    data = opened(folder, "caption")
    assert {row.texts for row in rows_of(data)} == {("A dog , runs 0 .", "A dog , runs 1 .")}
    (folder / "captions.token.txt").write_text("\n".join([*lines, "no picture here"]))
    with pytest.raises(DataError, match=r"captions.token.txt: line 11 is not of the form 7.jpg#0<TAB>A dog runs \."):
        opened(folder, "caption")


def test_captions_of_coco_are_read(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", [f"val/{n}.png" for n in range(5)])
    found = {
        "info": {"year": 2014},
        "images": [{"id": 10 + n, "file_name": f"{n}.png", "height": 8} for n in range(5)],
        "annotations": [{"id": n, "image_id": 10 + n, "caption": f"number {n} of them"} for n in range(5)],
    }
    (folder / "captions.json").write_text(json.dumps(found))
    assert sorted(rows_of(opened(folder, "caption"))) == [
        SeenRow((f"val/{n}.png",), (f"number {n} of them",)) for n in range(5)
    ]


def test_lists_of_sentences_and_parts_in_a_column_are_read(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", [f"{n}.png" for n in range(6)])
    splits = ["train", "restval", "val", "test", "train", "test"]
    images = [
        {"filename": f"{n}.png", "split": splits[n], "sentences": [{"raw": f"one {n}"}, {"raw": f"two {n}"}]}
        for n in range(6)
    ]
    (folder / "dataset.json").write_text(json.dumps({"images": images, "dataset": "photos"}))
    data = opened(folder, "caption")
    assert {part: [row.frames[0] for row in rows] for part, rows in data.parts.items()} == {
        "train": ["0.png", "1.png", "4.png"],
        "valid": ["2.png"],
        "test": ["3.png", "5.png"],
    }
    assert data.parts["valid"][0].texts == ("one 2", "two 2")


def test_a_table_for_each_part_is_split_as_given(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", [f"{n}.png" for n in range(9)])
    for place, part in enumerate(("train", "val", "test")):
        rows = [{"file": f"{n}.png", "text": f"this is {n}"} for n in range(3 * place, 3 * place + 3)]
        write_rows(folder / f"{part}.csv", rows)
    data = opened(folder, "caption")
    assert {part: [row.frames[0] for row in rows] for part, rows in data.parts.items()} == {
        "train": ["0.png", "1.png", "2.png"],
        "valid": ["3.png", "4.png", "5.png"],
        "test": ["6.png", "7.png", "8.png"],
    }
    again = opened(folder / "train.csv", "caption", valid=str(folder / "val.csv"), test=str(folder / "test.csv"))
    assert again.parts == data.parts


def test_pictures_in_a_zip_beside_the_table_are_read_in_place(tmp_path: Path) -> None:
    folder = captioned_folder(tmp_path / "photos")
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for path in sorted((folder / "images").iterdir()):
            archive.write(path, path.name)
    loose = opened(folder, "caption")
    assert "images.zip is not read: there are pictures beside it" in loose.notes
    shutil.rmtree(folder / "images")
    data = opened(folder, "caption")
    assert len(rows_of(data)) == 12
    assert not isinstance(loose.pictures, type(data.pictures))
    assert data.pictures.read("7.png").shape == (8, 8, 3)  # type: ignore[union-attr]
    assert not (folder / "images").exists()


def test_columns_are_named_where_their_names_tell_nothing(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", [f"{n}.png" for n in range(5)])
    table = write_rows(folder / "t.csv", [{"a": f"{n}.png", "b": f"what is to be seen in {n}"} for n in range(5)])
    with pytest.raises(DataError, match=r"t.csv: which column holds the caption\? It has a, b\. Name it with"):
        opened(table, "caption")
    data = opened(table, "caption", columns=["image=a", "caption=b"])
    assert len(rows_of(data)) == 5
    with pytest.raises(ConfigError, match=r'unknown role "picture"'):
        opened(table, "caption", columns=["picture=a", "caption=b"])
    with pytest.raises(ConfigError, match=r't.csv: there is no column "c"'):
        opened(table, "caption", columns=["image=a", "caption=c"])


# -- what does not fit ---------------------------------------------------------------------------------------------


def test_captions_without_picture_and_pictures_without_caption_are_left_out_and_told(tmp_path: Path) -> None:
    folder = captioned_folder(tmp_path / "photos")
    with (folder / "captions.csv").open("a") as file:
        file.write("99.png,nobody is there\n98.png,nor here\n3.png,\n")
    write_pictures(folder, ["images/77.png"])
    data = opened(folder, "caption")
    assert len(rows_of(data)) == 12
    notes = "\n".join(data.notes)
    assert f'captions.csv: 2 pictures not in {folder}, left out with what is said of them: "99.png", "98.png"' in notes
    assert "captions.csv: 1 row without a caption left out" in notes
    assert '1 picture is named in no row, and left out: "images/77.png"' in notes


def test_a_table_that_names_no_picture_at_all_is_told(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", ["1.png", "2.png"])
    write_rows(folder / "captions.csv", [{"image": "a.png", "caption": "nothing"}, {"image": "b.png", "caption": "no"}])
    with pytest.raises(DataError, match=r"none of its rows names a picture of .*photos and says something of it\."):
        opened(folder, "caption")


def test_two_pictures_of_one_name_are_told(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", ["a/1.png", "b/1.png", "a/2.png"])
    write_rows(folder / "captions.csv", [{"image": "1.png", "caption": "which one is it"}])
    with pytest.raises(
        DataError, match=r'line 2: "1.png" may be any of 2 pictures \("a/1.png", "b/1.png"\)\. Write its'
    ):
        opened(folder, "caption")


@pytest.mark.parametrize("name", ["../secret.png", "/etc/secret.png", "images/../../secret.png"])
def test_tables_that_lead_outside_are_refused(tmp_path: Path, name: str) -> None:
    folder = captioned_folder(tmp_path / "photos")
    write_pictures(tmp_path, ["secret.png"])
    with (folder / "captions.csv").open("a") as file:
        file.write(f"{name},a secret\n")
    with pytest.raises(DataError, match=r"captions.csv: line 26: the name .* leads out of its folder"):
        opened(folder, "caption")


def test_damaged_pictures_can_be_left_out(tmp_path: Path) -> None:
    folder = captioned_folder(tmp_path / "photos")
    (folder / "images" / "3.png").write_text("no picture")
    data = opened(folder, "caption", skip_damaged=True)
    assert len(rows_of(data)) == 11
    (note,) = [note for note in data.notes if "left out" in note]
    assert note.startswith("1 picture that cannot be read is left out: ")
    assert "3.png: is no picture that can be read: it is text." in note


def test_too_little_to_learn_from_is_told(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", ["1.png", "2.png"])
    write_rows(folder / "captions.csv", [{"image": "1.png", "caption": "one and only"}])
    with pytest.raises(DataError, match=r"photos: 1 picture with what is said of it; 3 are the fewest"):
        opened(folder, "caption")


# -- questions and labels ------------------------------------------------------------------------------------------


def test_questions_have_an_answer_each_and_stay_with_their_picture(tmp_path: Path) -> None:
    data = opened(asked_folder(tmp_path / "photos"), "answer")
    assert len(rows_of(data)) == 24
    assert data.labels == ["no", "yes"]
    pictures = {part: {row.frames for row in rows} for part, rows in data.parts.items()}
    assert pictures["train"].isdisjoint(pictures["valid"] | pictures["test"])
    assert "24 questions with one of 2 answers each" in data.description


def test_pictures_that_are_in_two_parts_are_told(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "photos", [f"{n}.png" for n in range(4)])
    asked = [{"image": f"{n}.png", "question": "odd?", "answer": str(n % 2), "split": "train"} for n in range(4)]
    write_rows(folder / "q.csv", [*asked, *({**row, "split": "test"} for row in asked[:2])])
    assert "test: 2 of its 2 pictures occur in the training part too" in opened(folder, "answer").notes


def test_a_folder_for_each_label_is_dealt_out_by_label(tmp_path: Path) -> None:
    data = opened(labelled_folder(tmp_path / "pets", 40), "label")
    assert data.labels == ["cat", "dog"]
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 72, "valid": 4, "test": 4}
    assert all(row.frames[0].startswith(row.answer or "?") for row in rows_of(data))
    assert sum(row.answer == "cat" for row in data.parts["test"]) == 2
    assert data.notes == ['pets: each folder is a label (2: "cat", "dog")']


def test_folders_for_parts_and_archives_of_folders_are_read(tmp_path: Path) -> None:
    for part in ("train", "val", "test"):
        labelled_folder(tmp_path / "pets" / part, 3)
    data = opened(tmp_path / "pets", "label")
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 6, "valid": 6, "test": 6}
    shutil.make_archive(str(tmp_path / "pets"), "zip", tmp_path, "pets")  # with a folder around all
    packed = opened(tmp_path / "pets.zip", "label")
    assert {part: [row.answer for row in rows] for part, rows in packed.parts.items()} == {
        part: [row.answer for row in rows] for part, rows in data.parts.items()
    }
    (tmp_path / "packed").mkdir()
    for part in ("train", "test"):
        shutil.make_archive(str(tmp_path / "packed" / part), "gztar", tmp_path / "pets" / part)
    archives = opened(tmp_path / "packed", "label")
    assert sum(map(len, archives.parts.values())) == 12
    assert len(archives.parts["test"]) == 6


def test_folders_within_folders_of_labels_are_clips(tmp_path: Path) -> None:
    names = [f"{way}/clip{c}/frame{n}.png" for way in ("left", "right") for c in range(4) for n in (1, 2, 10)]
    data = opened(write_pictures(tmp_path / "moves", names), "label")
    assert data.max_frames == 3
    assert SeenRow(tuple(f"left/clip2/frame{n}.png" for n in (1, 2, 10)), (), "left") in rows_of(data)


def test_pictures_outside_of_the_folders_of_labels_are_told(tmp_path: Path) -> None:
    folder = write_pictures(labelled_folder(tmp_path / "pets"), ["stray.png"])
    assert '1 picture is in no folder of a label, left out: "stray.png"' in opened(folder, "label").notes


def test_one_label_is_nothing_to_learn(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "pets", [f"cat/{n}.png" for n in range(9)])
    with pytest.raises(DataError, match=r"pets: expected a folder for each label"):
        opened(folder, "label")


def test_all_pictures_of_a_folder_may_be_painted(tmp_path: Path) -> None:
    data = opened(labelled_folder(tmp_path / "pets"), "picture")
    assert {row.answer for row in rows_of(data)} == {None}
    assert len(rows_of(data)) == 20


# -- files of many -------------------------------------------------------------------------------------------------


def idx(path: Path, values: np.ndarray) -> None:
    header = struct.pack(">HBB", 0, 8, values.ndim) + b"".join(struct.pack(">I", side) for side in values.shape)
    content = header + values.astype(np.uint8).tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_idx_files_are_read_with_their_labels(tmp_path: Path, packed: str) -> None:
    pixels = np.arange(40 * 4 * 4).reshape(40, 4, 4) % 256
    for part, rows in (("train", slice(0, 30)), ("t10k", slice(30, 40))):
        idx(tmp_path / "digits" / f"{part}-images-idx3-ubyte{packed}", pixels[rows])
        idx(tmp_path / "digits" / f"{part}-labels-idx1-ubyte{packed}", np.arange(40)[rows] % 3)
    data = opened(tmp_path / "digits", "label")
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 27, "valid": 3, "test": 10}
    row = data.parts["test"][4]
    assert row == SeenRow(("test/4",), (), str(34 % 3))
    assert np.array_equal(data.pictures.read("test/4")[..., 0], pixels[34])  # type: ignore[union-attr]
    (tmp_path / "digits" / f"t10k-labels-idx1-ubyte{packed}").unlink()
    with pytest.raises(DataError, match=r"its labels are missing; expected t10k-labels-idx1-ubyte beside it"):
        opened(tmp_path / "digits", "label")


def cifar_rows(num: int) -> tuple[np.ndarray, list[int]]:
    return np.random.default_rng(num).integers(0, 256, size=(num, 3072), dtype=np.uint8), [n % 2 for n in range(num)]


@pytest.mark.parametrize("keys", ["bytes", "words"])
def test_cifar_as_python_pickled_it_is_read(tmp_path: Path, keys: str) -> None:
    def named(found: dict[str, Any]) -> dict[Any, Any]:
        return {key.encode(): value for key, value in found.items()} if keys == "bytes" else found

    folder = tmp_path / "cifar"
    folder.mkdir()
    for name, num in (("data_batch_1", 20), ("data_batch_2", 21), ("test_batch", 6)):
        pixels, labels = cifar_rows(num)
        (folder / name).write_bytes(pickle.dumps(named({"data": pixels, "labels": labels}), protocol=2))
    (folder / "batches.meta").write_bytes(pickle.dumps(named({"label_names": ["plane", "car"]}), protocol=2))
    data = opened(folder, "label")
    assert data.labels == ["car", "plane"]
    assert len(data.parts["train"]) + len(data.parts["valid"]) == 41
    picture = data.pictures.read("train/25")  # type: ignore[union-attr]
    assert np.array_equal(picture, cifar_rows(21)[0][5].reshape(3, 32, 32).transpose(1, 2, 0))
    assert SeenRow(("train/25",), (), "car") in [*data.parts["train"], *data.parts["valid"]]


def test_cifar_byte_by_byte_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "cifar"
    folder.mkdir()
    for name, num in (("data_batch_1.bin", 20), ("test_batch.bin", 6)):
        pixels, labels = cifar_rows(num)
        records = (bytes([label]) + row.tobytes() for row, label in zip(pixels, labels, strict=True))
        (folder / name).write_bytes(b"".join(records))
    (folder / "batches.meta.txt").write_text("plane\ncar\n")
    data = opened(folder, "label")
    assert np.array_equal(data.pictures.read("test/3").transpose(2, 0, 1).ravel(), cifar_rows(6)[0][3])  # type: ignore[union-attr]
    (folder / "test_batch.bin").write_bytes(b"\0" * 3000)
    with pytest.raises(DataError, match=r"test_batch.bin: 3,000 bytes are no whole number of records of 3,073"):
        opened(folder, "label")


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("damage", ["call", "cut", "text", "other"])
def test_pickles_are_never_trusted(tmp_path: Path, damage: str) -> None:
    folder, mark = tmp_path / "cifar", tmp_path / "mark"
    folder.mkdir()
    pixels, labels = cifar_rows(4)
    whole = pickle.dumps({"data": pixels, "labels": labels})
    content = {
        "call": pickle.dumps({"data": Evil(mark), "labels": [0]}),
        "cut": whole[:100],
        "text": b"hello",
        "other": pickle.dumps([1, 2]),
    }[damage]
    (folder / "data_batch_1").write_bytes(content)
    with pytest.raises(DataError, match=r"data_batch_1: is no CIFAR batch"):
        opened(folder, "label")
    assert not mark.exists()


# -- read whole ----------------------------------------------------------------------------------------------------


def test_other_data_is_read_whole_and_needs_no_answers_to_be_answered(tmp_path: Path) -> None:
    config = DataConfig(source=["elsewhere"])
    whole = open_whole_seen(str(labelled_folder(tmp_path / "pets")), "label", config)
    assert {part: len(rows) for part, rows in whole.parts.items()} == {"whole": 20}
    new = write_pictures(tmp_path / "new", ["a.png", "b.png"])
    bare = open_whole_seen(str(new), "label", config, needs_answers=False)
    assert bare.parts == {"whole": [SeenRow(("a.png",), ()), SeenRow(("b.png",), ())]}
    one = open_whole_seen(str(tmp_path / "new" / "a.png"), "caption", config, needs_answers=False)
    assert one.parts == {"whole": [SeenRow(("a.png",), ())]}
    table = write_rows(tmp_path / "new" / "ask.csv", [{"image": "b.png", "question": "is it there?"}])
    asked = open_whole_seen(str(table), "answer", config, needs_answers=False)
    assert asked.parts == {"whole": [SeenRow(("b.png",), ("is it there?",))]}


# -- what data is taken for ----------------------------------------------------------------------------------------


def test_data_is_taken_for_what_it_holds(tmp_path: Path) -> None:
    folders = {
        "captions": captioned_folder(tmp_path / "photos"),
        "questions": asked_folder(tmp_path / "asked"),
        "images": labelled_folder(tmp_path / "pets"),
        "paint": write_pictures(tmp_path / "flat", [f"{n}.png" for n in range(4)]),
    }
    shutil.make_archive(str(tmp_path / "pets"), "zip", tmp_path, "pets")
    assert {task: task_for(None, [str(folder)]) for task, folder in folders.items()} == {task: task for task in folders}
    assert task_for(None, [str(tmp_path / "photos" / "captions.csv")]) == "captions"
    assert task_for(None, [str(tmp_path / "asked" / "questions.json")]) == "questions"
    assert task_for(None, [str(tmp_path / "pets.zip")]) == "images"
    assert task_for(None, ["t.csv"], ["image=a", "caption=b"]) == "captions"
    for name, task in (("mnist", "images"), ("flickr8k", "captions"), ("vqa_rad:closed", "questions")):
        assert task_of([name]) == task
        check_there([name])


def test_where_two_readings_are_possible_it_asks(tmp_path: Path) -> None:
    folder = captioned_folder(tmp_path / "photos")
    write_rows(folder / "q.json", [{"image": f"{n}.png", "question": "odd?", "answer": "yes"} for n in range(3)])
    with pytest.raises(DataError, match=r"Say which with --task captions or --task questions\."):
        task_for(None, [str(folder)])
    assert task_for("captions", [str(folder)]) == "captions"
    assert len(rows_of(opened(folder, "caption"))) == 12


def test_texts_with_some_pictures_beside_them_are_texts(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"{n}.txt").write_text("a text\n")
    write_pictures(tmp_path, ["cover.png"])
    assert task_of([str(tmp_path)]) == "text"
    (tmp_path / "t.csv").write_text("id,text\n1,hello there\n2,so long my friend\n")
    assert task_of([str(tmp_path / "t.csv")]) != "captions"
