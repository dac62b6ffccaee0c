"""Generation with a cache against transformers' GPT2LMHeadModel.generate of the same size.

    python -m benchmarks.generation [--repeats 5]

Same layers, width, heads, context, vocabulary; random weights (speed does not depend on them); the same number of new
tokens, no stop token. Rates in tokens per second over all rows.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

import torch

from benchmarks.measure import say_load, take_turns
from seqwise.data.schema import text_schema
from seqwise.decoding import DecodingConfig, generate
from seqwise.models.gpt import GPTConfig, build_gpt
from seqwise.text.symbols import SymbolTokenizer

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
SIZES = {"4 x 128": (4, 128, 4), "6 x 384": (6, 384, 6)}
GPT2 = {"positions": "learned", "activation": "gelu", "normalise_queries": False}  # what theirs computes
VOCAB, CONTEXT, PROMPT, NEW_TOKENS = 65, 256, 16, 240


def main() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.filterwarnings("ignore")
    say_load()
    print(
        f"{'size':>8} {'batch':>5} {'method':>7} {'ours':>10} {'theirs':>10} {'ratio':>8}   tokens/s, median and range"
    )
    for name, (layers, width, heads) in SIZES.items():
        torch.manual_seed(0)
        ours = build_gpt(
            GPTConfig(context=CONTEXT, num_layers=layers, model_dim=width, num_heads=heads, **GPT2),
            text_schema(SymbolTokenizer(VOCAB)),
        ).eval()
        config = GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=width, n_layer=layers, n_head=heads)
        config.bos_token_id = config.eos_token_id = config.pad_token_id = None
        theirs = GPT2LMHeadModel(config).eval()
        for batch in (1, 32):
            for method in ("greedy", "sample"):
                prompts = torch.randint(VOCAB, (batch, PROMPT), generator=torch.Generator().manual_seed(1))
                decoding = DecodingConfig(method=method, max_tokens=NEW_TOKENS)

                def ours_rate(model=ours, rows=prompts, decoding=decoding, batch=batch) -> float:
                    began = time.perf_counter()
                    found = generate(model, rows.tolist(), decoding)
                    seconds = time.perf_counter() - began
                    assert all(len(hypotheses[0].tokens) == NEW_TOKENS for hypotheses in found)
                    return batch * NEW_TOKENS / seconds

                @torch.inference_mode()
                def their_rate(model=theirs, rows=prompts, sample=method == "sample", batch=batch) -> float:
                    began = time.perf_counter()
                    out = model.generate(
                        rows,
                        attention_mask=torch.ones_like(rows),
                        max_new_tokens=NEW_TOKENS,
                        min_new_tokens=NEW_TOKENS,
                        do_sample=sample,
                        top_k=0 if sample else None,
                        use_cache=True,
                    )
                    seconds = time.perf_counter() - began
                    assert out.shape == (batch, PROMPT + NEW_TOKENS)
                    return batch * NEW_TOKENS / seconds

                print(f"{name:>8} {batch:>5} {method:>7} {take_turns(ours_rate, their_rate, repeats)}", flush=True)


if __name__ == "__main__":
    main()
