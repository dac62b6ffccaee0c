"""Of networks, chains and filters that read series: short and noisy ones, most of them."""

from __future__ import annotations

from typing import Any

from ...goals.goal import Facts

NUMBER_SIZES: dict[str, dict[str, Any]] = {
    "window": {"embed_dim": 16, "model_dim": 64},
    "conv": {"model_dim": 32, "num_layers": 4},
    "rnn": {"model_dim": 64},
    "gru": {"model_dim": 64},
    "lstm": {"model_dim": 64},
    "gpt": {"num_layers": 2, "model_dim": 32, "num_heads": 2},
}


def sizes(model_name: str, facts: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """Series are short and noisy: small networks, some dropout, and a reach of about two seasons."""
    if model_name == "hmm":
        return {"num_states": 8}, {"steps": 100, "restarts": 4}
    if model_name == "kalman":
        state_dim = 16 if facts.num_columns == 1 else min(48, 8 + 5 * facts.num_columns)
        season = facts.season if facts.season > 1 else 0
        sizes = {"state_dim": state_dim, "season": season}
        if facts.minutes is None:
            return sizes, {"steps": 20 if facts.num_columns == 1 else 10}
        # as many as fit and still help: many columns go on gaining for long, short series are soon overfitted
        return sizes, {"steps": 300, "evaluate_every": 5, "patience": 3}
    reach = int(min(256, max(32, 2 * facts.season), max(4, facts.train_tokens // 4)))
    model = {**NUMBER_SIZES[model_name], "dropout": 0.1}
    if model_name == "window":
        model["window"] = min(reach, max(8, min(48, facts.season + 1)))
    if model_name == "gpt":
        model |= {"context": reach, "feed_forward_dim": 96}
    training = {
        "batch_size": max(1, min(16, facts.train_tokens // (2 * reach))),
        "context": reach,
        "optimizer": "adamw",
        "learning_rate": 3e-3,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup_steps": 20,
        "num_samples": 0,
    }
    return model, training
