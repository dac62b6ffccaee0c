"""Public sets as pairs: laid out as published, every direction, and a sentence where one is missing."""

from __future__ import annotations

import gzip
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.pairs import PairData, open_pairs
from seqwise.data.public import PUBLIC, PublicData, PublicFile, find_file, get_public
from seqwise.data.source import open_text
from seqwise.errors import ConfigError, DataError

LANGUAGES = ("en", "de", "fr", "cs")
CAPTIONS = {
    f"{part}.{language}": "".join(f"{language} caption {part} {i}\n" for i in range(num)).encode()
    for part, num in (("train", 30), ("valid", 4), ("test", 3))
    for language in LANGUAGES
}


@pytest.fixture
def server() -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/").removesuffix(".gz")
            body = gzip.compress(CAPTIONS[name.removeprefix("cut/")])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if name.startswith("cut/") else body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def offer(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """A small Multi30k at this address, packed."""
    files = {
        name: PublicFile(f"multi30k/{name}", f"{address}/{name}.gz", hashlib.sha256(text).hexdigest(), len(text))
        for name, text in CAPTIONS.items()
    }
    monkeypatch.setitem(PUBLIC, "multi30k", PublicData("Captions", "research use", files, holds="pairs"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def sizes(data: PairData) -> dict[str, int]:
    return {part: len(pairs) for part, pairs in data.parts.items()}


# -- fetched -----------------------------------------------------------------------------------------------------


def test_packed_files_are_fetched_verified_and_read(
    server: str, terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, server)
    out, _ = terminal.done("data", "get", "multi30k")
    assert len(out.splitlines()) == 12
    assert out.splitlines()[0] == (
        f"multi30k train.en: {tmp_path / 'cache' / 'data' / 'multi30k' / 'train.en.gz'} (sha256 verified)"
    )
    assert len(list((tmp_path / "cache" / "data").rglob("*.*"))) == 12
    data = open_pairs(["multi30k:de-cs"])
    assert sizes(data) == {"train": 30, "valid": 4, "test": 3}
    assert data.parts["valid"][2] == ("de caption valid 2", "cs caption valid 2")


def test_a_packed_file_that_is_cut_off_is_refused(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path))
    offer(monkeypatch, f"{server}/cut")
    with pytest.raises(DataError, match="damaged or cut-off archive"):
        get_public("multi30k")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_two_languages_at_hand_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "http://127.0.0.1:9")
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path))
    (tmp_path / "multi30k").mkdir()
    for name, text in CAPTIONS.items():
        if name.endswith((".en", ".de")):
            (tmp_path / "multi30k" / name).write_bytes(text)
    assert sizes(open_pairs(["multi30k:en-de"])) == {"train": 30, "valid": 4, "test": 3}
    with pytest.raises(DataError, match=r'data set "multi30k" is not on this machine\. Run: seqwise data get multi30k'):
        open_pairs(["multi30k:en-fr"])


# -- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("multi30k", '"multi30k" holds several languages. Ask for two of them: multi30k:en-de, multi30k:de-en, '),
        ("tatoeba", '"tatoeba" holds several languages. Ask for two of them: tatoeba:en-fr, tatoeba:fr-en, '),
        ("multi30k:en-dd", '"multi30k:en-dd": no such languages in this set. Did you mean "multi30k:en-de"?'),
        ("multi30k:en-en", "no such languages in this set."),
        ("multi30k:en", "no such languages in this set."),
        ("cmudict:en-de", '"cmudict:en-de": cmudict has no languages to choose; drop ":en-de".'),
        ("cmudict", 'data set "cmudict" is not on this machine. Run: seqwise data get cmudict (or set SEQWISE_DATA'),
        ("tatoeba:de-en", "Set SEQWISE_DATA to a folder that has tatoeba/deu-eng.tsv, or give a newer file"),
    ],
)
def test_a_set_that_cannot_be_read_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        open_pairs([name])
    assert sentence in str(caught.value)


def test_other_sets_and_options_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r'"multi30k:en-de" holds pairs of sequences, and language models read running'):
        open_text("multi30k:en-de")
    with pytest.raises(DataError, match=r"data set \"tatoeba\" cannot be fetched\. Set SEQWISE_DATA to a folder"):
        get_public("tatoeba")
    with pytest.raises(DataError, match=r'"numbers:en-de" is built in: there is nothing to get'):
        get_public("numbers:en-de")
    with pytest.raises(ConfigError, match=r"dates:en-fr:10 has parts already"):
        open_pairs(["dates:en-fr:10"], split="90/10")
    with pytest.raises(ConfigError, match=r"--columns goes with files"):
        open_pairs(["dates:en-fr:10"], columns=["en", "fr"])


