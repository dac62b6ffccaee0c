"""Public data sets: fetched whole and verified, or not at all. The server is our own, on this machine."""

from __future__ import annotations

import gzip
import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from seqwise.data.public import PUBLIC, PublicData, PublicFile, find_file, find_public, get_public, verify
from seqwise.errors import DataError

CONTENT = b"Two households, both alike in dignity,\n" * 5000


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        body = {"/longer": CONTENT + b"more", "/changed": CONTENT[:-2] + b"!\n"}.get(self.path, CONTENT)
        self.send_response(200)
        if self.path != "/unsaid":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path in ("/cut", "/unsaid") else body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache"


def offer(monkeypatch: pytest.MonkeyPatch, address: str) -> PublicFile:
    """A row of the table for one file at this address."""
    file = PublicFile("plays/romeo.txt", address, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    monkeypatch.setitem(PUBLIC, "romeo", PublicData("A play", "public domain", {"train": file}))
    return file


def refusal(cache: Path) -> str:
    """The sentence that getting the data set ends in; nothing may be left behind."""
    with pytest.raises(DataError) as caught:
        get_public("romeo")
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_fetched_verified_and_found(server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = offer(monkeypatch, f"{server}/romeo")
    told: list[int] = []
    found = get_public("romeo", on_progress=told.append)
    assert found == find_public("romeo") == {"train": cache / "data" / "plays" / "romeo.txt"}
    assert found["train"].read_bytes() == CONTENT
    assert sum(told) == len(CONTENT)
    assert [path.name for path in cache.rglob("*") if path.is_file()] == ["romeo.txt"]
    verify(file, found["train"])


def test_a_file_at_hand_is_not_fetched_again(server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, f"{server}/romeo")
    get_public("romeo")
    offer(monkeypatch, f"{server}/missing")
    assert get_public("romeo") == find_public("romeo")


def test_a_file_with_other_content_is_refused(server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, f"{server}/changed")
    assert "not the expected content (sha256 " in refusal(cache)


def test_a_file_that_is_too_long_is_refused(server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, f"{server}/longer")
    assert refusal(cache) == f"{server}/longer: more than the expected {len(CONTENT):,} bytes; stopped."


@pytest.mark.parametrize("page", ["cut", "unsaid"])
def test_a_file_that_ends_too_early_is_refused(
    page: str, server: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, f"{server}/{page}")
    sentence = refusal(cache)
    assert sentence.startswith(f"{server}/{page}: ")
    assert sentence.endswith("ry again.")


def test_a_page_that_does_not_exist_is_told(server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, f"{server}/missing")
    assert refusal(cache) == (f"{server}/missing: cannot be fetched: Not Found. Check the connection and try again.")


def test_a_server_that_does_not_answer_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    offer(monkeypatch, f"http://127.0.0.1:{port}/romeo")
    sentence = refusal(cache)
    assert sentence.startswith(f"http://127.0.0.1:{port}/romeo: cannot be fetched: ")
    assert "Connection refused" in sentence


def test_a_cache_that_cannot_be_written_is_told(server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, f"{server}/romeo")
    cache.mkdir()
    (cache / "data").write_text("a file, where a folder should be")
    with pytest.raises(DataError):
        get_public("romeo")


def test_an_unknown_data_set_gets_the_nearest_name() -> None:
    with pytest.raises(DataError) as caught:
        get_public("tinyshakespear")
    assert str(caught.value) == 'unknown data set "tinyshakespear". Did you mean "tinyshakespeare"?'


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_copy_is_verified_by_its_unpacked_content(packed: str, tmp_path: Path) -> None:
    file = PublicFile("romeo.txt", "", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    path = tmp_path / f"romeo.txt{packed}"
    path.write_bytes(gzip.compress(CONTENT) if packed else CONTENT)
    verify(file, path)
    path.write_bytes(gzip.compress(CONTENT[1:]) if packed else CONTENT[1:])
    with pytest.raises(
        DataError, match=r"romeo\.txt.*: not the expected content \(sha256 .*Delete it and get it again"
    ):
        verify(file, path)


def test_the_folder_in_seqwise_data_comes_before_what_was_fetched(
    server: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = offer(monkeypatch, f"{server}/romeo")
    fetched = get_public("romeo")["train"]
    own = tmp_path / "sets" / "plays" / "romeo.txt.gz"
    own.parent.mkdir(parents=True)
    own.write_bytes(gzip.compress(CONTENT))
    assert find_file(file) == fetched
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path / "sets"))
    assert find_file(file) == own


@pytest.mark.parametrize("name", PUBLIC)
def test_every_row_of_the_table_is_complete(name: str) -> None:
    row = PUBLIC[name]
    assert row.title
    assert row.licence
    assert row.files
    assert "train" in row.files or row.holds != "text"
    for file in row.files.values():
        assert file.address.startswith("https://") or row.how_to_get
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.num_bytes > 300


def test_the_copies_at_hand_are_the_ones_in_the_table(shared_data: Path) -> None:
    files = [file for row in PUBLIC.values() for file in row.files.values()]
    found = [(file, find_file(file)) for file in files]
    assert any(path is not None for _, path in found)
    for file, path in found:
        if path is not None:
            verify(file, path)
