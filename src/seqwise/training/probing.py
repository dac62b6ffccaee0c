"""Labelled or tagged data as a model reads it that was trained on something else, to probe what its layers know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..data.schema import LABEL, TAG, TokenSpec
from ..data.text_examples import TextStore
from ..errors import ConfigError, DataError
from ..goals.goal import Tell
from ..models.contract import Model
from ..models.elmo import ELMo
from ..run import Run
from ..settings import DataConfig, TokenizerConfig
from ..tasks import task_for, task_named


def probe_stores(
    run: Run, model: Model, source: str, *, task: str | None, columns: Sequence[str], split: str, tell: Tell
) -> tuple[TextStore, TextStore]:
    """The training part and the part that probes are judged on, in the tokens of the run."""
    if not isinstance(next(iter(run.schema.specs.values())), TokenSpec):
        raise ConfigError(f"{run.path} does not read text, and labels and tags are asked of texts here.")
    found = task_named(task_for(task, [source], columns))
    data = found.open(DataConfig(source=[source], columns=list(columns)))
    for sentence in (data.description, *data.notes):
        tell(sentence)
    if split not in data.parts:
        raise DataError(f"{data.name} has no {split} part; it has {', '.join(data.parts)}.")
    schema = found.schema(data, TokenizerConfig(), tell, run.schema)
    if schema.kind not in (LABEL, TAG):
        raise ConfigError(f"{data.name}: probes tell labels and tags apart, and it has neither.")
    if isinstance(model, ELMo):  # words as they are spelled, those that it does not know too
        name = schema.inputs["tokens"]
        spelled = replace(schema.input("tokens", TokenSpec), alphabet=model.alphabet)
        schema = replace(schema, specs={**schema.specs, name: spelled})
    return found.store(data, "train", schema), found.store(data, split, schema)
