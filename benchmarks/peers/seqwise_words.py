"""Our side of benchmarks/word_vectors.py: word2vec from a file of lines, in a process of its own."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import peak_bytes
from benchmarks.peers.word_scores import scores
from seqwise import __version__
from seqwise.data.schema import text_schema
from seqwise.models.word2vec import Word2Vec, Word2VecConfig, steps_per_epoch
from seqwise.text.word_counts import count_words
from seqwise.text.words import WordTokenizer

BLOCK_CHARS = 1 << 15


def blocks_of(path: Path) -> Iterator[str]:
    """The text in small blocks of lines, so that few of its words are in memory at once."""
    with path.open(encoding="utf-8") as file:
        while lines := file.readlines(BLOCK_CHARS):
            yield "".join(lines)


def encoded(path: Path, tokenizer: WordTokenizer, into: Path) -> np.ndarray:
    """The text as ids on disk, as a token store has them."""
    dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
    with into.open("wb") as file:
        for block in blocks_of(path):
            tokenizer.encode(block).astype(dtype).tofile(file)
    return np.memmap(into, dtype=dtype, mode="r")


def learn(path: Path, settings: dict, folder: Path) -> tuple[Word2Vec, int, float]:
    """The model, the words of the text, and when learning began."""
    tokenizer = WordTokenizer(count_words(blocks_of(path), min_count=settings["min_count"])[0])
    ids = encoded(path, tokenizer, folder / "ids.bin")
    names = ("method", "embed_dim", "window", "negative", "subsample", "min_count")
    model = Word2Vec(Word2VecConfig(**{name: settings[name] for name in names}), text_schema(tokenizer))
    began = time.perf_counter()
    rates = {name: settings[name] for name in ("learning_rate", "final_rate", "workers", "seed")}
    steps = round(settings["epochs"] * steps_per_epoch(len(ids)))
    for _ in model.fit(ids, steps=steps, **rates):
        pass
    return model, int(len(ids) - model.counts[tokenizer.boundary]), began


def main() -> None:
    settings = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny = folder / "tiny.txt"
        tiny.write_text("a few words and a few more\n" * 200)
        learn(tiny, settings, folder)  # compiled here, or taken from numba's cache
        before, began = peak_bytes(), time.perf_counter()
        model, num_words, learning = learn(Path(settings["corpus"]), settings, folder)
        done, peak = time.perf_counter(), peak_bytes()
    words = settings["epochs"] * num_words
    found = {"bytes": peak - before, "words": num_words, "vocabulary": int(model.has_vector.sum())}
    found |= {"rate": words / (done - learning), "whole_rate": words / (done - began)}
    print(json.dumps(found | {"version": f"seqwise {__version__}", **scores(model.words)}))


if __name__ == "__main__":
    main()
