"""The command line: parse, call the library, show. torch is imported by the commands that compute, inside them."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..checks import check_comparison
from ..errors import ConfigError, SeqwiseError
from ..wording import as_typed
from . import options as shared
from .answer_command import answer
from .ask_command import ask
from .caption_command import caption
from .data_commands import data_app
from .embed_command import embed, search, similarity
from .fill_command import fill
from .format_commands import export, import_
from .layer_commands import probe
from .serve_command import serve
from .terminal import note, say, write
from .word_commands import words

app = typer.Typer(
    name="seqwise",
    help="Every sequence model, from n-grams to Transformers: train it, evaluate it, let it write, on your own data.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")


def main() -> None:
    """Run a command. Exit code 0 done, 1 our fault (traceback) or a failed check, 2 the user's input, 130 Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):  # names of files that are no UTF-8 can be shown, if not as they are
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with as_typed():
            app()
    except SeqwiseError as error:
        write(sys.stderr, f"error: {error}\n")
        sys.exit(2)


def show_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        say(f"seqwise {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text, pairs, a .csv of numbers, a folder, or the name of a data set.", show_default="python-reference"
        ),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Wall-clock budget in minutes.", show_default="10")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.", show_default="runs/DATA-compare")] = None,
    models: Annotated[str | None, typer.Option(help="Families, separated by commas.", show_default="all")] = None,
    start_from: shared.StartFrom = None,
    labels: shared.Labels = None,
    tokenizers: Annotated[
        str | None,
        typer.Option(
            help="Tokenizers, separated by commas: char, bpe, wordpiece or word.", show_default="chosen by the data"
        ),
    ] = None,
    task: shared.Task = None,
    columns: shared.Columns = None,
    season: shared.Season = None,
    valid: shared.Valid = None,
    test: shared.Test = None,
    split_at: shared.SplitAt = None,
    seeds: Annotated[int | None, typer.Option(help="Runs per family.", show_default="1; from an hour on 2")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the first run.")] = 0,
    workers: Annotated[int, typer.Option(help="Workers: trials that run at once and share the cores.")] = 1,
    max_parameters: Annotated[int | None, typer.Option(help="Recommend no model with more parameters.")] = None,
    max_latency_ms: Annotated[float | None, typer.Option(help="Recommend no slower model, per token.")] = None,
    max_megabytes: Annotated[float | None, typer.Option(help="Recommend no model that is larger on disk.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the comparison in --out.")] = False,
    as_json: shared.AsJson = False,
) -> None:
    """Find the model for your data: train all families under one budget, rank them, recommend one.

    With --labels, how well each does with how many labels; with --from, what a start from another run is worth.
    """
    from .preflight import check_models, check_not_empty, check_runs, given_data, label_counts_of

    check_not_empty(models=shared.names_of(models), tokenizers=shared.names_of(tokenizers))
    check_models(shared.names_of(models))
    check_runs(*([start_from] if start_from is not None else []))
    if not resume:
        data, valid, test = given_data(data or [], task=task, columns=shared.names_of(columns), valid=valid, test=test)
    elif out is not None:
        check_comparison(out)
    from .comparing import run_compare

    options: dict[str, Any] = {"minutes": minutes, "seeds": seeds, "task": task, "split": split_at}
    options |= {"models": shared.names_of(models), "tokenizers": shared.names_of(tokenizers), "season": season}
    options |= {"columns": shared.names_of(columns), "start_from": start_from, "label_counts": label_counts_of(labels)}
    options |= {"valid": valid, "test": test, "seed": seed or None, "workers": workers if workers != 1 else None}
    options |= {"max_parameters": max_parameters, "max_latency_ms": max_latency_ms, "max_megabytes": max_megabytes}
    given = {name: value for name, value in options.items() if value is not None}
    run_compare(data or [], given, out=out, should_resume=resume, as_json=as_json)


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="Folder of a comparison.")]) -> None:
    """Write the report of a comparison again."""
    check_comparison(folder)
    from .comparing import rebuild_report

    rebuild_report(folder)


