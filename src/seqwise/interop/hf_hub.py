"""Models by their name on the Hugging Face hub: "org/model" becomes a folder on this machine.

    fetch_folder("Helsinki-NLP/opus-mt-en-de") -> ~/.cache/huggingface/hub/models--Helsinki-NLP--.../snapshots/...

Only the files that are read here are fetched, by the library huggingface_hub, which shows how far it is, checks what it
gets, and keeps it: a second time nothing is fetched but the name of the newest version, and without a connection what
is there is taken. A folder that exists is never asked for; "hf:org/model" is always a name.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import ConfigError, DataError

PREFIX = "hf:"
NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
SETTINGS = ("config.json", "generation_config.json", "adapter_config.json", "README.md")
TOKENIZERS = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "target_vocab.json", "merges.txt", "source.spm", "target.spm"),
)
SENTENCES = ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json")  # of sentence encoders
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "model-*.safetensors", "adapter_model.safetensors")
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*.bin")  # where there is no safetensors


def fetch_folder(name: str, *, endpoint: str | None = None) -> Path:
    """The folder that a path or a name stands for. `endpoint`: address of another hub than the usual one."""
    if not name.startswith(PREFIX):
        if name and (path := Path(name).expanduser()).exists():
            return path
        _check_is_name(name)
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise ConfigError(
            f'{name}: no such folder, and to fetch a model of that name huggingface_hub is needed: pip install ".[hub]"'
        ) from None
    name, wanted = name.removeprefix(PREFIX), [*SETTINGS, *TOKENIZERS, *SENTENCES, *WEIGHTS]
    try:
        folder = Path(snapshot_download(name, allow_patterns=wanted, endpoint=endpoint))
        if not any(folder.glob("*.safetensors")):
            folder = Path(snapshot_download(name, allow_patterns=[*wanted, *PICKLED], endpoint=endpoint))
    except Exception as error:  # of the library, or of the one by which it connects, which changes with its version
        raise _in_a_sentence(name, error, endpoint) from None
    if not (folder / "config.json").is_file():
        raise DataError(f"{name}: the hub has no config.json of it, so it is no model that can be read here.")
    return folder


def name_of(name: str) -> str:
    """What a model is called that was read from a path, or by its name."""
    path = Path(name).expanduser()
    return path.resolve().name if path.exists() else name.removeprefix(PREFIX)


def _check_is_name(name: str) -> None:
    """A path that is not there is said to be so, instead of asking the network for it."""
    first = name.partition("/")[0]
    if not NAME.fullmatch(name):
        raise DataError(f"{name}: no such folder. To fetch a model from the Hugging Face hub, name it as org/model.")
    if Path(first).is_dir():
        raise DataError(
            f"{name}: no such folder, though there is {first}/. If it is the name of a model on the Hugging Face hub: "
            f"{PREFIX}{name}"
        )


def _in_a_sentence(name: str, error: Exception, endpoint: str | None) -> DataError:
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    hub = (endpoint or constants.ENDPOINT).rstrip("/")
    if isinstance(error, HFValidationError):
        return DataError(f"{name}: not a name of the hub: {error}")
    if isinstance(error, GatedRepoError):
        return DataError(
            f"{name}: its owners ask who fetches it. Accept their terms at {hub}/{name}, then log in: hf auth login"
        )
    if isinstance(error, RepositoryNotFoundError):
        return DataError(
            f"{name}: no such folder here, and no such model at {hub}, or a private one. Check its spelling; for a "
            "private one log in: hf auth login"
        )
    if constants.HF_HUB_OFFLINE:
        return DataError(
            f"{name}: not, or not wholly, among the models fetched before ({constants.HF_HUB_CACHE}), and "
            "HF_HUB_OFFLINE forbids to fetch it. Unset it, or give the path of a folder."
        )
    return DataError(
        f"{name}: could not be fetched from {hub}: {_reason(error)}. Check the connection, or give the path of a "
        "folder that was fetched on another machine."
    )


def _reason(error: BaseException) -> str:
    """What was behind it all, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")[:200]
