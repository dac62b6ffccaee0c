"""Names of the hub, against a server on loopback that speaks the few routes that are needed."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from seqwise.errors import ConfigError, DataError
from seqwise.interop.hf_hub import fetch_folder

hub_library = pytest.importorskip("huggingface_hub", reason="needs the extra hub")
COMMIT = "a" * 40


class Hub:
    """Models by name, each with its files; what was asked for; models whose files are refused."""

    def __init__(self) -> None:
        self.models: dict[str, dict[str, bytes]] = {}
        self.fetched: list[str] = []
        self.refused_files: dict[str, tuple[int, str]] = {}
        self.status = 200
        self.address = ""


class Answers(BaseHTTPRequestHandler):
    hub: Hub

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path).removeprefix("/")
        is_api, path = path.startswith("api/models/"), path.removeprefix("api/models/")
        name, rest = "/".join(path.split("/")[:2]), "/".join(path.split("/")[2:])
        if self.hub.status != 200:
            return self.reply(self.hub.status, b"{}", with_body)
        if name not in self.hub.models:
            return self.reply(404, b"{}", with_body, **{"X-Error-Code": "RepoNotFound"})
        files = self.hub.models[name]
        if is_api and rest.startswith("tree/"):
            listed = [{"type": "file", "path": p, "size": len(c), "oid": _etag(c)} for p, c in files.items()]
            return self.reply(200, json.dumps(listed).encode(), with_body)
        if is_api:
            listed = [{"rfilename": p} for p in files]
            info = {"id": name, "modelId": name, "sha": COMMIT, "siblings": listed, "tags": []}
            return self.reply(200, json.dumps(info).encode(), with_body)
        if name in self.hub.refused_files:
            status, code = self.hub.refused_files[name]
            return self.reply(status, b"{}", with_body, **{"X-Error-Code": code})
        content = files[rest.removeprefix(f"resolve/{COMMIT}/")]
        if with_body:
            self.hub.fetched.append(rest.removeprefix(f"resolve/{COMMIT}/"))
        return self.reply(200, content, with_body, **{"X-Repo-Commit": COMMIT, "ETag": f'"{_etag(content)}"'})

    def reply(self, status: int, body: bytes, with_body: bool, **headers: str) -> None:
        self.send_response(status)
        for header, value in {"Content-Length": str(len(body)), "Content-Type": "application/json", **headers}.items():
            self.send_header(header, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _etag(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    found = Hub()
    handler = type("OfThisHub", (Answers,), {"hub": found})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        found.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield found
        server.shutdown()
        thread.join(timeout=10)


TINY = {"config.json": b"{}", "model.safetensors": b"weights", "tokenizer.json": b"[]", "source.spm": b"pieces"}
BESIDES = {"flax_model.msgpack": b"x", "tf_model.h5": b"x", "pytorch_model.bin": b"x", "onnx/model.safetensors": b"x"}


def test_what_is_read_is_fetched_and_nothing_else(hub: Hub) -> None:
    hub.models["org/tiny"] = {**TINY, **BESIDES, "1_Pooling/config.json": b"mean"}
    folder = fetch_folder("org/tiny", endpoint=hub.address)
    assert sorted(hub.fetched) == sorted([*TINY, "1_Pooling/config.json"])
    assert {name: (folder / name).read_bytes() for name in TINY} == TINY


def test_pickled_weights_only_where_there_are_no_others(hub: Hub) -> None:
    hub.models["org/old"] = {"config.json": b"{}", "pytorch_model.bin": b"pickled"}
    folder = fetch_folder("org/old", endpoint=hub.address)
    assert (folder / "pytorch_model.bin").read_bytes() == b"pickled"


def test_shards_and_their_index(hub: Hub) -> None:
    shards = {f"model-0000{n}-of-00002.safetensors": b"%d" % n for n in (1, 2)}
    hub.models["org/large"] = {"config.json": b"{}", "model.safetensors.index.json": b"{}", **shards}
    folder = fetch_folder("org/large", endpoint=hub.address)
    assert {path.name for path in folder.iterdir()} == hub.models["org/large"].keys()


def test_a_second_time_nothing_is_fetched_and_without_a_connection_it_is_still_there(hub: Hub) -> None:
    hub.models["org/tiny"] = dict(TINY)
    first = fetch_folder("org/tiny", endpoint=hub.address)
    hub.fetched.clear()
    assert fetch_folder("org/tiny", endpoint=hub.address) == first
    assert hub.fetched == []
    assert fetch_folder("org/tiny", endpoint=f"http://127.0.0.1:{_closed_port()}") == first


def test_no_connection(hub: Hub) -> None:
    address = f"http://127.0.0.1:{_closed_port()}"
    with pytest.raises(DataError, match=f"org/tiny: could not be fetched from {address}: .*Check the connection"):
        fetch_folder("org/tiny", endpoint=address)


def test_offline_by_wish(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="HF_HUB_OFFLINE forbids"):
        fetch_folder("org/tiny", endpoint=hub.address)


def test_no_such_model(hub: Hub) -> None:
    with pytest.raises(DataError, match=r"org/missing: no such folder here, and no such model at http://127\."):
        fetch_folder("org/missing", endpoint=hub.address)


def test_a_gated_model_says_how_to_get_in(hub: Hub) -> None:
    hub.models["org/gated"] = dict(TINY)
    hub.refused_files["org/gated"] = (403, "GatedRepo")
    with pytest.raises(DataError, match=f"Accept their terms at {hub.address}/org/gated, then log in: hf auth login"):
        fetch_folder("org/gated", endpoint=hub.address)


def test_a_hub_that_fails(hub: Hub) -> None:
    hub.status = 418
    with pytest.raises(DataError, match=r"org/tiny: .*418"):
        fetch_folder("org/tiny", endpoint=hub.address)


def test_a_file_that_fails(hub: Hub) -> None:
    hub.models["org/tiny"] = dict(TINY)
    hub.refused_files["org/tiny"] = (410, "Gone")
    with pytest.raises(DataError, match=r"org/tiny: could not be fetched .*410"):
        fetch_folder("org/tiny", endpoint=hub.address)


def test_a_repository_without_a_model(hub: Hub) -> None:
    hub.models["org/notes"] = {"README.md": b"words"}
    with pytest.raises(DataError, match=r"org/notes: the hub has no config\.json"):
        fetch_folder("org/notes", endpoint=hub.address)


def test_a_folder_that_exists_is_taken_as_it_is(hub: Hub) -> None:
    Path("org/tiny").mkdir(parents=True)
    hub.models["org/tiny"] = dict(TINY)
    assert fetch_folder("org/tiny", endpoint=hub.address) == Path("org/tiny")
    assert fetch_folder("hf:org/tiny", endpoint=hub.address) != Path("org/tiny")


@pytest.mark.parametrize("name", ["./minilm", "/models/minilm", "a/b/c", "minilm", "~/minilm", "org/", "", "org/a b"])
def test_a_path_that_is_not_there_is_not_asked_for(hub: Hub, name: str) -> None:
    hub.status = 500
    with pytest.raises(DataError, match="no such folder"):
        fetch_folder(name, endpoint=hub.address)


def test_a_misspelled_run_is_not_asked_for(hub: Hub) -> None:
    Path("runs").mkdir()
    with pytest.raises(DataError, match=r"runs/minilm: no such folder, though there is runs/.*hf:runs/minilm"):
        fetch_folder("runs/minilm", endpoint=hub.address)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match=r'org/tiny: .* pip install "\.\[hub\]"'):
        fetch_folder("org/tiny")


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
