"""Runs out to other people's formats, and in from them. FORMATS is the table.

seqwise export runs/counts --to arpa counts.arpa
seqwise import arpa counts.arpa --out runs/counts
seqwise export runs/words --to word2vec-binary words.bin
seqwise import llama2c stories15M.bin --tokenizer tokenizer.bin --out runs/stories
seqwise import efficientnet efficientnet-lite0.pth --out runs/eyes
seqwise import hf all-MiniLM-L6-v2/ --out runs/minilm
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..data.schema import text_schema
from ..data.vector_files import Format as VectorFormat
from ..data.vector_files import read_vectors, write_vectors
from ..errors import ConfigError, did_you_mean
from ..goals.goal import Tell
from ..models import MODELS
from ..models.word2vec import Word2Vec, Word2VecConfig
from ..run import Run, RunConfig, check_free
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from ..text import IN_WORDS
from ..text.words import WordTokenizer
from ..training.word_vectors import words_of
from .arpa import read_arpa, write_arpa
from .efficientnet import import_efficient_net
from .hf import WRITERS, export_hf, import_hf
from .llama2c import describe, read_llama2c


@dataclass(frozen=True)
class Format:
    title: str
    families: tuple[str, ...]
    """The families that it can hold."""
    write: Callable[[Run, Path], list[str]] | None
    """What a user should know about the file. None where it is read only."""
    read: Callable[..., Run]
    """(file, run folder) -> the run; between them the file of the tokenizer, where there is one."""
    has_tokenizer_file: bool = False
    """Whether the tokenizer is in a file of its own."""
    tells: bool = False
    """Whether there may be something to know about what was read: `read` is given `tell`."""


def _write_arpa(run: Run, path: Path) -> list[str]:
    if run.tokenizer.kind not in ("word", "char"):
        data = shlex.join(run.config.data.source) or "DATA"
        made_of = IN_WORDS.get(run.tokenizer.kind, run.tokenizer.kind)
        raise ConfigError(
            f"an ARPA file holds words or characters, and {run.path} has {made_of}. Train a model of words: "
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


def _read_llama2c(path: Path, tokenizer_file: Path, out: Path) -> Run:
    model, config, tokenizer = read_llama2c(path, tokenizer_file)
    data, training = DataConfig(description=describe(path, model)), TrainingConfig(context=config.context)
    kind = TokenizerConfig(kind="sentencepiece")
    run = Run.create(out, RunConfig("gpt", data, kind, config, training), text_schema(tokenizer))
    run.save_model(model)
    return run


def _write_vectors(format: VectorFormat, run: Run, path: Path) -> list[str]:
    write_vectors(words_of(run), path, format=format)
    return []


def _read_vectors(format: VectorFormat, path: Path, out: Path) -> Run:
    """A run of word2vec whose words are known by their vectors alone: a file does not tell how frequent they were."""
    words = read_vectors(path, format=format)
    num, width = words.vectors.shape
    tokenizer = WordTokenizer(words.words)
    config, schema = Word2VecConfig(embed_dim=width), text_schema(tokenizer)
    model = Word2Vec(config, schema)
    model.take_vectors(words.vectors)
    data = DataConfig(description=f"imported from {path.name}: {num:,} vectors of {width} numbers")
    run = Run.create(out, RunConfig("word2vec", data, TokenizerConfig(kind="word"), config, TrainingConfig()), schema)
    run.save_model(model)
    return run


def _vectors(title: str, format: VectorFormat) -> Format:
    return Format(title, WITH_VECTORS, partial(_write_vectors, format), partial(_read_vectors, format))


WITH_VECTORS = tuple(name for name, row in MODELS.items() if {"hogwild", "gradients"} & {*row.learns.values()})
FORMATS = {
    "arpa": Format("n-grams as text (SRILM, KenLM, recognisers)", ("ngram",), _write_arpa, _read_arpa),
    "word2vec": _vectors("vectors of words as text (word2vec, gensim, fastText)", "text"),
    "word2vec-binary": _vectors("vectors of words as bytes (word2vec, gensim)", "binary"),
    "glove": _vectors("vectors of words as text without a first line (GloVe)", "glove"),
    "llama2c": Format(
        "a Llama in one file, of version 0 (karpathy/llama2.c)", ("gpt",), None, _read_llama2c, has_tokenizer_file=True
    ),
    "efficientnet": Format("EfficientNet-Lite0 with weights of ImageNet", ("conv",), None, import_efficient_net),
    "hf": Format("a folder in the layout of Hugging Face", tuple(WRITERS), export_hf, import_hf, tells=True),
}


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise ConfigError(f'unknown format "{name}". {did_you_mean(name, FORMATS)}')
    return FORMATS[name]


def export_run(run: Run, name: str, path: Path) -> list[str]:
    """Write a run's model to a file of another format, which must not be there yet. What to know about the file."""
    chosen = format_named(name)
    if chosen.write is None:
        written = ", ".join(each for each, row in FORMATS.items() if row.write is not None)
        raise ConfigError(f"files of {name} are read, not written. Formats that are written: {written}.")
    if run.config.model_name not in chosen.families:
        raise ConfigError(
            f"{run.path} is a {run.config.model_name} model; a file of {name} holds {', '.join(chosen.families)}."
        )
    if path.exists():
        raise ConfigError(f"{path} exists already. Choose another name.")
    return chosen.write(run, path)


def import_run(
    name: str, path: Path, out: Path, *, tokenizer: Path | None = None, tell: Tell = lambda sentence: None
) -> Run:
    """Make a run folder from a file of another format; `tokenizer`: a file beside it, where the format has one.
    `tell` is given what a user should know."""
    chosen = format_named(name)
    if chosen.has_tokenizer_file and tokenizer is None:
        raise ConfigError(f"the tokenizer of a {name} model is in a file of its own: add --tokenizer FILE.")
    if not chosen.has_tokenizer_file and tokenizer is not None:
        raise ConfigError(f"a file of {name} holds its own words; drop --tokenizer.")
    check_free(out)
    if chosen.tells:
        return chosen.read(path, out, tell=tell)
    return chosen.read(path, out) if tokenizer is None else chosen.read(path, tokenizer, out)
