"""seqwise words: what is near to what, and how well that agrees with people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import ConfigError
from . import options as shared
from .terminal import note, say


def words(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or file of vectors (word2vec, GloVe).")],
    asked: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="One: the words nearest to it. Several: how similar they are."),
    ] = None,
    analogy: Annotated[
        list[str] | None, typer.Option(help='"man king woman": what is to woman as king is to man. Repeatable.')
    ] = None,
    method: Annotated[
        Literal["add", "multiply"], typer.Option(help="Analogies: 3CosAdd or 3CosMul, which multiplies similarities.")
    ] = "add",
    num: Annotated[int, typer.Option(min=1, help="Number of words to list.")] = 10,
    pairs: Annotated[
        list[str] | None, typer.Option(help="File of word pairs that people rated, or its name. Repeatable.")
    ] = None,
    analogies: Annotated[
        list[str] | None, typer.Option(help="File of analogies with answers, or its name. Repeatable.")
    ] = None,
    wordnet: Annotated[
        Path | None, typer.Option(help="Folder of WordNet's files.", show_default="where systems put it")
    ] = None,
    as_json: shared.AsJson = False,
) -> None:
    """Look at the vectors of words: neighbours, similarity, analogies, and how well they agree with people.

    Word pairs that people rated are rated by one-hot vectors too, and by paths in WordNet where that is at hand.
    """
    if not run.exists():
        raise ConfigError(f"{run}: there is no such run or file of vectors.")
    for one in analogy or []:
        if len(one.split()) != 3:
            raise ConfigError(f'--analogy "{one}": give three words, as in "man king woman".')
    from ..training.word_vectors import load_word_vectors
    from .results import say_results
    from .word_answers import answer_analogies, answer_words, rate_pairs, solve_files

    found = load_word_vectors(run)
    answers = [
        answer_words(found, asked or [], num),
        answer_analogies(found, [one.split() for one in analogy or []], num, method),
        rate_pairs(found, pairs or [], wordnet, note),
        solve_files(found, analogies or [], method),
    ]
    if as_json:
        say_results("words", (answer.facts for some in answers for answer in some))
        return
    lines = [line for some in answers for answer in some for line in answer.lines]
    for line in lines or [
        f"{run}: {len(found):,} words, vectors of {found.vectors.shape[1]} numbers",
        f"next: seqwise words {run} {found.words[len(found) // 100]}",
    ]:
        say(line)
