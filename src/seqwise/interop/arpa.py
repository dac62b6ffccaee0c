r"""ARPA files: n-gram models as text, as SRILM, KenLM and many recognisers and translators read and write them.

    \data\
    ngram 1=4                                       how many grams of each length follow
    ngram 2=2

    \1-grams:
    -0.7781513	<unk>                               log10 p, the gram, and log10 backoff where it has one
    -99	<s>	-0.30103
    -0.4771213	</s>
    -0.4771213	cat	-0.2218487

    \2-grams:
    -0.1760913	<s> cat
    -0.1249387	cat </s>

    \end\

A sentence is a line of text. Our boundary token is both of its marks: <s> as the first of a gram, since a line begins
where another ended, and </s> as the last. Of a model with across_lines = true, the grams that reach over the end of a
line are left out, as no sentence has them: what is written is exactly this model, reading each line by itself. A
probability or backoff of zero is written as -99, and read from it.

Words stand as they are. In a model of characters the space is written ▁, any other white space, control character or ▁
itself as <U+0009>, and the digits that spell rare characters as <0> to <f>; from these sixteen `read_arpa` knows that
the file holds characters.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch

from ..data.batch import next_token_batch
from ..data.files import read_text, writing
from ..data.schema import Schema, TokenSpec, text_schema
from ..errors import ConfigError, DataError
from ..models.ngram import Level, Ngram, NgramConfig
from ..text import UNKNOWN_WORD, Tokenizer
from ..text.characters import NUM_DIGITS, CharTokenizer
from ..text.words import WordTokenizer

BEGIN, END, SPACE = "<s>", "</s>", "▁"
ZERO = -99.0  # log10 of a probability of zero
MISSING_UNKNOWN = -100.0  # log10 p of <unk> in a file that has none, as KenLM has it
DIGITS = [f"<{digit:x}>" for digit in range(NUM_DIGITS)]
CODE_POINT = re.compile(r"<U\+([0-9A-F]{4,6})>")
COUNT = re.compile(r"ngram\s+(\d+)\s*=\s*(\d+)\s*")
ROWS_AT_ONCE = 1 << 16


# -- writing -------------------------------------------------------------------------------------------------------


def arpa_pieces(tokenizer: Tokenizer) -> list[str]:
    """How each token is written in an ARPA file, by id; the boundary as </s>.

    " ".join(pieces[token] for token in tokenizer.encode(line)) is the line as other programs want it.
    """
    if isinstance(tokenizer, CharTokenizer):
        pieces = [*DIGITS, *map(_write_character, tokenizer.characters)]
    elif isinstance(tokenizer, WordTokenizer):
        pieces = list(tokenizer.pieces)
        for piece in tokenizer.words:
            if piece in (BEGIN, END, "") or not {"\0", *" \t\n\r"}.isdisjoint(piece):
                raise DataError(
                    f"the word {piece!r} cannot stand in an ARPA file, where {BEGIN} and {END} mark sentences and "
                    "blanks separate words. Take it out of the training text."
                )
    else:
        raise ConfigError(
            f'an ARPA file holds words or characters, and this model has the tokenizer "{tokenizer.kind}". '
            "Train with --tokenizer word or --tokenizer char."
        )
    pieces[tokenizer.boundary] = END
    return pieces


def _write_character(character: str) -> str:
    if character == " ":
        return SPACE
    code = ord(character)
    is_plain = character.isprintable() and not character.isspace() and character != SPACE
    return character if is_plain else f"<U+{code:04X}>"


def _read_character(piece: str) -> str:
    """The character that a piece stands for, or an empty string."""
    if piece == SPACE:
        return " "
    if found := CODE_POINT.fullmatch(piece):
        code = int(found[1], 16)
        return chr(code) if code < 0x110000 else ""
    return piece if len(piece) == 1 else ""


def write_arpa(model: Ngram, tokenizer: Tokenizer, path: str | Path) -> None:
    """Write a model and the words of its tokenizer; with gzip where the name ends in .gz. The file appears whole."""
    path = Path(path)
    pieces = np.array(arpa_pieces(tokenizer), dtype=object)
    with writing(path) as file:
        _write_levels(model, pieces, file)


def _write_levels(model: Ngram, pieces: np.ndarray, file: IO[bytes]) -> None:
    sizes = [len(rows) for _, rows, *_ in _grams(model)]
    sizes[0] += 1  # the boundary stands twice
    lines = ["\\data\\", *(f"ngram {k}={size}" for k, size in enumerate(sizes, start=1)), ""]
    file.write("\n".join([*lines, ""]).encode())
    for k, rows, log_prob, log_backoff, is_context in _grams(model):
        file.write(f"\\{k}-grams:\n".encode())
        for start in range(0, len(rows), ROWS_AT_ONCE):
            here = slice(start, start + ROWS_AT_ONCE)
            words = pieces[rows[here]]  # (rows, k)
            if k > 1:
                words[rows[here, 0] == model.boundary, 0] = BEGIN
            probs, backoffs = _log10(np.minimum(log_prob[here], 0.0)), _log10(log_backoff[here])
            has_backoff = is_context[here] | (backoffs != 0)
            lines = []
            for gram, p, b, has in zip(words.tolist(), probs, backoffs, has_backoff, strict=True):
                if k == 1 and gram[0] == END:  # it is predicted as </s>, and a context as <s>
                    lines += [f"{ZERO:g}\t{BEGIN}\t{b:.9g}", f"{p:.9g}\t{END}"]
                elif has:
                    lines.append(f"{p:.9g}\t{' '.join(gram)}\t{b:.9g}")
                else:
                    lines.append(f"{p:.9g}\t{' '.join(gram)}")
            file.write("\n".join([*lines, ""]).encode())
        file.write(b"\n")
    file.write(b"\\end\\\n")


def _grams(model: Ngram) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """For each length k: tokens of the grams within a line (N_k, k), log_prob, log_backoff, and whether longer ones
    begin with it."""
    rows, parent = np.empty((1, 0), dtype=np.int32), np.zeros(model.vocab_size, dtype=np.int64)
    for k, level in enumerate(model.levels, start=1):
        rows = np.concatenate([rows[parent], level.words[:, None]], axis=1)
        num_children = np.diff(level.first)
        inside = ~(rows[:, 1:-1] == model.boundary).any(axis=1)
        ends = inside & (rows[:, -1] == model.boundary) & (k > 1)  # and begins nothing
        log_backoff = np.where(ends, 0.0, level.log_backoff)
        yield k, rows[inside], level.log_prob[inside], log_backoff[inside], (num_children > 0)[inside] & ~ends[inside]
        parent = np.repeat(np.arange(len(level.words)), num_children)


def _log10(log: np.ndarray) -> np.ndarray:
    return np.where(np.isneginf(log), ZERO, log / math.log(10))


# -- reading -------------------------------------------------------------------------------------------------------


def read_arpa(path: str | Path) -> tuple[Ngram, WordTokenizer | CharTokenizer]:
    """A model from an ARPA file (.gz too), and the tokenizer of its words, or of its characters where we wrote them.

    Words that the file does not know are <unk>; where it has none, their log10 probability is -100, as in KenLM.
    Grams that no sentence can have (a <s> behind the first place, a </s> before the last) are passed over.
    """
    lines = _Lines(Path(path))
    sizes = _read_header(lines)
    number_of: dict[str, int] = {}  # of each word, in the order of the file
    sections = [_read_section(lines, k, size, number_of) for k, size in enumerate(sizes, start=1)]
    if lines.line != "\\end\\":
        raise lines.error(f'"{lines.line}" stands where \\end\\ should.')
    tokenizer, token_of = _tokenizer(list(number_of), lines)
    for section in sections:
        section.keep_possible(token_of, tokenizer)
    schema = text_schema(tokenizer)
    config = NgramConfig(order=len(sections), across_lines=False)
    return _build(config, schema, sections, lines), tokenizer


class _Lines:
    """The lines of a file, one at a time, without blank ones; the mistakes in them are told by number."""

    def __init__(self, path: Path):
        self.path, self.number, self.line = path, 0, ""
        self._blocks = read_text(path)
        self._waiting: Iterator[str] = iter(())
        self._tail = ""  # of the last block, whose line goes on in the next

    def next(self, ended: str) -> str:
        """The next line; it is also kept in `line`. `ended` is what it means where there is none."""
        while True:
            for line in self._waiting:
                self.number += 1
                if line and not line.isspace():
                    self.line = line.strip(" \t")
                    return self.line
            block = next(self._blocks, "")
            if not block and not self._tail:
                raise self.error(ended)
            *whole, self._tail = (self._tail + (block or "\n")).split("\n")
            self._waiting = iter(whole)

    def error(self, found: str, number: int | None = None) -> DataError:
        return DataError(f"{self.path}: line {number or self.number}: {found}")


@dataclass
class _Section:
    """All grams of one length k, in the order of the file."""

    rows: np.ndarray  # (N_k, k) words by number, then tokens
    log_prob: np.ndarray  # (N_k,) nats
    log_backoff: np.ndarray  # (N_k,) nats
    lines: np.ndarray  # (N_k,) where they stand

    def keep_possible(self, token_of: np.ndarray, tokenizer: Tokenizer) -> None:
        """Words become tokens; grams that no sentence can have are dropped."""
        rows, begin = token_of[self.rows], tokenizer.vocab_size
        if rows.shape[1] > 1:
            kept = (rows[:, 1:] != begin).all(axis=1) & (rows[:, :-1] != tokenizer.boundary).all(axis=1)
            rows, self.lines = rows[kept], self.lines[kept]
            self.log_prob, self.log_backoff = self.log_prob[kept], self.log_backoff[kept]
            rows[rows == begin] = tokenizer.boundary
        self.rows = rows


def _read_header(lines: _Lines) -> list[int]:
    """How many grams of each length follow. What stands before \\data\\ means nothing."""
    while lines.next("the file ends here without a line \\data\\. Is it an ARPA file?") != "\\data\\":
        pass
    sizes: list[int] = []
    while not (line := lines.next("the file ends in its header. It is cut short: get it again.")).startswith("\\"):
        found = COUNT.fullmatch(line)
        if not found or int(found[1]) != len(sizes) + 1:
            raise lines.error(f'"{line}" stands where "ngram {len(sizes) + 1}=" and a count should.')
        sizes.append(int(found[2]))
    if not sizes:
        raise lines.error('the header names no grams: "ngram 1=" and a count should stand before.')
    return sizes


def _read_section(lines: _Lines, k: int, size: int, number_of: dict[str, int]) -> _Section:
    """The k-grams. The last line read is the heading of the section; at the end it is that of the next one."""
    if lines.line != f"\\{k}-grams:":
        raise lines.error(f'"{lines.line}" stands where \\{k}-grams: should.')
    words, log10_prob, log10_backoff, numbers = array("i"), array("d"), array("d"), array("q")
    ended = f"the file ends within the {k}-grams, before \\end\\. It is cut short: get it again."
    while not (line := lines.next(ended)).startswith("\\"):
        fields = line.replace("\t", " ").split(" ")
        if "" in fields:
            fields = [field for field in fields if field]
        if not k < len(fields) <= k + 2:
            raise lines.error(
                f"{len(fields)} fields, but a {k}-gram has {k + 1} or {k + 2}: log10 p, {k} words, perhaps a backoff."
            )
        if k == 1:
            if fields[1] in number_of:
                raise lines.error(f'the word "{fields[1]}" stands here for the second time.')
            number_of[fields[1]] = len(number_of)
        try:
            words.extend([number_of[word] for word in fields[1 : k + 1]])
            log10_prob.append(float(fields[0]))
            log10_backoff.append(float(fields[k + 1]) if len(fields) == k + 2 else 0.0)
        except KeyError as error:
            raise lines.error(f'the word "{error.args[0]}" is not among the 1-grams. Add it there.') from None
        except ValueError as error:
            raise lines.error(f"{str(error).partition(': ')[2]} is not a number.") from None
        numbers.append(lines.number)
    section = _Section(
        np.array(words, dtype=np.int32).reshape(-1, k), _nats(log10_prob), _nats(log10_backoff), np.array(numbers)
    )
    for wrong in np.flatnonzero(~(section.log_prob <= 0))[:1]:
        raise lines.error(f"log10 p = {log10_prob[wrong]:g} should be at most 0.", section.lines[wrong])
    for wrong in np.flatnonzero(~(section.log_backoff < np.inf))[:1]:
        raise lines.error(f"the backoff {log10_backoff[wrong]:g} should be a finite number.", section.lines[wrong])
    if len(numbers) != size:
        raise lines.error(
            f"the {k}-grams end here after {len(numbers)}, but the header has ngram {k}={size}. "
            "Lines are missing or too many: get the file again, or correct the header."
        )
    return section


def _nats(log10: array[float]) -> np.ndarray:
    numbers = np.array(log10)
    return np.where(numbers == ZERO, -np.inf, numbers * math.log(10))


def _tokenizer(names: list[str], lines: _Lines) -> tuple[WordTokenizer | CharTokenizer, np.ndarray]:
    """The tokenizer, and the token of each word of the file; that of <s> is the one behind the last."""
    if END not in names:
        raise DataError(f"{lines.path}: {END} is not among the 1-grams, but every sentence ends with it. Add it there.")
    unknown = next((name for name in (UNKNOWN_WORD, UNKNOWN_WORD.upper()) if name in names), UNKNOWN_WORD)
    others = [name for name in names if name not in (BEGIN, END, unknown)]
    characters = [_read_character(name) for name in others if name not in DIGITS]
    tokenizer: WordTokenizer | CharTokenizer
    if unknown not in names and set(DIGITS) <= set(others) and all(characters):
        tokenizer = CharTokenizer(["\n", *characters])
        token_of = {piece: token for token, piece in enumerate(arpa_pieces(tokenizer))}
    else:
        tokenizer = WordTokenizer(others)
        token_of = {unknown: tokenizer.unknown, END: tokenizer.boundary}
        token_of |= {name: token for token, name in enumerate(others, start=2)}
    token_of[BEGIN] = tokenizer.vocab_size
    return tokenizer, np.array([token_of[name] for name in names])


def _build(config: NgramConfig, schema: Schema, sections: list[_Section], lines: _Lines) -> Ngram:
    """The trie, level by level. A gram that longer ones begin with may be missing: it gets what backing off gives."""
    spec, single = schema.input("tokens", TokenSpec), sections[0]
    V = spec.size
    log_prob, log_backoff = np.full(V, MISSING_UNKNOWN * math.log(10)), np.zeros(V)
    is_begin = single.rows[:, 0] == V
    log_prob[single.rows[~is_begin, 0]] = single.log_prob[~is_begin]
    log_backoff[single.rows[~is_begin, 0]] = single.log_backoff[~is_begin]
    log_backoff[spec.boundary] = single.log_backoff[is_begin].sum()  # </s> is no context
    levels = [Level(np.arange(V), np.zeros(V + 1, dtype=np.int64), log_prob, log_backoff)]
    parents: list[np.ndarray] = [np.zeros(V, dtype=np.int64)]
    longer = sections[1:]
    places = [section.rows[:, 0].astype(np.int64) for section in longer]  # of the first tokens of each gram
    for k, section in enumerate(sections[1:], start=2):
        keys = np.concatenate([place * V + s.rows[:, k - 1] for place, s in zip(places, longer, strict=True)])
        if len(keys) == 0:
            break
        keys, place = np.unique(keys, return_inverse=True)
        places = np.split(place, np.cumsum([len(s.rows) for s in longer])[:-1])
        own = places[0]
        for again in np.flatnonzero(np.bincount(own, minlength=len(keys)) > 1)[:1]:
            raise lines.error("this gram stands here for the second time.", section.lines[own == again][1])
        parents.append(keys // V)
        levels[-1].first = np.searchsorted(parents[-1], np.arange(len(levels[-1].words) + 1))
        log_prob, log_backoff = np.full(len(keys), np.nan), np.zeros(len(keys))
        log_prob[own], log_backoff[own] = section.log_prob, section.log_backoff
        missing = np.flatnonzero(np.isnan(log_prob))
        levels.append(Level(keys % V, np.zeros(len(keys) + 1, dtype=np.int64), log_prob, log_backoff))
        if len(missing):
            rows = torch.from_numpy(_rows_at(missing, levels, parents))
            none = Level(keys[:0], np.zeros(1, dtype=np.int64), log_prob[:0], log_prob[:0])  # no gram of k tokens yet
            shorter = Ngram.from_levels(config, schema, [*levels[:-1], none])
            log_prob[missing] = shorter.score(next_token_batch(rows))[0][:, -1].numpy()
        longer, places = longer[1:], places[1:]
    return Ngram.from_levels(config, schema, levels)


def _rows_at(places: np.ndarray, levels: list[Level], parents: list[np.ndarray]) -> np.ndarray:
    """The tokens of grams of the last level, (places, k)."""
    tokens = []
    for level, parent in zip(reversed(levels), reversed(parents), strict=True):
        tokens.append(level.words[places])
        places = parent[places]
    return np.stack(tokens[::-1], axis=1).astype(np.int64)
