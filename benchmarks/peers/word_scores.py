"""What both sides of benchmarks/word_vectors.py are judged by."""

from __future__ import annotations

from pathlib import Path

from seqwise.data.paths import data_folders
from seqwise.data.word_vectors import WordVectors
from seqwise.evaluation.word_vectors import evaluate_similarity, read_word_pairs

FILES = {"WordSim-353": "EN-WS-353-ALL.txt", "MEN": "EN-MEN-TR-3k.txt"}


def word_pair_files() -> dict[str, Path]:
    """Those that are at hand, by name."""
    places = [(name, folder / "wordsim" / file) for name, file in FILES.items() for folder in data_folders()]
    return {name: path for name, path in reversed(places) if path.exists()}


def scores(vectors: WordVectors) -> dict[str, float]:
    return {
        name: evaluate_similarity(vectors.similarity, read_word_pairs(path)).correlation
        for name, path in word_pair_files().items()
    }
