"""Encoding sentences against transformers and onnxruntime, fine-tuning a sentence encoder against transformers.

    python -m benchmarks.encoders [--repeats 5] [--sentences 1000] [--steps 20] [--threads N] [--only tuning]

A BERT of MiniLM's shape (6 layers of 384, 12 heads), random weights (speed does not depend on them), exported as a
folder that transformers loads; onnxruntime runs the graph that torch.onnx makes of that. All sides read the same
sentences of Python's reference with the same tokens. Encoding: from text to a vector that is the mean over all tokens,
sentences of one length together, batches of 1 and of 32. A step of fine-tuning: the loss of two labels read off the
first place, its gradient and fused AdamW, batches of 32 of about one length, each padded to its own longest. Rates are
sentences and real tokens per second; with one thread per second of processor time, which other work changes less.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import say_load, take_turns
from seqwise.data.annotated import LabelledRow
from seqwise.data.schema import LabelSpec, TokenSpec, answer_schema, vector_schema
from seqwise.data.source import open_text
from seqwise.data.text_examples import build_label_store
from seqwise.evaluation.sentence_vectors import TextEncoder
from seqwise.interop.hf import export_hf
from seqwise.models import family
from seqwise.models.bert import BERTConfig
from seqwise.run import Run, RunConfig
from seqwise.settings import DataConfig, TokenizerConfig, TrainingConfig
from seqwise.text import special_of, train_tokenizer

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
MINILM = BERTConfig(
    context=512, num_layers=6, model_dim=384, num_heads=12, feed_forward_dim=1536, pooling="mean", dropout=0.1
)
MIN_CHARACTERS, MAX_CHARACTERS = 20, 400  # of what counts as a sentence
BATCH_SIZE, RATE = 32, 5e-5


def sentences_of(num: int) -> tuple[list[str], str]:
    """Sentences of Python's reference, and all of its text."""
    text = "".join(open_text("python-reference").parts["train"].blocks())
    found = [one.strip() for line in text.split("\n\n") for one in " ".join(line.split()).split(". ")]
    return [one for one in found if MIN_CHARACTERS < len(one) < MAX_CHARACTERS][:num], text


def make_run(folder: Path, text: str) -> Run:
    tokenizer = train_tokenizer("wordpiece", [text], vocab_size=8000, lower_case=True)
    schema = vector_schema(TokenSpec(tokenizer, special_of(tokenizer)))
    config = RunConfig("bert", DataConfig(), TokenizerConfig(kind="wordpiece"), MINILM, TrainingConfig(), "vectors")
    run = Run.create(folder, config, schema)
    run.save_model(run.build_model())
    return run


def clock() -> float:
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


Hidden = Callable[[dict[str, torch.Tensor]], torch.Tensor]
"""What a peer makes of a batch of its tokenizer: (B, T, D)."""


def encoding(run: Run, sentences: list[str], peers: dict[str, Hidden], peer_tokenizer: Any, repeats: int) -> None:
    encoder = TextEncoder(run, run.load_model(), normalise=False)
    by_length = sorted(sentences, key=len, reverse=True)

    def ours(batch_size: int) -> np.ndarray:
        return encoder.embed(by_length, batch_size=batch_size).vectors

    @torch.inference_mode()
    def theirs(hidden_of: Hidden, batch_size: int) -> np.ndarray:
        found = []
        for start in range(0, len(by_length), batch_size):
            batch = peer_tokenizer(by_length[start : start + batch_size], padding=True, return_tensors="pt")
            is_token = batch["attention_mask"].unsqueeze(-1)
            found.append((hidden_of(batch) * is_token).sum(dim=1) / is_token.sum(dim=1))
        return torch.cat(found).numpy()

    def rate(side: Callable[[int], np.ndarray], batch_size: int) -> float:
        began = clock()
        side(batch_size)
        return len(by_length) / (clock() - began)

    for name, hidden_of in peers.items():
        peer = partial(theirs, hidden_of)
        assert np.abs(ours(BATCH_SIZE) - peer(BATCH_SIZE)).max() < 1e-4, f"{name} computes something else"
        for batch_size in (1, BATCH_SIZE):
            found = take_turns(partial(rate, ours, batch_size), partial(rate, peer, batch_size), repeats)
            print(f"encoding, batches of {batch_size:<3} {found}  {name}")


