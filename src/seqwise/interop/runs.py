"""Runs out to other people's formats, and in from them. FORMATS is the table.

seqwise export runs/counts --to arpa counts.arpa
seqwise import arpa counts.arpa --out runs/counts
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..data.schema import text_schema
from ..errors import ConfigError, did_you_mean
from ..run import Run, RunConfig, check_free
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from .arpa import read_arpa, write_arpa


@dataclass(frozen=True)
class Format:
    title: str
    families: tuple[str, ...]
    """The families that it can hold."""
    write: Callable[[Run, Path], list[str]]
    """What a user should know about the file."""
    read: Callable[[Path, Path], Run]
    """(file, run folder) -> the run."""


def _write_arpa(run: Run, path: Path) -> list[str]:
    if run.tokenizer.kind == "bpe":
        data = shlex.join(run.config.data.source) or "DATA"
        raise ConfigError(
            f"an ARPA file holds words or characters, and {run.path} has byte pairs. Train a model of words: "
            f"seqwise train {data} --model ngram --tokenizer word --out {shlex.quote(f'{run.path}-words')}"
        )
    write_arpa(run.load_model(), run.tokenizer, path)
    if not run.config.model.across_lines:
        return []
    return [f"{run.path} reads across lines, and {path.name} holds sentences: it is the same model, line by line"]


def _read_arpa(path: Path, out: Path) -> Run:
    model, tokenizer = read_arpa(path)
    data = DataConfig(description=f"imported from {path.name}, an ARPA file of order {model.config.order}")
    kind = TokenizerConfig(kind=tokenizer.kind)  # type: ignore[arg-type]
    run = Run.create(out, RunConfig("ngram", data, kind, model.config, TrainingConfig()), text_schema(tokenizer))
    run.save_model(model)
    return run


FORMATS = {"arpa": Format("n-grams as text (SRILM, KenLM, recognisers)", ("ngram",), _write_arpa, _read_arpa)}


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise ConfigError(f'unknown format "{name}". {did_you_mean(name, FORMATS)}')
    return FORMATS[name]


def export_run(run: Run, name: str, path: Path) -> list[str]:
    """Write a run's model to a file of another format, which must not be there yet. What to know about the file."""
    chosen = format_named(name)
    if run.config.model_name not in chosen.families:
        raise ConfigError(
            f"{run.path} is a {run.config.model_name} model; a file of {name} holds {', '.join(chosen.families)}."
        )
    if path.exists():
        raise ConfigError(f"{path} exists already. Choose another name.")
    return chosen.write(run, path)


def import_run(name: str, path: Path, out: Path) -> Run:
    """Make a run folder from a file of another format."""
    chosen = format_named(name)
    check_free(out)
    return chosen.read(path, out)