@app.command()
def train(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Text files, pairs, a .csv of numbers, a folder, or a data set (see: seqwise data list)."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Family of the model (see: seqwise models).", show_default="gpt")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.", show_default="runs/DATA-MODEL")] = None,
    minutes: Annotated[float | None, typer.Option(help="Time budget in minutes.", show_default="2")] = None,
    steps: Annotated[int | None, typer.Option(help="Budget in updates of the weights.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Budget in passes over the training part.")] = None,
    task: shared.Task = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Tokenizer: char, word, bpe or wordpiece.", show_default="chosen by the data")
    ] = None,
    columns: shared.Columns = None,
    season: shared.Season = None,
    valid: shared.Valid = None,
    test: shared.Test = None,
    split_at: shared.SplitAt = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of weights, order of the data and dropout.", show_default="0")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Device: cpu, cuda or mps.", show_default="auto")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file of settings.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override, such as model.num_layers=2.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    start_from: shared.StartFrom = None,
    as_json: shared.AsJson = False,
) -> None:
    """Train a model on text, pairs of sequences or columns of numbers."""
    from .preflight import check_not_empty, check_runs, given_data

    check_not_empty(tokenizer=tokenizer, device=device)
    data, valid, test = given_data(
        data or [], model=model, task=task, columns=shared.names_of(columns), valid=valid, test=test
    )
    check_runs(*([out] if resume and out is not None else []), *([start_from] if start_from is not None else []))
    from .training import run_training

    overrides = [*(set_ or []), *([f"training.device={device}"] if device else [])]
    budget = {"minutes": minutes, "steps": steps, "epochs": epochs, "seed": seed}
    options: dict[str, Any] = {"tokenizer": tokenizer, "valid": valid, "test": test, "split": split_at}
    options |= {"task": task, "columns": shared.names_of(columns), "season": season}
    run_training(
        data=data or [],
        model=model,
        out=out,
        should_resume=resume,
        start_from=start_from,
        config_file=config,
        overrides=overrides,
        options={**options, **budget},
        as_json=as_json,
    )


@app.command()
def evaluate(
    runs: Annotated[list[str], typer.Argument(metavar="RUN... [DATA]", help="Folders of runs, then data to score.")],
    split: shared.Split = None,
    view: Annotated[
        str | None, typer.Option(help="Text: windows are disjoint, sliding or carried.", show_default="by family")
    ] = None,
    context: Annotated[int | None, typer.Option(help="Text: tokens in a window.", show_default="the model's")] = None,
    stride: Annotated[int | None, typer.Option(help="Text: tokens by which a sliding window moves.")] = None,
    horizon: shared.Horizon = None,
    season: shared.Season = None,
    method: shared.Method = None,
    beam_width: shared.BeamWidth = None,
    length_penalty: shared.LengthPenalty = None,
    length_form: shared.LengthForm = None,
    search_report: Annotated[
        bool, typer.Option("--search-report", help="Pairs: report what beams of several widths miss, and their BLEU.")
    ] = False,
    precision: shared.Precision = "float32",
    as_json: shared.AsJson = False,
) -> None:
    """Score runs on their test part or on other data, with interval and signature.

    Text: nats, perplexity, bits per character. Numbers: log-likelihood, error and coverage of forecasts beside naive
    ones. Labels: accuracy. Pairs: BLEU, chrF, exact matches.
    """
    from ..data.kinds import check_there
    from ..data.pipes import owned
    from .preflight import check_not_empty, check_runs

    check_not_empty(split=split, view=view, method=method)
    folders = [name for name in runs if (Path(name) / "config.toml").exists()]
    others = [name for name in runs if name not in folders]
    if not folders or len(others) > 1 or (others and runs[-1] != others[0]):
        check_runs((others or runs)[0])  # says what is missing
    if view not in (None, "disjoint", "sliding", "carried"):
        raise ConfigError(f'--view "{view}" is not one of disjoint, sliding, carried.')
    check_there(others)
    from .evaluating import open_runs, report_on_search, score_runs

    trained = open_runs(folders, precision)
    task = next(iter(trained.values())).task.name
    data = owned(others, task)[0] if others else None
    lengths: dict[str, Any] = {"length_penalty": length_penalty, "length_form": length_form}
    if search_report:
        report_on_search(trained, data, lengths, split=split, as_json=as_json)
        return
    options = {"view": view, "context": context, "stride": stride, "horizon": horizon, "season": season}
    options |= {"method": method, "beam_width": beam_width, **lengths}
    score_runs(trained, data, options, split=split, as_json=as_json)