def test_a_damaged_dictionary_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path))
    (tmp_path / "nltk").mkdir()
    path = tmp_path / "nltk" / "cmudict.zip"
    path.write_bytes(b"PK no zip")
    with pytest.raises(DataError, match=r"cmudict\.zip: not the expected archive .*Get it again"):
        open_pairs(["cmudict"])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", "x")
    with pytest.raises(DataError, match=r"cmudict\.zip: not the expected archive"):
        open_pairs(["cmudict"])


# -- the real ones -------------------------------------------------------------------------------------------------


def need(name: str) -> None:
    if any(find_file(file) is None for file in PUBLIC[name].files.values()):
        pytest.skip(f"needs the data set {name} below SEQWISE_DATA")


@pytest.mark.parametrize("languages", ["en-de", "de-en", "en-fr", "fr-cs"])
def test_multi30k(languages: str, shared_data: Path) -> None:
    need("multi30k")
    data = open_pairs([f"multi30k:{languages}"])
    assert sizes(data) == {"train": 29_000, "valid": 1_014, "test": 1_000}
    if languages == "en-de":
        assert data.parts["train"][0][1] == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
        assert data.parts["test"][0][0] == "A man in an orange hat starring at something."


@pytest.mark.parametrize(
    ("name", "total"), [("tatoeba:en-fr", 140_666), ("tatoeba:de-en", 169_197), ("tatoeba:es-en", 118_964)]
)
def test_tatoeba_is_split_by_its_english_side(name: str, total: int, shared_data: Path) -> None:
    need("tatoeba")
    data = open_pairs([name])
    assert sizes(data) == {"train": total - 4_000, "valid": 2_000, "test": 2_000}
    english = [{pair[name.endswith("-en")] for pair in pairs} for pairs in data.parts.values()]
    assert sum(len(some) for some in english) == len(set.union(*english))
    middle = [sorted(len(source) for source, _ in pairs)[len(pairs) // 2] for pairs in data.parts.values()]
    assert max(middle) - min(middle) <= 2  # although the file is sorted by length


def test_both_directions_of_tatoeba_hold_the_same_pairs(shared_data: Path) -> None:
    need("tatoeba")
    there, back = open_pairs(["tatoeba:en-es"]), open_pairs(["tatoeba:es-en"])
    for part in there.parts:
        assert there.parts[part] == [(english, spanish) for spanish, english in back.parts[part]]


def test_cmudict(shared_data: Path) -> None:
    need("cmudict")
    data = open_pairs(["cmudict"])
    assert sizes(data) == {"train": 129_737, "valid": 2_000, "test": 2_000}
    pairs = {pair for some in data.parts.values() for pair in some}
    assert {("natural", "N AE1 CH ER0 AH0 L"), ("aaronson", "EH1 R AH0 N S AH0 N")} <= pairs
    assert ("aaronson", "AA1 R AH0 N S AH0 N") in pairs
    words = [{source for source, _ in some} for some in data.parts.values()]
    assert sum(len(some) for some in words) == len(set.union(*words)) == 123_455


def test_dialogues(shared_data: Path) -> None:
    need("dialogues")
    data = open_pairs(["dialogues"])
    assert sizes(data) == {"train": 6_358, "valid": 672, "test": 6_720}
    pairs = {pair for some in data.parts.values() for pair in some}
    assert ("Can you manage chopsticks ?", "Why not ? See .") in pairs
    assert ("Why not ? See .", "Good mastery . How do you like our Chinese food ?") in pairs
    assert not any("__eou__" in side or "\t" in side for pair in pairs for side in pair)


def test_summaries(shared_data: Path) -> None:
    need("summaries")
    data = open_pairs(["summaries"])
    assert sizes(data) == {"train": 450, "valid": 50, "test": 500}
    assert data.notes[0] == "the test part has three summaries for each dialogue; the first is the target"
    source, target = data.parts["test"][0]
    assert source.startswith("#Person1#: Ms. Dawson, I need you to take a dictation for me. #Person2#: Yes, sir...")
    assert target.startswith("Ms. Dawson helps #Person1# to write a memo")
    assert not any("\n" in side for pairs in data.parts.values() for pair in pairs for side in pair)
