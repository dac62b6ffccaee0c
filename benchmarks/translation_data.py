"""What both benchmarks of translation are about: the pairs, their tokens, the sizes of the network."""

from __future__ import annotations

from seqwise.data.pairs import PairData, open_pairs
from seqwise.data.schema import Schema, TokenSpec
from seqwise.errors import DataError
from seqwise.settings import TokenizerConfig
from seqwise.tasks.pairs import PairsTask

NUM_LAYERS, WIDTH, FEED_FORWARD, HEADS, VOCAB_SIZE = 3, 256, 1024, 4, 8000
SIZES = {"num_layers": NUM_LAYERS, "model_dim": WIDTH, "feed_forward_dim": FEED_FORWARD, "num_heads": HEADS}


def open_translation() -> tuple[PairData, Schema]:
    """Multi30k, or number words where that is not at hand; byte pairs that both languages share."""
    try:
        data = open_pairs(["multi30k:en-de"])
    except DataError:
        data = open_pairs(["numbers:en-de"])
    config = TokenizerConfig(kind="bpe", joint=True, vocab_size=VOCAB_SIZE)
    schema = PairsTask().schema(data, config, tell=lambda _: None)
    print(f"{data.description}; {schema.target('tokens', TokenSpec).size:,} byte pairs for both sides")
    return data, schema