def onnx_graph(peer: Any, peer_tokenizer: Any, path: Path, threads: int) -> Hidden | None:
    """The encoder of transformers in onnxruntime; None where its packages are missing."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  (torch.onnx needs it)
    except ImportError as missing:
        print(f"onnxruntime is not compared: {missing.name} is not installed (pip install '.[bench]')")
        return None
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # or it tells of operators of torchvision
    names = ["input_ids", "attention_mask", "token_type_ids"]
    batch = peer_tokenizer(["one sentence", "and one that is longer"], padding=True, return_tensors="pt")
    rows, steps = torch.export.Dim("rows"), torch.export.Dim("steps")

    class LastHidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.peer = peer

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            return self.peer(**dict(zip(names, given, strict=True))).last_hidden_state

    torch.onnx.export(
        LastHidden().eval(),
        tuple(batch[name] for name in names),
        path,
        input_names=names,
        output_names=["hidden"],
        dynamic_shapes=(tuple({0: rows, 1: steps} for _ in names),),
        dynamo=True,
        verbose=False,
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def hidden_of(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.from_numpy(session.run(None, {name: batch[name].numpy() for name in names})[0])

    return hidden_of


def tuning(run: Run, sentences: list[str], peer: Any, peer_tokenizer: Any, *, steps: int, repeats: int) -> None:
    inputs = run.schema.input("tokens", TokenSpec)
    rows = [LabelledRow((text,), str(number % 2)) for number, text in enumerate(sentences)]
    schema = answer_schema(replace(inputs, num_texts=1), LabelSpec(["0", "1"]))
    store = build_label_store(rows, schema)
    order = np.argsort(store.lengths, kind="stable")
    groups = [order[start : start + BATCH_SIZE] for start in range(0, len(order) - BATCH_SIZE + 1, BATCH_SIZE)]
    groups = [groups[place] for place in np.random.default_rng(0).permutation(len(groups))]
    model = family("bert").build(replace(MINILM, pooling="first"), schema)
    model.train()
    peer.train()
    optimizers = {side: torch.optim.AdamW(side.parameters(), lr=RATE, fused=True) for side in (model, peer)}
    turns = {side: cycle(groups) for side in (model, peer)}

    def step_of_ours(chosen: np.ndarray) -> None:
        batch = store.batch(chosen)
        model.loss(batch).over({**batch.counts(), **batch.sizes()}).backward()

    def step_of_theirs(chosen: np.ndarray) -> None:
        texts = [sentences[row] for row in chosen]
        batch = peer_tokenizer(texts, padding=True, return_tensors="pt")
        peer(**batch, labels=torch.tensor(chosen % 2)).loss.backward()

    def rate(side: Any, step: Any) -> float:
        began, tokens = clock(), 0
        for _ in range(steps):
            chosen = next(turns[side])
            step(chosen)
            optimizers[side].step()
            optimizers[side].zero_grad()
            tokens += int(store.lengths[chosen].sum())
        return tokens / (clock() - began)

    found = take_turns(lambda: rate(model, step_of_ours), lambda: rate(peer, step_of_theirs), repeats)
    print(f"fine-tuning, batches of {BATCH_SIZE} {found}")


def main() -> None:
    from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--only", choices=["encoding", "tuning"])
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(given.threads)
    say_load()
    print(f"{'':24} {'ours':>10} {'theirs':>10} {'ratio':>8}   a second, median and range")
    sentences, text = sentences_of(given.sentences)
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        run = make_run(Path(folder) / "run", text)
        export_hf(run, Path(folder) / "hf")
        tokenizer = AutoTokenizer.from_pretrained(f"{folder}/hf")
        if given.only != "tuning":
            peer = AutoModel.from_pretrained(f"{folder}/hf").eval()
            graph = onnx_graph(peer, tokenizer, Path(folder) / "encoder.onnx", given.threads)
            peers: dict[str, Hidden] = {"transformers": lambda batch: peer(**batch).last_hidden_state}
            peers |= {} if graph is None else {"onnxruntime": graph}
            encoding(run, sentences, peers, tokenizer, given.repeats)
        if given.only != "encoding":
            learner = AutoModelForSequenceClassification.from_pretrained(f"{folder}/hf", num_labels=2)
            tuning(run, sentences, learner, tokenizer, steps=given.steps, repeats=given.repeats)


if __name__ == "__main__":
    main()
