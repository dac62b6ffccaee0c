"""Models of Hugging Face folders become runs, and runs become such folders. ARCHITECTURES and WRITERS are the tables.

    seqwise import hf all-MiniLM-L6-v2/ --out runs/minilm
    seqwise import hf Helsinki-NLP/opus-mt-en-de --out runs/en-de     a name is fetched (hf_hub.py)
    seqwise export runs/mine mine-hf/ --to hf

A folder is read whole, with its tokenizer, before anything is written. What each architecture is called and how its
tensors lie is in hf_encoders.py, hf_decoders.py and hf_marian.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from ..data.schema import TokenSpec
from ..errors import ConfigError, DataError
from ..goals.goal import Tell
from ..models import family, num_parameters
from ..models.headed import HeadedModel
from ..run import Run, RunConfig, check_free
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from ..training.card import next_command
from .hf_decoders import read_gpt2, read_llama, write_gpt
from .hf_encoders import read_albert, read_bert, read_distilbert, read_roberta, write_bert
from .hf_folder import CONFIG, HFFolder
from .hf_hub import fetch_folder, name_of
from .hf_layout import Layout, give_weights, take_weights
from .hf_marian import read_marian, write_transformer
from .hf_tokenizers import write_hf_tokenizer

ARCHITECTURES: dict[str, Callable[[HFFolder], Layout]] = {
    "bert": read_bert,
    "roberta": read_roberta,
    "xlm-roberta": read_roberta,
    "distilbert": read_distilbert,
    "albert": read_albert,
    "gpt2": read_gpt2,
    "llama": read_llama,
    "mistral": read_llama,
    "marian": read_marian,
    "pegasus": read_marian,
}
"""What a folder holds, by the model_type of its config.json."""
WRITERS: dict[str, Callable[[Run, Any], Layout]] = {
    "gpt": write_gpt,
    "bert": write_bert,
    "transformer": write_transformer,
}
"""How a run and its model are written, by family."""


def import_hf(path: Path, out: Path, *, tell: Tell = lambda sentence: None) -> Run:
    """A run of the model and the tokenizer in a folder. `tell` is given what a user should know."""
    check_free(out)
    folder = HFFolder(fetch_folder(str(path)))
    layout = _reader(folder)(folder)
    model: HeadedModel = family(layout.family).build(layout.config, layout.schema)
    take_weights(folder, layout, model)
    for sentence in layout.notes:
        tell(sentence)
    return _make_run(folder, name_of(str(path)), layout, model.eval(), out)


def _reader(folder: HFFolder) -> Callable[[HFFolder], Layout]:
    if folder.model_type not in ARCHITECTURES:
        raise ConfigError(
            f'{folder.path / CONFIG}: model_type = "{folder.model_type}" is an architecture that is not read here; '
            f"these are: {', '.join(ARCHITECTURES)}."
        )
    return ARCHITECTURES[folder.model_type]


def _make_run(folder: HFFolder, name: str, layout: Layout, model: HeadedModel, out: Path) -> Run:
    architecture = ", ".join(map(str, folder.config.get("architectures") or ())) or folder.model_type
    spec = next(spec for spec in layout.schema.specs.values() if isinstance(spec, TokenSpec))
    data = DataConfig(
        description=f"imported from {name} ({architecture}), {num_parameters(model):,} parameters",
        fingerprint=folder.fingerprint(),
    )
    tokenizer = TokenizerConfig(kind=spec.tokenizer.kind)  # type: ignore[arg-type]
    training = TrainingConfig(context=layout.config.context)
    config = RunConfig(layout.family, data, tokenizer, layout.config, training, layout.task)
    run = Run.create(out, config, layout.schema)
    try:
        run.save_model(model)
        run.save_card(_card(folder, layout, run))
    except BaseException:  # a full disk, Ctrl-C: no run without its weights stays behind
        shutil.rmtree(out, ignore_errors=True)
        raise
    return run


def export_hf(run: Run, path: Path) -> list[str]:
    """Write a folder that `transformers` loads, whole or not at all. What to know about it."""
    model = run.load_model()
    layout = WRITERS[run.config.model_name](run, model)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        for name, content in {CONFIG: layout.settings | {"dtype": "float32"}, **layout.files}.items():
            (unfinished / name).parent.mkdir(exist_ok=True)
            (unfinished / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        save_file(give_weights(layout, model), unfinished / "model.safetensors", metadata={"format": "pt"})
        if layout.write_tokens is not None:
            layout.write_tokens(unfinished)
        else:
            tells_texts = layout.settings.get("type_vocab_size", 1) > 1
            write_hf_tokenizer(layout.schema.input("tokens", TokenSpec), unfinished, tells_texts=tells_texts)
        if (card := run.path / "card.md").is_file():
            shutil.copyfile(card, unfinished / "README.md")
        unfinished.rename(path)
    except OSError as error:
        raise DataError(f"{path}: cannot write: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return layout.notes


def _card(folder: HFFolder, layout: Layout, run: Run) -> str:
    told = _front_matter(folder.path / "README.md")
    lines = [
        f"# {run.path.name}",
        "",
        f"A {layout.family} model that others have trained, {run.config.data.description}.",
        "",
        f"- Weights: {', '.join(path.name for path in folder.files)}, sha256 {run.config.data.fingerprint}",
        f"- Licence: {told.get('license') or 'not told in its README.md; ask those who made it'}",
        *(f"- {spec.describe()}" for spec in layout.schema.specs.values()),
        *(f"- {sentence[:1].upper()}{sentence[1:]}" for sentence in layout.notes),
    ]
    if data := told.get("datasets"):
        lines.append(
            f"- Trained on, as its README.md says: {data}. Test sets of today may be among it: scores on those are no "
            "measure of what it has not seen"
        )
    return "\n".join([*lines, "", "## Use", "", f"    {next_command(run, run.path.name)}", ""])


def _front_matter(path: Path) -> dict[str, str]:
    """What stands between the lines --- at the top of a README, names with a word or a list each."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    inside = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
    found: dict[str, str] = {}
    name = ""
    for line in inside[1].splitlines() if inside else ():
        if item := re.match(r"\s*-\s+(.*)", line):
            found[name] = ", ".join(filter(None, (found.get(name), item[1].strip())))
        elif field := re.match(r"([\w-]+):\s*(.*)", line):
            name = field[1]
            found[name] = field[2].strip()
    return found
