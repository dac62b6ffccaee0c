"""How much of a gradient is left k tokens before: plain RNN, identity RNN, GRU, LSTM and GPT, the same text and width.

    python -m benchmarks.gradient_flow [--minutes 0.6] [--picture docs/gradient-flow.svg]

Each is trained on Python's language reference for the same time, with the state carried and gradients cut as each
family does by default. Then the gradient of the loss at 24 tokens of unseen text with respect to the embedding of the
token k before, before and after training. About five minutes in all.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

from seqwise.api import TrainedRun, train
from seqwise.inspection.gradient_flow import Flow, gradient_flow
from seqwise.inspection.reading import later_steps, read_text
from seqwise.models import MODELS
from seqwise.models.contract import evaluating
from seqwise.pages.charts import Axis, Look, Series, line_chart

DATA, WIDTH, NUM_TOKENS = "python-reference", 128, 240
LAGS = (1, 2, 5, 10, 20, 50, 100)
ENTRANTS = {
    "rnn, tanh": ("rnn", {}),
    "rnn, identity": ("rnn", {"activation": "relu", "identity_init": "true"}),
    "gru": ("gru", {}),
    "lstm": ("lstm", {}),
    "gpt": ("gpt", {"num_layers": 2, "num_heads": 4, "context": 256}),
}
STYLE = """<style>
svg { background: #fff }
text { font: 11px sans-serif; fill: #333 } .grid { stroke: #ddd; fill: none } .base { stroke: #888; fill: none }
.line { fill: none; stroke: var(--tone); stroke-width: 2 } .mark { fill: var(--tone) } .leader { stroke: var(--tone) }
.c0 { --tone: #0b45c8 } .c1 { --tone: #a5300b } .c2 { --tone: #0d7d55 } .c3 { --tone: #81357f } .c4 { --tone: #b8952a }
</style>"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=0.6)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    found: dict[str, tuple[Flow, Flow]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for place, (name, (family, settings)) in enumerate(ENTRANTS.items()):
            model = {"model_dim": WIDTH, "num_layers": 1, "dropout": 0.0, **settings}
            overrides = [f"model.{key}={value}" for key, value in model.items()]
            run = train(DATA, family, out=Path(folder) / str(place), minutes=options.minutes, overrides=overrides)
            found[name] = flow_of(run, is_trained=False), flow_of(run, is_trained=True)
            print(f"{name}: {run.evaluate().bits_per_char:.3f} bits a character", flush=True)
    for title, place in (("before training", 0), ("after training", 1)):
        print(f"\nWhat is left of the gradient at lag 1, {title}\n")
        print(f"| | {' | '.join(f'{lag} before' for lag in LAGS)} |\n|---|{'---|' * len(LAGS)}")
        for name, flows in found.items():
            shares = flows[place].shares()
            print(f"| {name} | {' | '.join(f'{shares[lag]:.2g}' for lag in LAGS)} |")
    if options.picture:
        options.picture.write_text(picture({name: flows[1] for name, flows in found.items()}), encoding="utf-8")


def flow_of(run: TrainedRun, *, is_trained: bool) -> Flow:
    """Of the embeddings, which every family has."""
    model = run.model
    if not is_trained:
        torch.manual_seed(0)
        config = run.run.config
        model = MODELS[config.model_name].build(config.model, run.run.schema)
        with torch.no_grad():  # heads and blocks begin at zero, where no gradient would pass
            for parameter in model.parameters():
                if parameter.dim() > 1 and not parameter.any():
                    parameter.normal_(std=parameter.shape[1] ** -0.5)
    reading = read_text(model, run.tokenizer, run.unseen_text(4 * NUM_TOKENS), max_tokens=NUM_TOKENS)
    with evaluating(model):
        flows = gradient_flow(model, reading.batch, steps=later_steps(reading, 24), max_lags=max(LAGS))
    return next(flow for flow in flows if flow.what == "embedding")


def picture(flows: dict[str, Flow]) -> str:
    lines = [
        Series(name, [point for point in enumerate(flow.shares()) if point[0]], Look.of(place))
        for place, (name, flow) in enumerate(flows.items())
    ]
    svg = line_chart(
        lines,
        identity="gradient-flow",
        title="Gradient by lag",
        about="What is left of the gradient at lag 1, by tokens before.",
        x=Axis("tokens before", "{:.0f}".format),
        y=Axis("share of the gradient at lag 1", "{:.2g}".format, is_log=True),
    )
    head, rest = svg.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{STYLE}{rest}'


if __name__ == "__main__":
    main()
