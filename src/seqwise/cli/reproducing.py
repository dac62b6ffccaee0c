"""seqwise reproduce: train a recipe, score it once, and compare with the figure it names."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import typer

from ..api import TrainedRun
from ..interop.hf import import_hf
from ..training.preparing import resume
from ..training.recipes import RecipeFile, all_recipes, find_recipe, read_recipe
from ..wording import plural
from .progress import display
from .results import say_results
from .tables import columns
from .terminal import note, say
from .training import ctrl_c


def list_recipes(*, as_json: bool) -> None:
    recipes = {name: read_recipe(path).recipe for name, path in sorted(all_recipes().items())}
    if as_json:
        say_results("reproduce", ({"recipe": name, **asdict(recipe)} for name, recipe in recipes.items()))
        return
    rows = [["recipe", "what", "figure", "minutes"]]
    for name, recipe in recipes.items():
        sign = "<=" if recipe.better == "lower" else ">="
        rows.append([name, recipe.title, f"{recipe.metric} {sign} {recipe.published:g}", f"{recipe.minutes:g}"])
    for line in columns(rows):
        say(line)


def run_recipe(name: str, *, out: Path | None, quick: bool, should_resume: bool, as_json: bool) -> None:
    file = read_recipe(find_recipe(name))
    recipe = file.recipe
    out = out or Path("runs") / (f"{file.name}-quick" if quick else file.name)
    note(f"{recipe.title}: {recipe.metric} of {recipe.published:g} ({recipe.source})")
    if quick:
        note(f"shortened: {', '.join(recipe.quick)}; this form shows that the recipe runs, not what it reaches")
    else:
        note(f"about {recipe.minutes:g} {plural(recipe.minutes, 'minute')} on two cores")
    began = time.perf_counter()
    quick = _train(name, file, out, quick=quick, should_resume=should_resume)
    with display() as shown:
        options = file.evaluate_options()
        score = TrainedRun(out).evaluate(split=recipe.split, on_progress=shown.prepare, **options)
    scores, minutes = score.to_dict(), (time.perf_counter() - began) / 60
    value = scores[recipe.metric]
    reached = None if quick else recipe.reached(value)
    found = {
        "recipe": file.name,
        "quick": quick,
        "metric": recipe.metric,
        "value": value,
        "published": recipe.published,
        "reached": reached,
        "minutes": round(minutes, 2),
        "split": recipe.split,
        "signature": scores["signature"],
        "source": recipe.source,
        "run": str(out),
        "score": scores,
    }
    if as_json:
        say_results("reproduce", [found])
        return
    say(f"{recipe.metric} on {recipe.split}: {value:.4f}; to reach: {recipe.published:g} ({recipe.signature})")
    say(f"signature: {scores['signature']}; {minutes:.1f} minutes")
    for what, found_of_it in score.rows():  # a recipe compares one number of many
        if what != "signature":
            say(f"{what}: {found_of_it}")
    say("shortened form: no verdict" if quick else "reached" if reached else "not reached")


def _train(name: str, file: RecipeFile, out: Path, *, quick: bool, should_resume: bool = False) -> bool:
    """Train a recipe, before it those that come first and are not there yet; whether it is the shortened form."""
    for first in [] if should_resume else file.first:
        folder = file.folder_of(first, out, quick=quick)
        if (folder / "card.md").exists():
            note(f"{first} comes first, and is there: {folder}")
        else:
            note(f"{first} comes first:")
            _train(first, read_recipe(find_recipe(first)), folder, quick=quick, should_resume=folder.exists())
    if file.recipe.imported and not should_resume:
        _import(file.recipe.imported, file.imported_folder(out))
    with display() as shown:
        if should_resume:
            session = resume(out, tell=shown.tell, on_progress=shown.prepare)
            quick = quick or file.is_quick(session.run)
        else:
            session = file.prepare(out, quick=quick, tell=shown.tell, on_progress=shown.prepare)
        with ctrl_c() as wants_stop:
            session.train(shown.report, wants_stop=wants_stop, tell=shown.tell)
    if session.is_interrupted:
        note(f"stopped; everything is saved. Go on with: seqwise reproduce {name} --resume --out {out}")
        raise typer.Exit(130)
    return quick


def _import(name: str, folder: Path) -> None:
    """A model of others, where it is not there yet."""
    if folder.exists():
        note(f"{name} comes first, and is there: {folder}")
        return
    note(f"{name} comes first:")
    import_hf(Path(name), folder, tell=note)
