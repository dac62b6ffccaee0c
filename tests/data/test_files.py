"""Files -> text: what is not UTF-8 is told by line and byte, packed files unpack, line ends are newlines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from seqwise.data.files import (
    BLOCK_BYTES,
    FREELY_UNPACKED,
    MAX_UNPACKED_RATIO,
    kind_of,
    lines_of,
    read_text,
    text_files,
)
from seqwise.errors import DataError

EXAMPLES = settings(max_examples=50, deadline=None, derandomize=True, database=None)
BOM = b"\xef\xbb\xbf"


def text_of(path: Path) -> str:
    return "".join(read_text(path))


def read_in_blocks(data: bytes, block_bytes: int) -> str:
    """The text of a file that is read a few bytes at a time."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqwise.data.files.BLOCK_BYTES", block_bytes)
        path = Path(folder) / "poems.txt"
        path.write_bytes(data)
        return text_of(path)


def complaint(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        text_of(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_byte_that_is_not_utf8_is_told_by_file_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "poems.txt"
    path.write_bytes("ok\nnaïve\n".encode() + b"caf\xe9 noir\n")
    assert complaint(path) == (
        f"{path}: not UTF-8: line 3, byte 13 is 0xe9. Convert it, for example: iconv -f latin1 -t utf-8 poems.txt"
    )


@pytest.mark.parametrize("before", [0, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 7])
def test_the_place_is_right_in_and_around_every_block(before: int, tmp_path: Path) -> None:
    data = (b"abcdefg\n" * (before // 8 + 1))[:before]
    path = tmp_path / "poems.txt"
    path.write_bytes(data + b"\xff\nmore\n")
    assert f"line {data.count(10) + 1}, byte {before} is 0xff" in complaint(path)


@pytest.mark.parametrize("before", range(BLOCK_BYTES - 4, BLOCK_BYTES + 1))
def test_a_sequence_broken_at_the_end_of_a_block_is_told_by_its_first_byte(before: int, tmp_path: Path) -> None:
    path = tmp_path / "poems.txt"
    path.write_bytes(b"\n" * before + b"\xf0\x9f\x98x")  # a face without its last byte
    assert f"line {before + 1}, byte {before} is 0xf0" in complaint(path)


@pytest.mark.parametrize("before", [0, 1, 2, 5, BLOCK_BYTES - 1, BLOCK_BYTES])
def test_a_sequence_cut_off_at_the_end_of_the_file_is_told(before: int, tmp_path: Path) -> None:
    path = tmp_path / "poems.txt"
    path.write_bytes(b"a" * before + "é".encode()[:1])
    assert f"line 1, byte {before} is 0xc3" in complaint(path)


@pytest.mark.parametrize("length", [1, 2])
def test_a_cut_off_byte_order_mark_is_told(length: int, tmp_path: Path) -> None:
    path = tmp_path / "poems.txt"
    path.write_bytes(BOM[:length])
    assert "line 1, byte 0 is 0xef" in complaint(path)


def test_the_place_counts_the_bytes_of_the_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "poems.txt"
    path.write_bytes(BOM + b"ab\ncd\xff")
    assert "line 2, byte 8 is 0xff" in complaint(path)


pieces = st.sampled_from(
    [b"a", b"\n", "é".encode(), "€".encode(), "😀".encode(), b"\xff", b"\x80", b"\xf0\x9f", b"\xc3"]
)


@EXAMPLES
@given(data=st.lists(pieces, min_size=1, max_size=15).map(b"".join), block_bytes=st.integers(1, 8))
@example(data=b"a\n\xf0\x9f", block_bytes=1)
def test_any_mistake_is_found_where_decoding_the_whole_finds_it(data: bytes, block_bytes: int) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"line {data[: error.start].count(10) + 1}, byte {error.start} is 0x{data[error.start]:02x}."
    else:
        assume(False)
    with pytest.raises(DataError) as caught:
        read_in_blocks(data, block_bytes)
    assert place in str(caught.value)


@EXAMPLES
@given(
    text=st.lists(st.sampled_from(["a", "é", "\r\n", "\r", "\n", "\ufeff", "😀"]), max_size=15).map("".join),
    block_bytes=st.integers(1, 8),
    has_mark=st.booleans(),
)
@example(text="a\r\nb", block_bytes=2, has_mark=True)
@example(text="\r", block_bytes=1, has_mark=False)
def test_lines_end_in_a_newline_and_the_byte_order_mark_is_dropped(text: str, block_bytes: int, has_mark: bool) -> None:
    assume(has_mark or not text.startswith("\ufeff"))
    expected = text.replace("\r\n", "\n").replace("\r", "\n")
    assert read_in_blocks(BOM * has_mark + text.encode(), block_bytes) == expected


def test_a_line_end_of_two_bytes_across_two_blocks_is_one_newline(tmp_path: Path) -> None:
    path = tmp_path / "poems.txt"
    path.write_bytes(BOM + b"x" * (BLOCK_BYTES - 4) + b"\r\nend\r\n")
    assert text_of(path) == "x" * (BLOCK_BYTES - 4) + "\nend\n"


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress), (".GZ", gzip.compress)]
)
def test_a_packed_file_is_unpacked(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / f"poems.txt{suffix}"
    text = "naïve café\n" * 1000
    path.write_bytes(pack(text.encode()))
    assert text_of(path) == text
    assert kind_of(path) == ".txt"


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)])
@pytest.mark.parametrize("harm", ["cut off", "changed", "not packed"])
def test_a_damaged_archive_is_named(suffix: str, pack: Callable[[bytes], bytes], harm: str, tmp_path: Path) -> None:
    data = bytearray(pack("naïve café\n".encode() * 1000))
    if harm == "cut off":
        del data[len(data) // 2 :]
    elif harm == "changed":
        data[len(data) // 2] ^= 0xFF
    else:
        data = bytearray(b"plain text\n")
    path = tmp_path / f"poems.txt{suffix}"
    path.write_bytes(data)
    assert complaint(path).startswith(f"{path}: ")


def test_a_damaged_gzip_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "poems.txt.gz"
    path.write_bytes(gzip.compress(b"some text\n" * 100)[:-20])
    assert "damaged or cut-off archive" in complaint(path)
    assert complaint(path).endswith("Get the file again.")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.txt", tmp_path / "nothing"):
        with pytest.raises(DataError) as caught:
            text_files(path)
        assert str(caught.value) == f"{path}: no such file or folder."
        assert complaint(path) == f"{path}: cannot be read: No such file or directory."


def test_a_folder_where_a_file_is_expected_is_named(tmp_path: Path) -> None:
    assert complaint(tmp_path) == f"{tmp_path}: is a folder, expected a file."


def test_a_folder_stands_for_its_text_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.txt", "a.md", "deep/er/c.py", "a.txt.gz", "image.png", "table.csv", "deep/.txt.swp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    names = [str(file.relative_to(tmp_path)) for file in text_files(tmp_path)]
    assert names == ["a.md", "a.txt.gz", "b.txt", "deep/er/c.py"]
    assert text_files(tmp_path / "image.png") == [tmp_path / "image.png"]  # a file that is named is read


def test_a_folder_without_text_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no text files .* in this folder; it holds nothing"):
        text_files(tmp_path)
    (tmp_path / "image.png").write_bytes(b"")
    (tmp_path / "table.csv").write_bytes(b"")
    with pytest.raises(DataError, match=r"it holds \.csv, \.png\.$"):
        text_files(tmp_path)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)])
