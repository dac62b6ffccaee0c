"""What an encoder of a Hugging Face folder answers, and which head of ours that is.

    BertModel                        a vector of a text         pooling by 1_Pooling of sentence-transformers
    BertForMaskedLM, ForPreTraining  hidden words               and whether a text follows another, where it is there
    BertForSequenceClassification    a label, labels, a number  by problem_type and id2label
    BertForTokenClassification       a tag for each word
    BertForQuestionAnswering         a span of a passage

and the same of RoBERTa, DistilBERT and ALBERT. Labels are read off the first place through the pooler, as ours are with
model.pooling = first (DistilBERT has a ReLU there: model.pooler_activation). A number that was brought to mean zero and
variance one is written as people write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..config import parse_json
from ..data.schema import (
    LABEL,
    LABELS,
    MASKED_TOKEN,
    NUMBER,
    SPAN,
    TAG,
    VECTOR,
    LabelSpec,
    NumberSpec,
    Schema,
    SpanSpec,
    Spec,
    TagSpec,
    Target,
    TokenSpec,
    answer_schema,
    span_schema,
    tag_schema,
    vector_schema,
)
from ..data.tag_schemes import split_tag
from ..errors import ConfigError, DataError
from ..run import Run
from .hf_folder import CONFIG, HFFolder, read_object
from .hf_layout import FLIPPED, Part, Weight, cut, names_below, scaled

FOLLOWS = "next"  # the name of that target
POOLINGS = {"cls": "first", "cls_token": "first", "mean": "mean", "mean_tokens": "mean", "max": "max"}
POOLINGS |= {"max_tokens": "max", "lasttoken": "last"}
"""Ours by the names of sentence-transformers, of today and of before."""
PROBLEMS = {LABEL: "single_label_classification", LABELS: "multi_label_classification", NUMBER: "regression"}


@dataclass(frozen=True)
class HeadNames:
    """How an architecture writes the modules of its heads."""

    transform: str
    norm: str
    bias: str
    """Of the head that fills in words."""
    table: str
    """Its output, which is the table of embeddings once more."""
    follows: str = ""
    """Whether the second text follows the first: its first answer is yes, which is the last one of ours."""
    order: str = ""
    """Another question about two texts, which is not asked here."""
    label: str = "classifier"
    label_pooler: str = ""
    """The pooler, where it is a part of the head for labels."""
    label_activation: str = "tanh"
    """Behind that pooler."""
    tags: str = "classifier"
    spans: str = "qa_outputs"


@dataclass(frozen=True)
class Asked:
    """What a folder answers."""

    schema: Schema
    task: str
    settings: dict[str, Any]
    """Of the model, that follow from it."""
    notes: list[str] = field(default_factory=list)
    spare: tuple[str, ...] = ()
    """Patterns of tensors that are not needed."""


def head_weights(names: HeadNames, schema: Schema, name: str, *, spare_tokens: int) -> Iterator[Weight]:
    """Of the head for a target. `spare_tokens`: rows of their output that stand for no token."""
    kind, ours = schema.targets[name].head, f"head.{name}"
    if kind == MASKED_TOKEN:
        yield from names_below((f"{ours}.transform", names.transform), (f"{ours}.norm", names.norm))
        yield Weight(f"{ours}.output.bias", (Part(names.bias, cut(behind=spare_tokens)),))
    elif name == FOLLOWS:
        yield from names_below((f"{ours}.output", names.follows), way=FLIPPED)
    elif kind == TAG:
        yield from names_below((f"{ours}.output", names.tags))
    elif kind == SPAN:
        yield from names_below((f"{ours}.output", names.spans))
    elif kind == NUMBER:
        spec = schema.target(name, NumberSpec)
        yield Weight(f"{ours}.output.weight", (Part(f"{names.label}.weight", scaled(spec.scale)),))
        yield Weight(f"{ours}.output.bias", (Part(f"{names.label}.bias", scaled(spec.scale, spec.mean)),))
    elif kind != VECTOR:
        yield from names_below((f"{ours}.output", names.label))


# -- reading -------------------------------------------------------------------------------------------------------


def asked_of(folder: HFFolder, names: HeadNames, spec: TokenSpec, *, context: int) -> Asked:
    """What the folder says that it answers; where it says nothing, what its tensors are for."""
    told = next(iter(folder.config.get("architectures") or ()), None)
    has_masked = names.bias in folder.names
    found = re.search(r"(For\w+|Model)$", str(told)) if told else None
    kind = "ForMaskedLM" if has_masked and (found is None or found[1] == "Model") else found[1] if found else "Model"
    if kind not in READS:
        known = ", ".join(READS)
        raise ConfigError(f"{folder.path / CONFIG}: {told} has a head that is not read here; these are: {known}.")
    return READS[kind](folder, names, spec, context)


def _read_masked(folder: HFFolder, names: HeadNames, spec: TokenSpec, context: int) -> Asked:
    if "mask" not in spec.special:
        raise DataError(f"{folder.path}: its tokenizer has no token for a word that is left out ([MASK], <mask>).")
    specs: dict[str, Spec] = {"tokens": spec}
    targets, notes, spare = {"tokens": Target("tokens", MASKED_TOKEN)}, list[str](), tuple[str, ...]()
    if names.follows and f"{names.follows}.weight" in folder.names:
        specs[FOLLOWS], targets[FOLLOWS] = LabelSpec(["elsewhere", "follows"]), Target(FOLLOWS, LABEL)
    if names.order and any(name.startswith(names.order) for name in folder.names):
        notes.append("its head that says which of two texts comes first was left out")
        spare = (rf"^{re.escape(names.order)}",)
    return Asked(Schema(specs, {"tokens": "tokens"}, targets), "masked", {"pooling": "first"}, notes, spare)


def _read_label(folder: HFFolder, names: HeadNames, spec: TokenSpec, context: int) -> Asked:
    labels = _label_names(folder)
    settings = {"pooling": "first", "max_steps": context, "pooler_activation": names.label_activation}
    problem = folder.config.get("problem_type")
    if problem == PROBLEMS[NUMBER] or (problem is None and len(labels) == 1):
        if len(labels) != 1:
            raise ConfigError(f"{folder.path / CONFIG}: {len(labels)} numbers for each text; one is known here.")
        return Asked(answer_schema(spec, NumberSpec()), "label", settings)
    answers = LabelSpec(labels)
    return Asked(answer_schema(spec, answers, several=problem == PROBLEMS[LABELS]), "label", settings)


def _read_tags(folder: HFFolder, names: HeadNames, spec: TokenSpec, context: int) -> Asked:
    labels = _label_names(folder)
    return Asked(tag_schema(spec, TagSpec(labels, scheme=_scheme_of(labels))), "tags", {"pooling": "first"})


def _read_spans(folder: HFFolder, names: HeadNames, spec: TokenSpec, context: int) -> Asked:
    notes = ["a folder does not tell whether an answer may be missing: every question is given one"]
    return Asked(span_schema(replace(spec, num_texts=2), SpanSpec()), "span", {"pooling": "first"}, notes)


def _label_names(folder: HFFolder) -> list[str]:
    """In the order of their ids; numbered where the folder does not name them."""
    told = folder.config.get("id2label")
    if not told:
        return [f"LABEL_{number}" for number in range(folder.number("num_labels", 2))]
    found = [str(told.get(str(number), "")) for number in range(len(told))] if isinstance(told, dict) else []
    if not all(found) or len(set(found)) < max(1, len(found)):
        raise DataError(f"{folder.path / CONFIG}: id2label should have a name of its own for 0, 1, 2 and so on.")
    return found


def _scheme_of(tags: list[str]) -> str:
    """How tags mark entities, by their letters alone."""
    letters = {tag[:1] for tag in tags if split_tag(tag).prefix not in ("", "O")}
    if letters & {"L", "U"}:
        return "BILOU"
    return "BIOES" if letters & {"E", "S"} else "IOB2" if letters else ""


def _read_vector(folder: HFFolder, names: HeadNames, spec: TokenSpec, context: int) -> Asked:
    modules = _modules(folder)
    pooling = next((path for kind, path in modules if kind == "Pooling"), "1_Pooling")
    path, notes = folder.path / pooling / CONFIG, []
    chosen = None
    if path.is_file():
        told = read_object(path)
        on = [name.removeprefix("pooling_mode_") for name, value in told.items() if value is True]
        on = [str(told["pooling_mode"])] if isinstance(told.get("pooling_mode"), str) else on
        on = [name for name in on if name != "include_prompt"]
        chosen = POOLINGS.get(on[0]) if len(on) == 1 else None
        if chosen is None:
            notes.append(f"{path.name} in {pooling} asks for {' and '.join(on) or 'nothing'}, which is not known here")
    if chosen is None:
        notes.append("its vectors are the mean over a text, as no other pooling is told")
    if others := [kind for kind, _ in modules if kind not in ("Transformer", "Pooling", "Normalize")]:
        notes.append(f"{', '.join(others)} behind its pooling was left out: vectors are those before it")
    settings = {"pooling": chosen or "mean", "normalise": any(kind == "Normalize" for kind, _ in modules)}
    return Asked(vector_schema(spec), "vectors", settings, notes)


def _modules(folder: HFFolder) -> list[tuple[str, str]]:
    """Of sentence-transformers: the kind of each and its folder."""
    path = folder.path / "modules.json"
    if not path.is_file():
        return []
    try:
        rows = [(str(row["type"]).rpartition(".")[2], str(row["path"])) for row in parse_json(path.read_bytes())]
    except (ValueError, LookupError, TypeError):
        raise DataError(f"{path}: expected a list of modules, each with a type and a path.") from None
    return rows


READS: dict[str, Callable[[HFFolder, HeadNames, TokenSpec, int], Asked]] = {
    "Model": _read_vector,
    "ForMaskedLM": _read_masked,
    "ForPreTraining": _read_masked,
    "ForSequenceClassification": _read_label,
    "ForTokenClassification": _read_tags,
    "ForQuestionAnswering": _read_spans,
}
"""By how the name of an architecture ends."""


# -- writing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """What a run answers, as a folder tells it."""

    ending: str
    """Of the name of the architecture."""
    schema: Schema
    """With the targets that are written."""
    settings: dict[str, Any]
    """Of config.json."""
    notes: list[str] = field(default_factory=list)
    files: dict[str, Any] = field(default_factory=dict)
    """More files of JSON, by their paths."""


def answers_of(run: Run, names: HeadNames) -> Answers:
    """Refused where no head of theirs computes what ours does."""
    schema, config = run.schema, run.config.model
    if schema.kind == MASKED_TOKEN:
        return _masked_answers(schema, names)
    if len(schema.targets) > 1:
        raise ConfigError(
            f"{run.path} answers {' and '.join(schema.targets)}; a Hugging Face folder holds one of them."
        )
    if schema.kind == VECTOR:
        return _vector_answers(run)
    if schema.kind == TAG:
        if config.crf:
            raise _stands_in_the_way("model.crf = true", "has no linear-chain CRF", "model.crf=false")
        return Answers("ForTokenClassification", schema, _named(schema.target(schema.main, TagSpec).names))
    if schema.kind == SPAN:
        return Answers("ForQuestionAnswering", schema, {}, _about_spans(run))
    if config.pairing != "joined":
        raise _stands_in_the_way(
            f"model.pairing = {config.pairing}", "reads two texts as one row", "model.pairing=joined"
        )
    if config.pooler_activation != "tanh":
        raise _stands_in_the_way(
            f"model.pooler_activation = {config.pooler_activation}", "has a tanh there", "model.pooler_activation=tanh"
        )
    if config.pooling != "first":
        raise _stands_in_the_way(
            f"model.pooling = {config.pooling}", "reads labels off the first place", "model.pooling=first"
        )
    spec = schema.main_spec
    settings = _named(spec.names if isinstance(spec, LabelSpec) else ["LABEL_0"])
    notes = []
    if schema.kind != NUMBER and config.threshold != 0.5:
        notes.append(f"model.threshold = {config.threshold} is not in it: take probabilities, and apply it to them")
    if 0 < config.max_steps < config.context:
        notes.append(f"of texts with more than {config.max_steps} tokens the middle is left out here, and not there")
    return Answers("ForSequenceClassification", schema, {**settings, "problem_type": PROBLEMS[schema.kind]}, notes)


def _masked_answers(schema: Schema, names: HeadNames) -> Answers:
    if FOLLOWS not in schema.targets:
        return Answers("ForMaskedLM", schema, {})
    if names.follows:
        return Answers("ForPreTraining", schema, {})
    targets = {name: target for name, target in schema.targets.items() if name != FOLLOWS}
    told = "the head that says whether a text follows another is not in it: this architecture has none"
    return Answers("ForMaskedLM", Schema(schema.specs, schema.inputs, targets), {}, [told])


def _about_spans(run: Run) -> list[str]:
    """What a reader of the folder has to be told, as config.json has no place for it."""
    config, spans = run.config.model, run.schema.target(run.schema.main, SpanSpec)
    told = [f"answers have at most {config.max_answer} tokens here (max_answer_len there)"]
    ahead = f"by {config.none_threshold or 0:.3g} nats" if spans.may_lack else ""
    return told + [f"no answer is the answer where it is ahead {ahead} here (handle_impossible_answer there)"] * bool(
        ahead
    )


def _vector_answers(run: Run) -> Answers:
    """With what sentence-transformers reads: which pooling, and whether vectors are brought to length one."""
    config = run.config.model
    kinds = ["Transformer", "Pooling", *(["Normalize"] if config.normalise else [])]
    folders = ["" if not number else f"{number}_{kind}" for number, kind in enumerate(kinds)]
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, path) in enumerate(zip(kinds, folders, strict=True))
    ]
    theirs = {"first": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "last": "lasttoken"}
    if config.pooling not in theirs:
        raise _stands_in_the_way(f"model.pooling = {config.pooling}", "has no such pooling", "model.pooling=mean")
    pooling: dict[str, Any] = {"word_embedding_dimension": config.model_dim}
    pooling |= {f"pooling_mode_{name}": theirs[config.pooling] == name for name in theirs.values()}
    files: dict[str, Any] = {"modules.json": modules, f"1_Pooling/{CONFIG}": pooling}
    files["sentence_bert_config.json"] = {"max_seq_length": config.context, "do_lower_case": False}
    if config.normalise:
        files[f"2_Normalize/{CONFIG}"] = {}
    return Answers("Model", run.schema, {}, files=files)


def _named(names: list[str]) -> dict[str, Any]:
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _stands_in_the_way(setting: str, why: str, fix: str) -> ConfigError:
    return ConfigError(f"{setting}: such a model in a Hugging Face folder {why}. Train one that fits: --set {fix}.")
