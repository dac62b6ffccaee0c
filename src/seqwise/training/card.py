"""card.md: what a run is, what it was trained on, how well it does, how to use it."""

from __future__ import annotations

from typing import Any

from ..evaluation.likelihood import Score
from ..models import family, num_parameters
from ..run import Run


def write_card(run: Run, model: Any, score: Score) -> str:
    config = run.config
    low, high = score.bits_interval
    row = family(config.model_name)
    lines = [
        f"# {run.path.name}",
        "",
        f"A {config.model_name} language model ({row.year}): its state is {row.state}.",
        "",
        f"- Data: {config.data.description}",
        f"- Data fingerprint: sha256 {config.data.fingerprint}",
        f"- Tokenizer: {config.tokenizer.kind}, {run.tokenizer.vocab_size:,} tokens",
        f"- Learned numbers: {num_parameters(model):,}",
        f"- Training: {config.training.steps:,} steps, seed {config.training.seed}"
        if row.learns_by == "gradients"
        else "- Training: counted in one pass",
        "",
        "| validation | value |",
        "| --- | --- |",
        f"| bits per character | {score.bits_per_char:.4f} (95 %: {low:.4f} to {high:.4f}) |",
        f"| nats per token | {score.nats_per_token:.4f} |",
        f"| perplexity per token | {score.perplexity:.3f} |",
        f"| signature | `{score.signature}` |",
        "",
        "## Use",
        "",
        f'    seqwise generate {run.path.name} --prompt "…"',
        f"    seqwise evaluate {run.path.name}",
        "",
    ]
    return "\n".join(lines)
