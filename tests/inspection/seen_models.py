"""Models made by hand that look at pictures where they are told to, and runs of them, for tests of inspection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqwise.data.batch import Batch, Images, Regions, Tokens
from seqwise.data.pair_store import Rows
from seqwise.data.schema import ImageSpec, LabelSpec, RegionSpec, Schema, TokenSpec, caption_schema, seen_schema
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import Pixels, SeenStore, Views
from seqwise.data.text_examples import AnswerColumn
from seqwise.layers.notes import note
from seqwise.layers.stream import Prediction
from seqwise.models.contract import State
from seqwise.models.eyes import grid_boxes
from seqwise.text import train_tokenizer

WORDS = ["a", "red", "dog", "and", "the", "blue", "cat", "run", "<unk>"]
SIZE = 24
COLOURS = ImageSpec(SIZE, SIZE, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
TOKENIZER = train_tokenizer("word", [" ".join(WORDS) + "\n"] * 3, vocab_size=40)


class Cells(nn.Module):
    """Eyes: the mean colour of each cell, of each frame."""

    output_dim, is_frozen = 3, False

    def __init__(self, h: int, w: int):
        super().__init__()
        self.h, self.w = h, w

    def forward(self, seen: Images | Regions) -> Regions:
        if isinstance(seen, Regions):
            return seen
        B, F = seen.shape
        found = nn.functional.adaptive_avg_pool2d(seen.pixels.flatten(0, 1).double(), (self.h, self.w))
        features = found.flatten(2).transpose(1, 2).reshape(B, F * self.h * self.w, 3)
        return Regions(features, grid_boxes(self.h, self.w).repeat(F, 1).expand(B, -1, -1))


class Watcher(nn.Module):
    """Says "bright" where the square of a picture is: log-odds are its mean brightness; notes what it is told to."""

    context, carries_state, continues = None, False, False

    def __init__(self, square: tuple[int, int, int, int] = (2, 8, 14, 20), notes: Sequence[tuple[str, Tensor]] = (),
                 grid: tuple[int, int] | None = (4, 4)):  # fmt: skip
        super().__init__()
        self.square, self.notes, self.weight = square, list(notes), nn.Parameter(torch.ones(()))
        if grid is not None:
            self.eyes = Cells(*grid)

    def _log_probs(self, seen: Images | Regions) -> Tensor:
        if isinstance(seen, Regions):
            bright = seen.features[:, 1].mean(dim=-1) * self.weight
        else:
            top, bottom, left, right = self.square
            bright = (seen.pixels[..., top:bottom, left:right].float() / 255).mean(dim=(1, 2, 3, 4)) * self.weight
        return torch.stack([4 * bright - 2, 2 - 4 * bright], dim=1).log_softmax(dim=1)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, None]:
        for what, value in self.notes:
            note(self, what, value(batch) if callable(value) else value)
        found = self._log_probs(batch.inputs["image"])
        return found.gather(1, batch.targets["label"].ids.unsqueeze(1)), None

    def predict(self, batch: Batch, target: str | None = None) -> Prediction:
        found = self._log_probs(batch.inputs["image"])
        return Prediction(found.argmax(dim=1), found)


class Captioner(nn.Module):
    """Writes one caption, whatever it sees, and looks at cell t + 1 at step t; of H heads, each one cell further."""

    context, carries_state, continues = None, False, True

    def __init__(self, caption: Sequence[int], size: int, num_heads: int = 2, grid: tuple[int, int] = (4, 4)):
        super().__init__()
        self.eyes, self.H, self.vocab_size = Cells(*grid), num_heads, size
        self.caption, self.weight = torch.tensor(caption), nn.Parameter(torch.ones(()))

    def _log_probs(self, steps: Tensor, bright: Tensor) -> Tensor:
        """(B, T, V): the caption with 5 nats more, and more where the upper left of the picture is bright."""
        wanted = self.caption[steps.clamp(max=len(self.caption) - 1)]
        return (nn.functional.one_hot(wanted, self.vocab_size) * (5 + bright).view(-1, 1, 1)).log_softmax(dim=-1)

    def _bright(self, batch: Batch) -> Tensor:
        return batch.inputs["image"].pixels[..., :6, :6].double().mean(dim=(1, 2, 3, 4)) / 255 * self.weight

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, None]:
        targets: Tokens = batch.targets["tokens"]
        (B, T), N = targets.shape, self.eyes(batch.inputs["image"]).shape[1]
        attention = torch.zeros(B, self.H, T, N)
        for head in range(self.H):
            for step in range(T):
                attention[:, head, step, (step + 1 + head) % N] = 1.0
        note(self, "attention", attention)
        found = self._log_probs(torch.arange(T), self._bright(batch))
        return found.expand(B, -1, -1).gather(-1, targets.ids.unsqueeze(-1)).squeeze(-1), None

    def start(self, prompt: Batch) -> tuple[Tensor, State]:
        bright = self._bright(prompt)
        step = torch.zeros(len(prompt), dtype=torch.long)
        return self._log_probs(step.unsqueeze(1), bright)[:, 0], State({"step": step, "bright": bright})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        step, bright = state.per_row["step"] + 1, state.per_row["bright"]
        return self._log_probs(step.unsqueeze(1), bright)[:, 0], State({"step": step, "bright": bright})


def labelled(question: bool = False) -> Schema:
    tokens = TokenSpec(TOKENIZER) if question else None
    return seen_schema(COLOURS, LabelSpec(["bright", "dark"]), tokens)


def captioned() -> Schema:
    return caption_schema(COLOURS, TokenSpec(TOKENIZER))


def regions(names: Sequence[str] = ()) -> Schema:
    return seen_schema(RegionSpec(2, list(names)), LabelSpec(["bright", "dark"]))


def pictures(num: int = 3, frames: int = 1) -> Pixels:
    content = np.random.default_rng(0).integers(0, 256, (num, frames, 3, SIZE, SIZE), dtype=np.uint8)
    content[:, :, :, 2:8, 14:20] = 250  # the square that Watcher looks at
    return Pixels(content)


@dataclass
class Made:
    """A run that is in no folder."""

    model: Any
    schema: Schema
    pictures: Pixels | Views = field(default_factory=pictures)
    question: str = "the red dog"
    path: Path = Path("made")

    @property
    def run(self) -> Any:
        config = SimpleNamespace(model_name="watcher", task="images")
        return SimpleNamespace(schema=self.schema, config=config, read_log=list)

    def unseen_store(self) -> SeenStore:
        num = len(self.pictures)
        asked = (self.question,) if "tokens" in self.schema.inputs else ()
        rows = [SeenRow((f"{number}.png",), asked, "bright") for number in range(num)]
        tokens = Rows.of([self.schema.input("tokens", TokenSpec).encode_texts(asked)[0]] * num) if asked else None
        return SeenStore(self.pictures, np.arange(num), {"label": AnswerColumn(np.zeros(num, dtype=int))}, rows, tokens)
