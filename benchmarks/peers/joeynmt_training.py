"""joeynmt's side of benchmarks/translation_training.py: its own loop, stopped where it would validate.

Runs in an environment that has joeynmt and need not have seqwise.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from joeynmt.config import parse_global_args, set_validation_args
from joeynmt.prediction import prepare
from joeynmt.training import TrainManager

from benchmarks.measure import answer, peak_bytes, turns


def configuration(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    sizes, dropout = settings["sizes"], settings["dropout"]
    side = {"level": "word", "lowercase": False, "voc_file": str(folder / "vocab.txt")}
    layers = {
        "type": "transformer",
        "num_layers": sizes["num_layers"],
        "num_heads": sizes["num_heads"],
        "embeddings": {"embedding_dim": sizes["model_dim"], "scale": True, "dropout": dropout},
        "hidden_size": sizes["model_dim"],
        "ff_size": sizes["feed_forward_dim"],
        "dropout": dropout,
        "layer_norm": "pre",
    }
    return {
        "name": "benchmark",
        "model_dir": str(folder / "joeynmt"),
        "use_cuda": False,
        "random_seed": 0,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.95],
            "normalization": "tokens",
            "label_smoothing": settings["label_smoothing"],
            "learning_rate": settings["learning_rate"],
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": settings["warmup_steps"],
            "clip_grad_norm": settings["clip_norm"],
            "batch_size": settings["batch_tokens"],
            "batch_type": "token",
            "epochs": 1000,
            "logging_freq": settings["steps"],
            "validation_freq": settings["steps"],
        },
        "testing": {},
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": layers,
            "decoder": layers,
        },
    }


def main() -> None:
    folder = Path(sys.argv[1])
    settings = json.loads((folder / "settings.json").read_text())
    torch.set_num_threads(settings["threads"])
    (folder / "joeynmt").mkdir()
    args = parse_global_args(configuration(folder, settings), rank=0, mode="train")
    model, train_data, valid_data, _ = prepare(args, rank=0, mode="train")
    trainer = TrainManager(
        rank=0,
        model=model,
        model_dir=args.model_dir,
        device=args.device,
        autocast=args.autocast,
        seed=args.seed,
        train_args=args.train,
        dev_args=set_validation_args(args.test),
    )
    train_step, count = trainer._train_step, {"tokens": 0, "places": 0, "nats": 0.0}

    def counted_step(batch: Any) -> tuple[float, int]:
        count["tokens"] += int(batch.src_length.sum()) + batch.ntokens
        count["places"] += batch.src.numel() + batch.trg.numel()
        found = train_step(batch)
        count["nats"] += found[0]
        return found

    asked, began, before = turns(), 0.0, peak_bytes()

    def take_turn() -> None:
        nonlocal began
        next(asked)
        count.update(tokens=0, places=0, nats=0.0)
        began = time.perf_counter()

    def validate(_: Any) -> None:
        answer(
            seconds=time.perf_counter() - began,
            steps=settings["steps"],
            tokens=count["tokens"],
            places=count["places"],
            loss=count["nats"] / settings["steps"],
            before=before,
            peak=peak_bytes(),
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            versions=f"joeynmt {version('joeynmt')}, torch {torch.__version__}",
            threads=torch.get_num_threads(),
        )
        take_turn()

    trainer._train_step, trainer._validate = counted_step, validate
    take_turn()
    trainer.train_and_validate(train_data, valid_data)


if __name__ == "__main__":
    main()