@app.command()
def generate(
    run: shared.RunFolder,
    prompt: Annotated[str, typer.Option(help="Text to continue.")] = "",
    method: Annotated[str, typer.Option(help="How to choose tokens: sample, greedy, beam or exhaustive.")] = "sample",
    max_tokens: Annotated[int, typer.Option(help="Largest number of tokens to add.")] = 300,
    temperature: Annotated[float, typer.Option(help="Temperature of sampling: below 1 safer, above 1 bolder.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Sample from the k most probable tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample from the tokens that reach p together.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same text.")] = 0,
    num: Annotated[int, typer.Option(help="Number of samples, or of the best results of a search.")] = 1,
    beam_width: Annotated[int, typer.Option(help="Number of hypotheses that beam search keeps.")] = 4,
    length_penalty: Annotated[float, typer.Option(help="Exponent of the length that scores are divided by.")] = 0.0,
    one_line: Annotated[bool, typer.Option("--one-line", help="Stop at the end of the line.")] = False,
    out: Annotated[Path | None, typer.Option(help="Pictures: folder to write them into, with a page.")] = None,
    precision: shared.Precision = "float32",
    as_json: shared.AsJson = False,
) -> None:
    """Generate text with a model, or pictures with one that paints."""
    from .preflight import check_runs

    check_runs(run)
    from ..api import TrainedRun
    from ..config import build
    from ..decoding import DecodingConfig
    from .painting import write_pictures
    from .writing import write_texts

    trained = TrainedRun(run, precision=precision)
    if write_pictures(trained, out, prompt=prompt, num=num, seed=seed, as_json=as_json):
        return
    settings: dict[str, Any] = {
        "method": method,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "num_results": num,
        "beam_width": beam_width,
        "length_penalty": length_penalty,
        "stop": trained.tokenizer.boundary if one_line else None,
    }
    config = build(DecodingConfig, settings, section="decoding", where="generate")
    if trained.about_precision:
        note(f"note: {trained.about_precision}")
    for sentence in trained.about_prompt(prompt):
        note(f"note: {sentence}")
    write_texts(trained, prompt, config, as_json=as_json)