def test_an_archive_that_unpacks_without_end_is_refused_early(
    suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / f"poems.txt{suffix}"
    path.write_bytes(pack(b" " * 60_000_000))
    taken: list[str] = []
    with pytest.raises(DataError, match=r"unpacks to more than 200 times its [\d,]+ bytes.* unpack it yourself"):
        taken.extend(read_text(path))
    assert sum(map(len, taken)) <= FREELY_UNPACKED
    unpacked = tmp_path / "poems.txt"  # the way round it
    unpacked.write_bytes(b" " * 60_000_000)
    assert sum(map(len, read_text(unpacked))) == 60_000_000


def test_a_small_archive_may_hold_what_repeats_itself(tmp_path: Path) -> None:
    path = tmp_path / "poems.txt.gz"
    path.write_bytes(gzip.compress(b"a" * 1_000_000))
    assert len(text_of(path)) == 1_000_000 > MAX_UNPACKED_RATIO * path.stat().st_size


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("utf-16", "is UTF-16 by its byte-order mark, expected UTF-8. Convert it, for example: iconv -f utf-16 "),
        ("utf-32", "is UTF-32 by its byte-order mark, expected UTF-8. Convert it, for example: iconv -f utf-32 "),
        ("utf-16-le", "every few bytes are NUL, so it is no UTF-8 text. If it is UTF-16, convert it"),
    ],
)
def test_other_encodings_are_told_by_their_name(encoding: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "poems.txt"
    path.write_bytes("Shall I compare thee\nto a summer's day?\n".encode(encoding))
    assert words in complaint(path)


@given(st.lists(st.sampled_from(["a", "b c", "\n", "\n\n", ""]), max_size=12))
def test_lines_are_those_of_the_text_wherever_its_blocks_are_cut(blocks: list[str]) -> None:
    *lines, last = "".join(blocks).split("\n")
    assert list(lines_of(iter(blocks))) == [*lines, *([last] if last else [])]
