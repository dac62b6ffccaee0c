"""Token stores: the ids of a part, built once, in little memory, whole or not at all."""

from __future__ import annotations

import errno
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqwise.data import store as store_module
from seqwise.data.source import TextData, open_text
from seqwise.data.store import TokenStore, build_store, store_of_text
from seqwise.errors import DataError
from seqwise.text import TOKENIZERS, Tokenizer, train_tokenizer
from seqwise.text.characters import CharTokenizer

TEXT = "".join(f"line {i}, \nhe said: “häuser”\n\n  and more. \n" for i in range(200))


class Spy(CharTokenizer):
    """Counts how often it is asked to encode."""

    calls = 0

    def encode(self, text: str) -> np.ndarray:
        self.calls += 1
        return super().encode(text)


class ManyTokens(CharTokenizer):
    """A vocabulary of a chosen size; the letter z has its last id."""

    def __init__(self, vocab_size: int):
        super().__init__(["\n", "a", "z"])
        self.vocab_size = vocab_size

    def encode(self, text: str) -> np.ndarray:
        ids = super().encode(text)
        ids[ids == 18] = self.vocab_size - 1
        return ids


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone."""
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def data(tmp_path: Path) -> TextData:
    return text_data(tmp_path / "poems.txt", TEXT)


def text_data(path: Path, text: str) -> TextData:
    path.write_text(text)
    return open_text(path)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def stored(cache: Path) -> Path:
    """The folder of the only store."""
    (folder,) = (cache / "stores").iterdir()
    return folder


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_a_store_holds_the_boundary_and_then_the_ids_of_the_text(
    kind: str, block_bytes: int, data: TextData, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = train_tokenizer(kind, [TEXT])
    monkeypatch.setattr("seqwise.data.files.BLOCK_BYTES", block_bytes)
    for part in data.parts:
        text = "".join(data.parts[part].blocks())
        store = build_store(data, part, tokenizer)
        assert store.ids.tolist() == [tokenizer.boundary, *tokenizer.encode(text)]
        assert (store.num_tokens, store.num_chars) == (len(store.ids) - 1, len(text))
        assert store_of_text(text, tokenizer).ids.tolist() == store.ids.tolist()


def test_a_store_is_built_once_for_the_same_content(data: TextData, tmp_path: Path, cache: Path) -> None:
    tokenizer = Spy.train([TEXT])
    first = build_store(data, "train", tokenizer)
    calls = tokenizer.calls
    assert calls > 0
    same = text_data(tmp_path / "elsewhere.txt", TEXT)
    assert build_store(same, "train", tokenizer).ids.tolist() == first.ids.tolist()
    assert tokenizer.calls == calls


def test_another_text_part_split_or_vocabulary_is_another_store(data: TextData, tmp_path: Path, cache: Path) -> None:
    tokenizer = train_tokenizer("char", [TEXT])
    build_store(data, "train", tokenizer)
    build_store(data, "valid", tokenizer)
    build_store(open_text(tmp_path / "poems.txt", split="90/10"), "train", tokenizer)
    build_store(text_data(tmp_path / "other.txt", TEXT.replace("said", "sang")), "train", tokenizer)
    build_store(data, "train", train_tokenizer("char", [TEXT + "ß"]))
    build_store(data, "train", train_tokenizer("word", [TEXT]))
    assert len(list((cache / "stores").iterdir())) == 6


def test_progress_is_told_every_character(data: TextData, cache: Path) -> None:
    told: list[int] = []
    build_store(data, "train", train_tokenizer("char", [TEXT]), on_progress=told.append)
    assert sum(told) == data.characters["train"]


def test_a_store_that_was_never_finished_is_built_again(data: TextData, cache: Path) -> None:
    tokenizer = train_tokenizer("char", [TEXT])
    whole = build_store(data, "train", tokenizer).ids.tolist()
    folder = stored(cache)
    (folder / "store.json").unlink()
    (folder / "ids.bin").write_bytes(b"half")
    assert build_store(data, "train", tokenizer).ids.tolist() == whole
    assert files_below(cache / "stores") == [f"{folder.name}/ids.bin", f"{folder.name}/store.json"]


@pytest.mark.parametrize(
    ("name", "content"), [("ids.bin", b"\0\0"), ("ids.bin", None), ("store.json", b""), ("store.json", b"{}")]
)
def test_a_damaged_store_is_named_or_built_again(name: str, content: bytes | None, data: TextData, cache: Path) -> None:
    tokenizer = train_tokenizer("char", [TEXT])
    whole = build_store(data, "train", tokenizer).ids.tolist()
    damaged = stored(cache) / name
    damaged.unlink() if content is None else damaged.write_bytes(content)
    found: list[int] | str
    try:
        found = build_store(data, "train", tokenizer).ids.tolist()
    except DataError as error:
        found = str(error)
    assert found == whole or f"{damaged.parent}: " in found


def test_ids_cut_short_are_told_in_a_sentence(data: TextData, cache: Path) -> None:
    tokenizer = train_tokenizer("char", [TEXT])
    build_store(data, "train", tokenizer)
    path = stored(cache) / "ids.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(DataError, match=r"the token store is cut short\. Delete that folder"):
        build_store(data, "train", tokenizer)


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "char": ("char", {"min_count": 60}),
    "bpe": ("bpe", {"vocab_size": 280}),
    "words": ("word", {"min_count": 60}),
    "tokenised words": ("word", {"min_count": 60, "split_punctuation": False}),
    "small letters": ("word", {"lower_case": True}),
    "pieces of words": ("wordpiece", {"vocab_size": 20}),
}
MARKED = "  Ein  Wörtchen, 東京\tu. a.: İ <unk>\n\n  x" * 700 + " \u2003 "


@pytest.mark.parametrize(("kind", "settings"), KINDS.values(), ids=KINDS)
def test_the_lengths_of_all_tokens_are_those_of_the_text(
    tmp_path: Path, cache: Path, kind: str, settings: dict[str, Any]
) -> None:
    """From the disk and in memory, block by block and at once."""
    (tmp_path / "marked.txt").write_text(MARKED, encoding="utf-8")
    data = open_text(tmp_path / "marked.txt")
    tokenizer = train_tokenizer(kind, [MARKED], **settings)
    store = build_store(data, "train", tokenizer)
    text = "".join(data.parts["train"].blocks())
    lengths = store.lengths(np.arange(store.num_tokens))
    assert lengths.sum() == store.num_chars == len(text)
    in_memory = store_of_text(text, tokenizer)
    assert in_memory.lengths(np.arange(store.num_tokens)).tolist() == lengths.tolist()
    assert in_memory.spelling.places.tolist() == store.spelling.places.tolist()
    assert in_memory.spelling.values.tolist() == pytest.approx(store.spelling.values.tolist())
    places = np.array([0, 1, 255, 256, 257, store.num_tokens - 1, store.num_tokens])
    assert store.begins(places).tolist() == [lengths[:place].sum() for place in places]
    beginning = store.take(300)
    assert beginning.num_chars == lengths[:300].sum()
    assert beginning.lengths(np.arange(300)).tolist() == lengths[:300].tolist()
    assert beginning.spelling.places.tolist() == [place for place in store.spelling.places if place < 300]


def test_white_space_that_is_a_block_by_itself_belongs_to_the_words_around_it(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = ["   ", "a b", "  ", " ", "c\n", "    "]
    monkeypatch.setattr(store_module, "whole_blocks", lambda _: iter(blocks))
    (tmp_path / "x.txt").write_text(TEXT)
    store = build_store(open_text(tmp_path / "x.txt"), "train", train_tokenizer("word", ["a b c\n"]))
    assert store.lengths(np.arange(4)).tolist() == [4, 2, 4, 5]
    assert store.num_chars == sum(map(len, blocks))


def test_a_side_file_that_is_cut_short_is_told(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "marked.txt").write_text(MARKED, encoding="utf-8")
    data, tokenizer = open_text(tmp_path / "marked.txt"), train_tokenizer("word", [MARKED], min_count=1000)
    build_store(data, "train", tokenizer)
    for name in ("spelling.bin", "odd_places.bin"):
        path = stored(cache) / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-8])
        with pytest.raises(DataError, match=r"the token store is cut short"):
            build_store(data, "train", tokenizer)
        path.write_bytes(whole)


class FullDisk(np.ndarray):
    """An array whose way to the disk is closed."""

    def tofile(self, *args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_and_leaves_nothing_behind(
    data: TextData, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = train_tokenizer("char", [TEXT])
    with monkeypatch.context() as patch:
        patch.setattr(CharTokenizer, "encode", lambda self, text: np.full(len(text), 20).view(FullDisk))
        with pytest.raises(DataError) as caught:
            build_store(data, "train", tokenizer)
    assert str(caught.value) == (
        f"cannot write the token store below {cache / 'stores'}: No space left on device. "
        "Free some space, or set SEQWISE_CACHE to a folder on another disk."
    )
    assert files_below(cache) == []
    assert list((cache / "stores").iterdir()) == []
    assert build_store(data, "train", tokenizer).num_tokens == data.characters["train"]


@pytest.mark.parametrize("name", ["store.json", "rename"])
def test_a_disk_that_fills_up_at_the_very_end_leaves_nothing_behind(
    name: str, data: TextData, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text" if name == "store.json" else "rename", fail)
    with pytest.raises(DataError, match="No space left on device"):
        build_store(data, "train", train_tokenizer("char", [TEXT]))
    assert files_below(cache) == []


def test_a_cache_that_cannot_be_written_is_told(
    data: TextData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "poems.txt"))  # a file, where a folder should be
    with pytest.raises(DataError, match=r"cannot write the token store below .* set SEQWISE_CACHE"):
        build_store(data, "train", train_tokenizer("char", [TEXT]))


def test_an_interrupted_build_leaves_nothing_behind(data: TextData, cache: Path) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_store(data, "train", train_tokenizer("char", [TEXT]), on_progress=interrupt)
    assert files_below(cache) == []


@pytest.mark.parametrize(("vocab_size", "dtype"), [(100, "uint16"), (1 << 16, "uint16"), ((1 << 16) + 1, "uint32")])
def test_ids_take_two_bytes_where_they_fit(vocab_size: int, dtype: str, tmp_path: Path, cache: Path) -> None:
    store = build_store(text_data(tmp_path / "letters.txt", "az\n" * 100), "train", ManyTokens(vocab_size))
    assert store.ids.dtype == np.dtype(dtype)
    assert store.ids[:4].tolist() == [16, 17, vocab_size - 1, 16]


def test_a_store_is_mapped_and_cannot_be_changed(data: TextData, cache: Path) -> None:
    store = build_store(data, "train", train_tokenizer("char", [TEXT]))
    assert isinstance(store.ids, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        store.ids[0] = 1


def test_a_store_is_built_in_memory_that_does_not_grow_with_the_text(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "long.txt"
    with path.open("w") as file:
        for _ in range(60):
            file.write("the quick brown fox jumps over the lazy dog, again and again, ok?\n" * 16_000)
    tracemalloc.start()
    try:
        data = open_text(path)
        tokenizer: Tokenizer = CharTokenizer(["\n", *" abcdefghijklmnopqrstuvwxyz,?"])
        store = build_store(data, "train", tokenizer)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 60e6
    assert store.num_tokens == data.characters["train"] > 50e6
    assert peak < 30e6


def test_a_text_at_hand_has_a_store_in_memory() -> None:
    tokenizer = train_tokenizer("char", ["ab\n"])
    store = store_of_text("ab", tokenizer)
    assert isinstance(store, TokenStore)
    assert store.ids.tolist() == [tokenizer.boundary, *tokenizer.encode("ab")]
    assert (store.num_tokens, store.num_chars) == (2, 2)
