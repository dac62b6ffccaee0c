"""CTranslate2's side of benchmarks/generation.py: greedy continuations of a batch of prompts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ctranslate2

from benchmarks.measure import answer, now, turns


def main() -> None:
    folder, told = Path(sys.argv[1]), json.loads(sys.argv[2])
    generator = ctranslate2.Generator(str(folder), compute_type=told["kind"], intra_threads=told["threads"])
    for asked in turns():
        prompts = [[str(token) for token in prompt] for prompt in asked["prompts"]]
        began = now()
        results = generator.generate_batch(
            prompts,
            min_length=told["new_tokens"],
            max_length=told["new_tokens"],
            sampling_topk=1,
            include_prompt_in_result=False,
            end_token=[],
        )
        seconds = now() - began
        answer(seconds=seconds, found=[[int(token) for token in result.sequences[0]] for result in results])


if __name__ == "__main__":
    main()
