"""The run folder: a run stands alone, and a kill at any instant leaves it whole.

    runs/NAME/
      config.toml         format version and every setting
      vocab/              schema.json and its specs: what turns data into what the model reads, and back
      model.safetensors   the best weights (initial.safetensors: those of another run that it started from); where an
                          adapter was learned adapter_model.safetensors, and adapter_config.json, as PEFT has them
      model.sha256        their checksum; runs of versions before have none
      checkpoints/STEP/   the last two: weights, optimiser, random state, position; manifest.json last
      log.jsonl           one report per line
      card.md             what it is and how to use it

Files are written beside their place and moved into it; a checkpoint without a valid manifest does not exist.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from . import __version__
from .checks import check_run, check_task, check_writable_name
from .config import build, parse_json, read_toml, to_json, to_toml
from .data.old_schemas import load_old_schema
from .data.schema import CAPTION, NEXT_TOKEN, Schema, TokenSpec, damaged
from .errors import CheckpointError, ConfigError, did_you_mean
from .models import MODELS, family
from .models.adapters import adapt, is_adapted, merged
from .models.contract import HasWeights, Model
from .models.headed import HeadedModel
from .models.peft_names import PEFTLayout
from .settings import DataConfig, TokenizerConfig, TrainingConfig, renamed_settings
from .tensors import as_bytes, disk, read_tensors, sha256_of, write_durably, write_in_place
from .tensors import write_tensors as write_tensors
from .text import Tokenizer

RUN_FORMAT = 3
READABLE_FORMATS = (1, 2, 3)
SCHEMA_FORMAT = 3  # from here on vocab/ holds a schema
DROPPED_SETTINGS = {1: ("vocab_size", "boundary")}  # of the section model: the vocabulary knows them
CHECKPOINTS_KEPT = 2
CHECKPOINT_FILES = ("weights.safetensors", "optimizer.safetensors", "progress.json")
HEADER = ("format", "seqwise", "torch", "task", "family")


@dataclass(frozen=True)
class RunConfig:
    """Everything in config.toml."""

    model_name: str
    data: DataConfig
    tokenizer: TokenizerConfig
    model: Any
    """The config dataclass of the family."""
    training: TrainingConfig
    task: str = "text"
    torch: str = torch.__version__
    """The version the run was begun with; resuming is exact for the same one."""
    format: int = RUN_FORMAT
    """Of the folder that it was read from."""

    def to_toml(self) -> str:
        header = {
            "format": RUN_FORMAT,
            "seqwise": __version__,
            "torch": self.torch,
            "task": self.task,
            "family": self.model_name,
        }
        sections = {"data": self.data, "tokenizer": self.tokenizer, "model": self.model, "training": self.training}
        return to_toml(header, sections)

    @staticmethod
    def read(path: Path) -> RunConfig:
        values = read_toml(path)
        if values.get("format") not in READABLE_FORMATS:
            readable = ", ".join(map(str, READABLE_FORMATS))
            raise CheckpointError(
                f"{path}: format {values.get('format')} is not one this version of seqwise reads ({readable})."
            )
        try:
            row = family(str(values.get("family", "")))
        except ConfigError as error:
            raise ConfigError(f"{path}: family: {error}") from None
        sections = {
            "data": DataConfig,
            "tokenizer": TokenizerConfig,
            "model": row.config,
            "training": TrainingConfig,
        }
        for name in values:
            if name not in sections and name not in HEADER:
                raise ConfigError(f'{path}: unknown section "{name}". {did_you_mean(name, sections)}')
            if name in sections and not isinstance(values[name], dict):
                raise ConfigError(f"{path}: {name} = {values[name]!r} should be a section: [{name}].")
        for name in DROPPED_SETTINGS.get(values["format"], ()):
            values.get("model", {}).pop(name, None)
        values = renamed_settings(values)
        header = {"task": values.get("task", "text"), "torch": values.get("torch", "?"), "format": values["format"]}
        try:
            check_task(header["task"])
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        built: dict[str, Any] = {
            name: build(kind, values.get(name, {}), section=name, where=str(path)) for name, kind in sections.items()
        }
        return RunConfig(values["family"], **header, **built)


@dataclass(frozen=True)
class Checkpoint:
    """Everything that training needs to go on as if it had never stopped."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    """Tensors of the optimiser, the random state and the carried state, by name."""
    progress: dict[str, Any]
    """Plain numbers: step, best score, length of the log, and the like."""

    @property
    def step(self) -> int:
        return int(self.progress["step"])

    def copy(self) -> Checkpoint:
        """One that does not change when training goes on."""
        weights, optimizer = ({k: v.clone() for k, v in d.items()} for d in (self.weights, self.optimizer))
        return Checkpoint(weights, optimizer, json.loads(json.dumps(self.progress)))


class Run:
    """A run folder: opens it, and writes to it atomically."""

    def __init__(self, path: Path, config: RunConfig, schema: Schema):
        self.path, self.config, self.schema = path, config, schema

    @property
    def tokenizer(self) -> Tokenizer:
        """Of a run on text; others have none."""
        if self.schema.kind != NEXT_TOKEN:
            instead = (
                f" It describes pictures: seqwise caption {self.path} IMAGE" if self.schema.kind == CAPTION else ""
            )
            raise ConfigError(
                f"{self.path} was trained on {self.config.task}, not on text: it does not go on from a prompt.{instead}"
            )
        return self.schema.target(self.schema.main, TokenSpec).tokenizer

    @staticmethod
    def create(
        path: Path, config: RunConfig, schema: Schema, *, initial_weights: dict[str, Tensor] | None = None
    ) -> Run:
        """A new folder with config and vocabulary. The folder appears whole or not at all; one that is there and empty
        (it may be the one we stand in) is filled, config.toml last.

        `initial_weights` are what training starts from instead of chance.
        """
        check_free(path)
        is_there = path.exists()
        unfinished = path / f".{os.getpid()}" if is_there else path.with_name(f".{path.name}.{os.getpid()}")
        with disk(path):
            (unfinished / "vocab").mkdir(parents=True)
            try:
                (unfinished / "config.toml").write_text(config.to_toml(), encoding="utf-8")
                schema.save(unfinished / "vocab")
                (unfinished / "log.jsonl").touch()
                if initial_weights is not None:
                    write_tensors(unfinished / "initial.safetensors", initial_weights)
                if is_there:
                    for part in sorted(unfinished.iterdir(), key=lambda part: part.name == "config.toml"):
                        part.rename(path / part.name)
                else:
                    unfinished.rename(path)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return Run(path, config, schema)

    @staticmethod
    def open(path: Path) -> Run:
        path = Path(path)
        check_run(path)
        config = RunConfig.read(path / "config.toml")
        vocab = path / "vocab"
        is_old = config.format < SCHEMA_FORMAT and not (vocab / "schema.json").exists()
        schema = load_old_schema(vocab, config.task) if is_old else Schema.load(vocab)
        if not {kind for row in MODELS.values() for kind in row.learns}.issuperset(schema.kinds):
            raise damaged(vocab / "schema.json")
        if not family(config.model_name).fits(schema):
            raise ConfigError(
                f'{path / "config.toml"}: task = "{config.task}" is not one that {config.model_name} does.'
            )
        return Run(path, config, schema)

    # -- the model -----------------------------------------------------------------------------------------------

    def build_model(self) -> Any:
        """The model with fresh weights."""
        return family(self.config.model_name).build(self.config.model, self.schema)

    @property
    def weights_path(self) -> Path:
        """The file of the best weights: all of them, or those of an adapter."""
        return self.path / ("adapter_model.safetensors" if is_adapted(self.config.model) else "model.safetensors")

    @property
    def fingerprint(self) -> str:
        """sha256 of the weights; empty where there are none yet."""
        return sha256_of(self.weights_path) if self.weights_path.exists() else ""

    def load_initial_weights(self, model: Model) -> bool:
        """Where the run starts from another one, its weights, and where it has an adapter, that; whether it does."""
        path = self.path / "initial.safetensors"
        if not path.exists():
            return False
        own = read_tensors(path)
        if not is_adapted(self.config.model):
            load_weights(model, own, path)
            return True
        assert isinstance(model, torch.nn.Module)
        load_weights(model, self._base_weights(model) | own, path)
        adapt(model, self.config.model, own)
        return True

    def load_model(self) -> Any:
        """The model with the best weights of the run, ready to use; an adapter is multiplied out."""
        path = self.weights_path
        if not path.exists():
            raise CheckpointError(f"{self.path}: no trained model yet ({path.name} is missing). Go on with --resume.")
        tensors = read_tensors(path)
        self._check_weights(path)
        model = self.build_model()
        if is_adapted(self.config.model):
            layout = PEFTLayout.of(self.config.model, self.schema)
            tensors = tensors if layout is None else layout.names_in(tensors)
            tensors = merged(self._base_weights(model), tensors, self.config.model)
        load_weights(model, tensors, path)
        if not isinstance(model, torch.nn.Module):
            return model
        for name, weight in model.named_parameters():
            if not weight.isfinite().all():
                raise CheckpointError(f"{path}: damaged: {name} holds what is not a number. Train again.")
        return model.eval()

    def _base_weights(self, model: torch.nn.Module) -> dict[str, Tensor]:
        """Weights of this model that the run does not hold itself: an adapter is nothing without what it adapts."""
        training = self.config.training
        path, beside = Path(training.start), f"{self.path} holds what was learned beside {training.start}"
        if not path.exists():
            raise CheckpointError(
                f"{beside}, which is not there. Put it back, or write its new place into {self.path / 'config.toml'}: "
                "start, in the section training."
            )
        base = Run.open(path)
        if base.fingerprint != training.start_fingerprint:
            raise CheckpointError(
                f"{beside}, and that has other weights now (sha256 {base.fingerprint[:12]}…, was "
                f"{training.start_fingerprint[:12]}…). Restore them, or train again with --from {path}."
            )
        names = model.state_dict().keys()
        return {name: tensor for name, tensor in base.load_model().state_dict().items() if name in names}

    def save_model(self, model: Model) -> None:
        """Replace the best weights, and their checksum.

        The checksum of the new ones is added before they take their place, and that of the old ones dropped after it:
        what a kill leaves in between is known, be it old or new.
        """
        path, weights = self.weights_path, model.state_dict()
        layout = PEFTLayout.of(self.config.model, self.schema) if is_adapted(self.config.model) else None
        if layout is not None:
            weights = layout.names_out(weights)
            told = json.dumps(layout.settings(self.config.training.start), indent=1)
            self._write_text("adapter_config.json", told + "\n")
        content = as_bytes(weights)
        with disk(self.path):
            known = self._checksums() or ([sha256_of(path)] if path.exists() else [])
            checksum = hashlib.sha256(content).hexdigest()
            self._write_checksums([checksum, *known])
            write_in_place(path, content)
            self._write_checksums([checksum])

    def _checksums(self) -> list[str]:
        """Of the weights as training wrote them; none in runs of versions before."""
        path = self.path / "model.sha256"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return [line.split()[0] for line in lines if line.strip()]

    def _write_checksums(self, checksums: list[str]) -> None:
        """As `sha256sum --check` reads it."""
        lines = [f"{checksum}  {self.weights_path.name}\n" for checksum in dict.fromkeys(checksums)]
        write_in_place(self.path / "model.sha256", "".join(lines).encode())

    def _check_weights(self, path: Path) -> None:
        known = self._checksums()
        if known and sha256_of(path) not in known:
            raise CheckpointError(
                f"{path}: damaged: its content is not what training wrote. Restore it, go on with --resume, or train "
                f"again; if you changed it yourself, remove {self.path / 'model.sha256'}."
            )

    def save_config(self, config: RunConfig) -> None:
        """Replace the settings: once, when a budget in minutes has become a number of steps.

        With that the folder is one of the present format, whatever it was before.
        """
        if self.config.format < SCHEMA_FORMAT:
            with disk(self.path):
                self.schema.save(self.path / "vocab")
        self.config = replace(config, format=RUN_FORMAT)
        self._write_text("config.toml", self.config.to_toml())

    def save_card(self, text: str) -> None:
        self._write_text("card.md", text)

    def _write_text(self, name: str, text: str) -> None:
        with disk(self.path):
            unfinished = self.path / f".{name}"
            try:
                unfinished.write_text(text, encoding="utf-8")
                unfinished.replace(self.path / name)
            finally:
                unfinished.unlink(missing_ok=True)

    # -- the log -------------------------------------------------------------------------------------------------

    def append_log(self, line: dict[str, Any]) -> None:
        with disk(self.path), (self.path / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(to_json(line) + "\n")

    def log_length(self) -> int:
        """Bytes; saved with each checkpoint, so these are on the disk."""
        with disk(self.path), (self.path / "log.jsonl").open("ab") as log:
            os.fsync(log.fileno())
            return log.tell()

    def cut_log(self, length: int) -> bool:
        """Back to what it was at a checkpoint; whether all of that was there.

        A power cut may have taken its end, or left zeros there: it ends before the first line that cannot be read.
        """
        with disk(self.path), (self.path / "log.jsonl").open("r+b") as log:
            kept = 0
            for line in log.read(length).splitlines(keepends=True):
                if not _is_report(line):
                    break
                kept += len(line)
            log.truncate(kept)
            return kept == length

    def read_log(self) -> Iterator[dict[str, Any]]:
        path = self.path / "log.jsonl"
        with path.open("rb") as log:
            for number, line in enumerate(log, start=1):
                if not _is_report(line):
                    raise CheckpointError(f"{path}: damaged: line {number} is no report. Go on with --resume.")
                yield parse_json(line)

    # -- checkpoints ---------------------------------------------------------------------------------------------

    @property
    def _checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write it whole, or leave everything as it was. The last two are kept."""
        unfinished = self._checkpoints / f".{checkpoint.step}"
        final = self._checkpoints / str(checkpoint.step)
        with disk(self.path):
            for left_behind in self._checkpoints.glob(".*"):  # by a kill
                shutil.rmtree(left_behind, ignore_errors=True)
            try:
                unfinished.mkdir(parents=True)
                write_tensors(unfinished / "weights.safetensors", checkpoint.weights)
                write_tensors(unfinished / "optimizer.safetensors", checkpoint.optimizer)
                write_durably(unfinished / "progress.json", json.dumps(checkpoint.progress).encode())
                manifest = {name: sha256_of(unfinished / name) for name in CHECKPOINT_FILES}
                write_durably(unfinished / "manifest.json", json.dumps(manifest).encode())
                if final.exists():  # the same step again, after a resume
                    shutil.rmtree(final)
                unfinished.rename(final)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        steps = self._steps()  # later ones were passed over when the run was resumed
        kept = [step for step in steps if step <= checkpoint.step][-CHECKPOINTS_KEPT:]
        for step in set(steps) - set(kept):
            shutil.rmtree(self._checkpoints / str(step), ignore_errors=True)

    def latest_checkpoint(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole checkpoint, and a sentence for each damaged one that was passed over."""
        notes: list[str] = []
        for step in reversed(self._steps()):
            try:
                return self._load_checkpoint(self._checkpoints / str(step)), notes
            except CheckpointError as error:
                notes.append(f"{error} Passed over.")
        return None, notes

    def _steps(self) -> list[int]:
        if not self._checkpoints.exists():
            return []
        return sorted(int(p.name) for p in self._checkpoints.iterdir() if p.name.isdigit())

    def _load_checkpoint(self, folder: Path) -> Checkpoint:
        try:
            manifest = parse_json((folder / "manifest.json").read_text())
            if set(manifest) != set(CHECKPOINT_FILES):
                raise CheckpointError(f"{folder}: damaged: the manifest does not name the files of a checkpoint.")
            for name in CHECKPOINT_FILES:
                if sha256_of(folder / name) != manifest[name]:
                    raise CheckpointError(f"{folder / name}: damaged: its content is not what was written.")
            progress = parse_json((folder / "progress.json").read_text())
        except (OSError, ValueError, LookupError, TypeError):
            raise CheckpointError(f"{folder}: damaged: the manifest or a file it names cannot be read.") from None
        weights, optimizer = (read_tensors(folder / f"{name}.safetensors") for name in ("weights", "optimizer"))
        return Checkpoint(weights, optimizer, progress)

    def with_training(self, **changes: Any) -> RunConfig:
        return replace(self.config, training=replace(self.config.training, **changes))


def check_free(path: Path) -> None:
    check_writable_name(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} exists already. Go on with --resume, or choose another --out.")


RENAMED = (  # patterns of names that weights had before, and have now
    (r"^body\.layers\.kernel\.weight_ih_l(\d+)$", r"body.stack.layers.\1.cells.0.weights.input"),
    (r"^body\.layers\.kernel\.weight_hh_l(\d+)$", r"body.stack.layers.\1.cells.0.weights.hidden"),
    (r"^body\.layers\.kernel\.bias_ih_l(\d+)$", r"body.stack.layers.\1.cells.0.weights.bias_input"),
    (r"^body\.layers\.kernel\.bias_hh_l(\d+)$", r"body.stack.layers.\1.cells.0.weights.bias_hidden"),
    (r"\.to_query_key_value\.weight$", ".qkv.weight"),
    (r"\.feed_forward\.widen\.(weight|bias)$", r".feed_forward.up.\1"),
    (r"\.feed_forward\.narrow\.(weight|bias)$", r".feed_forward.down.\1"),
)


def renamed_weights(weights: dict[str, Tensor], model: HasWeights) -> dict[str, Tensor]:
    """Weights that a version before this one saved, by the names they have now."""
    renamed = {}
    for name, tensor in weights.items():
        for before, now in RENAMED:
            name = re.sub(before, now, name)
        if isinstance(model, HeadedModel) and len(model.heads) == 1:  # a head had no name, as there was but one
            name = re.sub(rf"^head\.(?!{model.main}\.)", f"head.{model.main}.", name)
        renamed[name] = tensor
    return renamed


def load_weights(model: HasWeights, weights: dict[str, Tensor], where: Path) -> None:
    try:
        model.load_state_dict(renamed_weights(weights, model))
    except CheckpointError as error:
        raise CheckpointError(f"{where}: {error}") from None
    except (RuntimeError, KeyError) as error:
        first = str(error).strip().splitlines()[-1].strip()
        raise CheckpointError(f"{where}: the weights do not fit the settings in config.toml ({first}).") from None


def _is_report(line: bytes) -> bool:
    """Whether a line of the log is whole."""
    try:
        return line.endswith(b"\n") and isinstance(parse_json(line), dict)
    except ValueError:
        return False
