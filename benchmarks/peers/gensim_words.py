"""gensim's side of benchmarks/word_vectors.py: word2vec from a file of lines, in a process of its own."""

from __future__ import annotations

import json
import sys
import time

import gensim
from gensim.models import Word2Vec
from gensim.models.word2vec import LineSentence

from benchmarks.measure import peak_bytes


def main() -> None:
    settings = json.loads(sys.argv[1])
    before, began = peak_bytes(), time.perf_counter()
    model = Word2Vec(
        sg=int(settings["method"] == "skip_gram"),
        vector_size=settings["embed_dim"],
        window=settings["window"],
        negative=settings["negative"],
        sample=settings["subsample"],
        min_count=settings["min_count"],
        alpha=settings["learning_rate"],
        min_alpha=settings["learning_rate"] * settings["final_rate"],
        workers=settings["workers"],
        seed=settings["seed"],
    )
    by_line = LineSentence(settings["corpus"])
    text = {"corpus_iterable": by_line} if settings.get("is_by_line") else {"corpus_file": settings["corpus"]}
    model.build_vocab(**text)
    counted = time.perf_counter()
    sizes = {"total_examples": model.corpus_count, "total_words": model.corpus_total_words}
    model.train(**text, **sizes, epochs=settings["epochs"])
    done, peak = time.perf_counter(), peak_bytes()
    from benchmarks.peers.word_scores import scores  # ours, and no part of its memory
    from seqwise.data.word_vectors import WordVectors

    words = settings["epochs"] * model.corpus_total_words
    found = {"bytes": peak - before, "words": model.corpus_total_words, "vocabulary": len(model.wv)}
    found |= {"rate": words / (done - counted), "whole_rate": words / (done - began)}
    found |= {"version": f"gensim {gensim.__version__}", **scores(WordVectors(model.wv.index_to_key, model.wv.vectors))}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