@app.command()
def inspect(
    runs: Annotated[list[str], typer.Argument(help="Folder of a run, or of two to see side by side.")],
    text: Annotated[
        list[str] | None,
        typer.Option(
            help="Text to read, or the question or caption of a picture; two that are labelled together with a TAB "
            "between; - for standard input; twice to see two.",
            show_default="held-out text of the run",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Pairs: target to read. Labels, tags: what should be answered.", show_default="the model's own"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("inspect.html"),
    max_tokens: Annotated[int, typer.Option(help="Largest number of tokens to show.")] = 500,
    beam_width: Annotated[
        int | None,
        typer.Option(help="Number of hypotheses of the search that is drawn.", show_default="as the run; text: 4"),
    ] = None,
    search_tokens: Annotated[int, typer.Option(help="Number of tokens that the search adds to a text.")] = 12,
    max_lags: Annotated[int, typer.Option(help="How many steps back gradients and influence are followed.")] = 100,
    pairs: Annotated[str | None, typer.Option(help="File of minimal pairs: beginning TAB good TAB bad.")] = None,
    image: Annotated[
        str | None, typer.Option(help="Picture to look at, or a folder with the frames of a clip.")
    ] = None,
    row: Annotated[int, typer.Option(help="Row of the held-out part to read or look at, from 0.")] = 0,
    phrase: Annotated[
        str | None,
        typer.Option(
            help="Labels: phrase to put at many places of the text.", show_default="the word that moves the answer most"
        ),
    ] = None,
    analogy: Annotated[list[str] | None, typer.Option(help='Three words of an analogy: "man king woman".')] = None,
    word: Annotated[str | None, typer.Option(help="Two texts: word to compare in both, layer by layer.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the tokens that are replaced.")] = 0,
    as_json: shared.AsJson = False,
) -> None:
    """Look inside a model: surprise, gates, attention, gradients, memory, search, embeddings, on one page."""
    from ..data.kinds import check_there
    from ..data.pipes import owned
    from .preflight import check_runs

    check_runs(*runs)
    check_there([pairs] if pairs else [])
    pairs = pairs and owned([pairs])[0]
    from ..inspection.options import InspectOptions
    from .inspecting import inspect_runs

    sizes: dict[str, Any] = {"max_tokens": max_tokens, "beam_width": beam_width, "search_tokens": search_tokens}
    asked: dict[str, Any] = {"max_lags": max_lags, "pairs": pairs, "row": row, "image": image, "seed": seed}
    options = InspectOptions(**sizes, **asked, phrase=phrase, word=word, analogies=tuple(analogy or ()))
    inspect_runs(runs, text, target=target, out=out, options=options, as_json=as_json)


@app.command()
def predict(
    run: shared.RunFolder,
    data: shared.RunData = None,
    split: shared.Split = None,
    horizon: shared.Horizon = None,
    seed: Annotated[int, typer.Option(help="Random seed of sampled forecasts and targets.")] = 0,
    method: shared.Method = None,
    beam_width: shared.BeamWidth = None,
    length_penalty: shared.LengthPenalty = None,
    length_form: shared.LengthForm = None,
    min_tokens: Annotated[int | None, typer.Option(help="Pairs: smallest number of tokens of an answer.")] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Pairs: largest number of tokens of an answer.", show_default="by the length of the source"),
    ] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(help="Pairs: penalty of repetition; above 1 repeats less.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Pairs: temperature of --method sample.")] = None,
    n_best: Annotated[int | None, typer.Option(help="Pairs: number of answers for each line.")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Pairs: print the score before each answer.")] = False,
    alignments: Annotated[bool, typer.Option("--alignments", help="Pairs: print which words belong together.")] = False,
    precision: shared.Precision = "float32",
    as_json: shared.AsJson = False,
) -> None:
    """Predict with a model: translate lines, forecast a series, label sequences, tag a text.

    Pairs: an answer for each line of a file or of standard input, in order, however many there are.
    """
    from ..data.kinds import check_there
    from .preflight import check_runs

    check_runs(run)
    check_there([data] if data else [])
    from ..api import TrainedRun

    trained = TrainedRun(run, precision=precision)
    if trained.about_precision:
        note(f"note: {trained.about_precision}")
    search = {"method": method, "beam_width": beam_width, "length_penalty": length_penalty, "length_form": length_form}
    search |= {"repetition_penalty": repetition_penalty, "temperature": temperature, "num_results": n_best}
    search |= {"min_tokens": min_tokens, "max_tokens": max_tokens}
    from .predicting import answer_lines, answer_part, source_lines

    if trained.goal.reads_lines:
        lines = source_lines(trained, data) if split is None else trained.sources(data, split=split)
        shown = {"with_scores": scores, "with_alignments": alignments, "as_json": as_json}
        answer_lines(trained, lines, {**search, "seed": seed}, **shown)
        return
    asked = [name for name, value in search.items() if value is not None]
    asked += [name for name, value in {"scores": scores, "alignments": alignments}.items() if value]
    if asked:
        raise ConfigError(f"--{asked[0].replace('_', '-')} goes with pairs; {run} was trained on {trained.task.name}.")
    answer_part(trained, data, split, {"horizon": horizon, "seed": seed}, as_json=as_json)


@app.command()
def check(
    run: shared.RunFolder,
    data: shared.RunData = None,
    split: shared.Split = None,
    as_json: shared.AsJson = False,
) -> None:
    """Check the invariances that every model should keep on your data; exit code 1 where one is broken.

    Padding, the other rows of a batch and what comes later change no log-probability; micro-batches give the gradient
    of the whole batch, steps what the parallel pass gives; saving loses nothing; probabilities sum to one.
    """
    from ..data.kinds import check_there
    from .preflight import check_not_empty, check_runs

    check_not_empty(split=split)
    check_runs(run)
    check_there([data] if data else [])
    from .verifying import verify_run

    if not verify_run(run, data, split=split, as_json=as_json):
        raise typer.Exit(1)


app.command()(probe)
app.command()(answer)
app.command()(caption)
app.command()(ask)
app.command()(fill)
app.command()(words)
app.command()(embed)
app.command()(search)
app.command()(similarity)
app.command()(serve)


@app.command()
def reproduce(
    recipe: Annotated[str | None, typer.Argument(help="Name or file of a recipe.", show_default="list them")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.", show_default="runs/RECIPE")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a shortened form, to see that it works.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    as_json: shared.AsJson = False,
) -> None:
    """Train a recipe, score it, and say whether it reached the published figure."""
    from .reproducing import list_recipes, run_recipe

    if recipe is None:
        list_recipes(as_json=as_json)
        return
    run_recipe(recipe, out=out, quick=quick, should_resume=resume, as_json=as_json)


app.command()(export)
app.command("import")(import_)


@app.command()
def models(
    name: Annotated[str | None, typer.Argument(help="Family, to see its settings.")] = None,
    as_json: shared.AsJson = False,
) -> None:
    """List the families, or the settings of one."""
    from .results import say_results
    from .tables import family_facts, family_settings, family_table

    if as_json:
        say_results("models", family_facts(name))
        return
    for line in family_table() if name is None else family_settings(name):
        say(line)


@app.command()
def doctor(as_json: shared.AsJson = False) -> None:
    """Show what this machine has, and whether seqwise can work on it."""
    from .doctor import examine

    found = examine()
    if as_json:
        from .results import say_results

        say_results("doctor", [found])
        return
    for name, value in found.items():
        say(f"{name:<18} {value}")
