"""A picture with its caption, as a model that writes about it reads them: what each word cost, and where it looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from ..data.schema import Schema, TokenSpec
from ..data.seen_store import SeenStore
from ..decoding.settings import DecodingConfig
from ..errors import DataError
from ..goals.sequence import search_settings
from ..models.contract import device_of, evaluating
from ..run import Run
from ..text import Tokenizer
from .options import InspectOptions
from .reader import Inspectable
from .reading import END, START, Reading, pieces_of, prompt_of, read_batch
from .search_tree import SearchTree, search_tree

MAX_DRAWN_STEPS = 30


class CaptionReader:
    """Of a picture of the run's own held-out part, by its row."""

    has_source = is_running_text = False
    answers_options: tuple[str, ...] = ("row",)
    no_gradients = "for pictures, see under attention where each word looked."
    no_memory = "a caption depends on its whole picture; see attention."

    def reads_text(self, run: Run) -> bool:
        return False

    def takes_target(self, run: Run) -> bool:
        return False

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        store: SeenStore = run.unseen_store()
        if options.row >= len(store):
            raise DataError(f"--row {options.row:,} is not there: the held-out part has {len(store):,} captions.")
        tokenizer = run.run.schema.target("tokens", TokenSpec).tokenizer
        batch = store.batch(np.array([options.row])).to(device_of(run.model))
        ids = [*batch.inputs["tokens"].ids[0].tolist(), tokenizer.boundary]
        reading = read_batch(run.model, tokenizer, batch, [START, *pieces_of(tokenizer, ids[1:-1]), END], ids, [])
        with torch.inference_mode(), evaluating(run.model):
            looked = run.model.align(batch)
        places = [] if looked is None else [str(number) for number in range(1, looked.shape[-1] + 1)]
        return replace(reading, source=places), f"{store.rows[options.row].frames[0]}, a picture of the held-out part"

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return []

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> SearchTree:
        """How a caption is found."""
        limit = min(MAX_DRAWN_STEPS, run.run.config.data.caption_tokens or MAX_DRAWN_STEPS)
        config: DecodingConfig = search_settings(run.run.schema, beam_width=options.beam_width, max_tokens=limit)
        return search_tree(run.model, prompt_of(reading.batch), config)

    def tokenizer(self, schema: Schema) -> Tokenizer:
        return schema.target("tokens", TokenSpec).tokenizer
