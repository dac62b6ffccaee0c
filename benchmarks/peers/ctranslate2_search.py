"""CTranslate2's side of benchmarks/translation_speed.py: all sources in batches, or some one by one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ctranslate2

from benchmarks.measure import answer, now, turns


def main() -> None:
    folder, told = Path(sys.argv[1]), json.loads(sys.argv[2])
    sources = json.loads((folder / "sources.json").read_text())
    translator = ctranslate2.Translator(
        str(folder / "model"), compute_type=told["kind"], inter_threads=told["workers"], intra_threads=told["threads"]
    )

    def search(sentences: list[list[int]], batch_size: int) -> list[list[int]]:
        results = translator.translate_batch(
            [[str(token) for token in tokens] for tokens in sentences],
            beam_size=told["beam"],
            min_decoding_length=told["new_tokens"],
            max_decoding_length=told["new_tokens"],
            max_batch_size=batch_size,
            length_penalty=1.0,
        )
        return [[int(token) for token in result.hypotheses[0]] for result in results]

    for asked in turns():
        began = now()
        if "every" in asked:
            found = [tokens for source in sources[:: asked["every"]] for tokens in search([source], 1)]
        else:
            found = search(sources, asked["batch_size"])
        answer(seconds=now() - began, found=found)


if __name__ == "__main__":
    main()
