"""Our side of benchmarks/translation_training.py: the training loop of every run, on the files that joeynmt reads."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.measure import answer, peak_bytes, turns
from seqwise import __version__
from seqwise.data.batch import Batch
from seqwise.data.pair_store import PairBatches, PairStore, Rows
from seqwise.data.schema import pair_schema
from seqwise.models import num_parameters
from seqwise.models.transformer import TransformerConfig, build_transformer
from seqwise.settings import TrainingConfig
from seqwise.text.symbols import SymbolTokenizer
from seqwise.training.loop import train


class CountedBatches(PairBatches):
    tokens = places = 0

    def batch(self, step: int) -> Batch:
        batch = super().batch(step)
        source, target = batch.inputs["source"], batch.targets["tokens"]
        self.tokens += source.count() + target.count()
        self.places += source.ids.numel() + target.ids.numel()
        return batch


def main() -> None:
    folder = Path(sys.argv[1])
    settings = json.loads((folder / "settings.json").read_text())
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(0)
    end = [settings["boundary"]]
    lines = [
        [np.array(line.split(), dtype=np.int64) for line in (folder / f"train.{side}").read_text().splitlines()]
        for side in ("source", "target")
    ]
    source = Rows.of(np.concatenate([line, end]) for line in lines[0])
    target = Rows.of(np.concatenate([end, line, end]) for line in lines[1])
    batches = CountedBatches(PairStore(source, target, []), batch_tokens=settings["batch_tokens"])
    tokenizer = SymbolTokenizer(settings["vocab_size"], settings["boundary"])  # of both sides
    config = TransformerConfig(
        dropout=settings["dropout"], label_smoothing=settings["label_smoothing"], **settings["sizes"]
    )
    model = build_transformer(config, pair_schema(tokenizer, tokenizer))
    training = TrainingConfig(
        steps=2000,
        optimizer="adam",
        learning_rate=settings["learning_rate"],
        schedule="inverse_sqrt",
        warmup_steps=settings["warmup_steps"],
        clip_norm=settings["clip_norm"],
        report_every=settings["steps"],
    )
    reports = train(model, batches, training)
    before = peak_bytes()
    for _ in turns():
        batches.tokens = batches.places = 0
        began = time.perf_counter()
        report = next(reports)
        answer(
            seconds=time.perf_counter() - began,
            steps=settings["steps"],
            tokens=batches.tokens,
            places=batches.places,
            loss=report.loss,
            before=before,
            peak=peak_bytes(),
            parameters=num_parameters(model),
            versions=f"seqwise {__version__}, torch {torch.__version__}",
            threads=torch.get_num_threads(),
        )


if __name__ == "__main__":
    main()
