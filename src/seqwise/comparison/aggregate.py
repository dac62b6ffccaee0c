"""Aggregates what the jobs of a comparison wrote into its result, whole or as far as it has come."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..config import to_json
from ..evaluation.segments import Metric, Segments, joined
from ..tasks import task_of
from .baselines import Baseline
from .label_curves import label_curves
from .label_table import label_sentences
from .page import write_page
from .plan import Settings, Trial, entry_name, timed_name
from .results import Comparison, Entry, Figure, LabelCurves, Match, Point, of_answers, with_new_names
from .table import write_markdown
from .verdict import find_gaps, mark_candidate, mark_front, mark_limits, rank, recommend
from .words import words_for
from .workspace import Workspace

MAX_SENTENCES = 4
UNKNOWN = "their letters are paid for in bits per character, and not in the perplexity"
LATE = "ended before its last step: the machine was slower than when its steps were timed"


def aggregate(workspace: Workspace, running: Collection[str] = ()) -> Comparison:
    """`running`: trials that are at work now."""
    trials, is_complete = workspace.trials, workspace.is_complete
    prepared = workspace.read_if_there("prepared.json") or {
        "data": {"name": ", ".join(workspace.settings.source)},
        "scored": "test",
    }
    settings = replace(workspace.settings, label_counts=prepared.get("label_counts", workspace.settings.label_counts))
    segments: dict[str, Segments] = {}
    entries: list[Entry] = []
    metric, plan = _metric(workspace, trials), workspace.read_if_there("plan.json") or {}
    validated, baselines = _validated(workspace, trials), _baselines(workspace)
    enough = plan.get("minutes_for_all", settings.minutes)
    for name in dict.fromkeys(trial.entry for trial in trials):
        seeds = [trial for trial in trials if trial.entry == name]
        entry, found = _entry(workspace, settings, seeds, prepared.get("tokenizers", {}), running, metric)
        entry = mark_candidate(entry, validated.get(name), baselines.get(seeds[0].tokenizer), metric, settings.minutes)
        entries.append(mark_limits(entry, settings.limits))
        if found is not None:
            segments[name] = found
    entries += _left_out(settings, plan, {entry.name for entry in entries})
    curves = _label_curves(settings, entries, segments, metric, prepared.get("train_rows", 0))
    entries = mark_front([entry for entry in entries if entry.labels == settings.label_counts[-1]], metric)
    winner, sentences = None, list[str]()
    if segments or is_complete:
        winner, sentences = recommend(entries, segments, metric, settings.source, validated, enough)
    sentences = [*sentences, *_why_finals(workspace, is_complete)][:MAX_SENTENCES]
    ladder, final = (rank([e for e in entries if e.stage == stage], metric) for stage in ("ladder", "final"))
    held_out = prepared.get("held_out_match")
    return Comparison(
        data=prepared["data"],
        task=settings.task,
        kind=prepared.get("kind", ""),
        metric=metric,
        scored=prepared["scored"],
        minutes=settings.minutes,
        seeds=settings.seeds,
        workers=settings.workers,
        threads=plan.get("threads", settings.threads),
        command=repeat_command(settings, workspace.path),
        seconds=_seconds(workspace, settings, trials),
        machine=prepared.get("machine", {}),
        limits=settings.limits.to_dict(),
        ladder=ladder,
        final=final,
        gaps=find_gaps(ladder, segments),
        baseline=_shown_baseline(list(baselines.values()), metric),
        winner=winner,
        recommendation=[*sentences, *(label_sentences(curves, words_for(prepared.get("kind", ""))) if curves else [])],
        label_curves=curves,
        passage=prepared.get("passage", ""),
        examples=[(row, text, answer) for row, text, answer in prepared.get("examples", ())],
        tagged=[(row, words, tags) for row, words, tags in prepared.get("tagged", ())],
        passage_values=[value if math.isfinite(value) else None for value in prepared.get("passage_values", [])],
        held_out_match=Match(**held_out) if held_out else None,
        is_complete=is_complete,
        seqwise=__version__,
    )


def write_results(workspace: Workspace, running: Collection[str] = ()) -> Comparison:
    """compare.json, compare.md and report.html, each whole or as it was."""
    found = aggregate(workspace, running)
    workspace.write_text("compare.json", to_json(found.to_dict()))
    workspace.write_text("compare.md", write_markdown(found))
    workspace.write_text("report.html", write_page(found))
    return found


def repeat_command(settings: Settings, out: Path) -> str:
    words = ["seqwise", "compare", *settings.source, "--minutes", f"{settings.minutes:g}"]
    words += ["--models", ",".join(_asked_models(settings)), "--seeds", str(settings.seeds)]
    words += ["--from", settings.start.path] if settings.start else []
    labels = ",".join("all" if labels is None else str(labels) for labels in settings.label_counts)
    words += ["--labels", labels] if settings.is_by_labels else []
    words += ["--workers", str(settings.workers)] if settings.workers > 1 else []
    words += ["--tokenizers", ",".join(settings.tokenizers)] if settings.tokenizers != ["auto"] else []
    for option, value in (("--valid", settings.valid), ("--test", settings.test), ("--split-at", settings.split)):
        words += [option, value] if value else []
    words += ["--task", settings.task] if settings.task != task_of(settings.source) else []
    words += ["--columns", ",".join(settings.columns)] if settings.columns else []
    words += ["--season", str(settings.season)] if settings.season is not None else []
    words += ["--seed", str(settings.seed)] if settings.seed else []
    for option, limit in (
        ("--max-parameters", settings.limits.parameters),
        ("--max-latency-ms", settings.limits.latency_ms),
        ("--max-megabytes", settings.limits.megabytes),
    ):
        words += [option, str(limit)] if limit is not None else []
    return shlex.join(words)


def _asked_models(settings: Settings) -> list[str]:
    """Without who starts from a run, where its family takes part anyway."""
    found = [(name, settings.entrant(name)) for name in settings.models]
    scratch = {entrant.family for _, entrant in found if entrant.start is None}
    return [name for name, entrant in found if entrant.start is None or entrant.family not in scratch]


def _entry(
    workspace: Workspace,
    settings: Settings,
    seeds: list[Trial],
    kinds: dict[str, str],
    running: Collection[str],
    metric: Metric,
) -> tuple[Entry, Segments | None]:
    """The seeds of one entry together; those that failed are named in its notes where others did not."""
    first = seeds[0]
    start = settings.entrant(first.entrant).start
    made = Entry(
        first.entry,
        first.family,
        kinds.get(first.tokenizer, ""),
        first.stage,
        minutes=sum(trial.minutes for trial in seeds),
        start_from=start.path if start else "",
        labels=first.labels,
    )
    trained = {trial.name: found for trial in seeds if (found := workspace.found(trial.name, "trained"))}
    failed = {trial.name: found["reason"] for trial in seeds if (found := workspace.found(trial.name, "failed"))}
    if not trained:
        if failed:
            return replace(made, status="failed", reason=next(iter(failed.values()))), None
        if any(trial.name in running for trial in seeds):
            return replace(made, status="running"), None
        has_begun = any((workspace.run(trial.name) / "config.toml").exists() for trial in seeds)
        return replace(made, status="stopped" if has_begun else "waiting"), None
    order = sorted(trained, key=lambda name: float(trained[name]["valid"]))
    made = replace(made, notes=[f"{name}: {reason}" for name, reason in failed.items()])
    made = _with_training(made, trained, order, metric)
    scored = [found for name in order if (found := workspace.found(name, "scored"))]
    if not scored:
        return replace(made, status="failed", reason=next(iter(failed.values()))) if failed else made, None
    return _with_scores(made, scored, metric)


def _with_training(made: Entry, trained: dict[str, Any], order: list[str], metric: Metric) -> Entry:
    """What training found: of all seeds together, and of the first in `order`, the best by validation."""
    best, notes = trained[order[0]], list(made.notes)
    if best["train_tokens"]:
        notes.append(f"learned from the first {best['train_tokens']:,} tokens: more would not have fitted its share")
    notes += [LATE] if any(found["is_late"] for found in trained.values()) else []
    return replace(
        made,
        status="done",
        notes=notes,
        runs=[f"runs/{name}" for name in order],
        settings=best["settings"],
        valid=metric.shown(float(np.mean([found["valid"] for found in trained.values()]))),
        training_seconds=sum(found["seconds"] for found in trained.values()),
        training_tokens_per_second=best["tokens_per_second"],
        peak_bytes=max(found.get("peak_bytes", 0) for found in trained.values()),
        updates=best.get("updates"),
        curve=[Point(**point) for point in best["curve"] if math.isfinite(point["value"])],
    )


def _with_scores(made: Entry, scored: list[dict[str, Any]], metric: Metric) -> tuple[Entry, Segments]:
    """What was measured, the best seed first: its test figure is that of all of them, the rest its own."""
    segments = [Segments.from_dict(found["segments"]) for found in scored]
    together, shown, notes = joined(segments), with_new_names(scored[0]), list(made.notes)
    if shown.get("not_measured"):
        notes.append(f"no time was left to measure: {', '.join(shown['not_measured'])}")
    match = shown.get("memorization")
    unknown = shown["more"].get("unknown_share", 0.0)
    if unknown:
        notes.append(f"{100 * unknown:.2f} % of its tokens are unknown words: {UNKNOWN}")
    made = replace(
        made,
        notes=notes,
        test=Figure(metric.shown(together.value), *sorted(map(metric.shown, together.interval))),
        by_seed=[metric.shown(one.value) for one in segments],
        more=shown["more"],
        parameters=shown["parameters"],
        bytes_on_disk=shown["bytes_on_disk"],
        generation_tokens_per_second=shown.get("generation_tokens_per_second"),
        ms_per_token=shown.get("ms_per_token"),
        by_position=[(place, value) for place, value in shown.get("by_position", [])],
        samples=shown.get("samples", []),
        memorization=Match(**match) if match else None,
        surprise=[(piece, bits) for piece, bits in shown.get("surprise", [])],
        **of_answers(shown),
        forecast=[(middle, low, high) for middle, low, high in shown.get("forecast", [])],
    )
    return made, together


def _left_out(settings: Settings, plan: dict[str, Any], trained: Collection[str]) -> list[Entry]:
    """Those for which a share of the time was too short, as entries; not who has been `trained` with some seeds."""
    reasons, made = plan.get("left_out", {}), []
    for name, tokenizer, labels in settings.contenders:
        entrant, entry = settings.entrant(name), entry_name(settings, name, tokenizer, labels=labels)
        if entry in reasons and entry not in trained:
            left_out = Entry(entry, entrant.family, "", "ladder", 0.0, "left out", reasons[entry], labels=labels)
            made.append(replace(left_out, start_from=entrant.start.path if entrant.start else ""))
    return made


def _label_curves(
    settings: Settings, entries: Sequence[Entry], segments: dict[str, Segments], metric: Metric, num_rows: int
) -> LabelCurves | None:
    """Where numbers of labels were asked for."""
    if not settings.is_by_labels or not num_rows:
        return None
    by_name, curves = {entry.name: entry for entry in entries}, {}
    for name, tokenizer, labels in settings.contenders:
        if entry := by_name.get(entry_name(settings, name, tokenizer, labels=labels)):
            curves[entry_name(settings, name, tokenizer), labels or num_rows] = entry
    return label_curves(curves, segments, metric, [labels or num_rows for labels in settings.label_counts], num_rows)


def _baselines(workspace: Workspace) -> dict[str, Baseline]:
    """By tokenizer."""
    found = workspace.read_if_there("baseline.json") or {}
    return {name: Baseline.from_dict(one) for name, one in found.items()}


def _shown_baseline(baselines: Sequence[Baseline], metric: Metric) -> dict[str, Any]:
    """The best of them, and the best simple model, where there is one."""
    best = min(baselines, key=lambda baseline: baseline.segments.value, default=None)
    if best is None:
        return {}
    simple = _shown_baseline([one.simple for one in baselines if one.simple is not None], metric)
    return {"name": best.name, "value": metric.shown(best.segments.value), **({"simple": simple} if simple else {})}


def _validated(workspace: Workspace, trials: list[Trial]) -> dict[str, Segments]:
    """Segments of the validation part by entry, its seeds together."""
    by_entry: dict[str, list[Segments]] = {}
    for trial in trials:
        found = workspace.found(trial.name, "trained")
        if found:
            by_entry.setdefault(trial.entry, []).append(Segments.from_dict(found["validated"]))
    return {name: joined(seeds) for name, seeds in by_entry.items()}


def _metric(workspace: Workspace, trials: list[Trial]) -> Metric:
    for trial in trials:
        for stage in ("scored", "trained"):
            if found := workspace.found(trial.name, stage):
                return Metric(**found["metric"])
    return Metric("bits per character", "bits/char")


def _seconds(workspace: Workspace, settings: Settings, trials: list[Trial]) -> dict[str, float]:
    """Where the wall clock went; of processes side by side each counts its share."""
    prepared = workspace.read_if_there("prepared.json") or {}
    trained = [found for trial in trials if (found := workspace.found(trial.name, "trained"))]
    scored = [found for trial in trials if (found := workspace.found(trial.name, "scored"))]
    workers = settings.workers
    timed = {timed_name(settings, contender) for contender in settings.contenders}
    spent = {
        "preparing": prepared.get("seconds", 0.0),
        "timing": sum(workspace.timing(name).took for name in timed) / workers,
        "training": sum(found["seconds"] for found in trained) / workers,
        "scoring": sum(found["scoring_seconds"] for found in scored) / workers,
        "measuring": sum(found["measuring_seconds"] for found in scored) / workers,
    }
    return {**spent, "rest": max(0.0, workspace.clock - sum(spent.values()))}


def _why_finals(workspace: Workspace, is_complete: bool) -> list[str]:
    """Only where no finalist was trained does the reader need to know why."""
    plan = workspace.read_if_there("plan.json")
    if not is_complete or plan is None or any(trial["stage"] == "final" for trial in plan["trials"]):
        return []
    why = plan["why"]
    return [why[:1].upper() + why[1:] + "."] if why else []
