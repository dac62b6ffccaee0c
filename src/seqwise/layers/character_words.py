"""Words made of their characters alone: whatever is spelled has a vector, seen before or not.

    f   = max over places of tanh(K_w * [e_1 .. e_k])   for each width w, side by side        (1)
    f   = t * relu(W f + b) + (1 - t) * f,  t = sigmoid(W' f + b')     highway, twice          (2)
    x   = P f                                                                                 (3)

Kim et al. 2016; e_j is the embedding of the j-th character, with a mark before the first and behind the last.

Shapes: B batch, T steps, K characters of a word, N words that differ, F filters in all, E width of a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

WIDTHS = (1, 2, 3, 4, 5)
MARKS = 2  # ids behind the characters: where a word begins, and where it ends


class Highway(nn.Module):
    """(2)"""

    def __init__(self, width: int):
        super().__init__()
        self.new, self.gate = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, -1.0)  # carries at first

    def forward(self, x: Tensor) -> Tensor:
        t = self.gate(x).sigmoid()
        return t * self.new(x).relu() + (1 - t) * x


class CharacterWords(nn.Module):
    def __init__(
        self, num_characters: int, output_dim: int, *, character_dim: int, num_filters: int, num_highways: int
    ):
        """`num_filters` of the narrowest width; each wider one has as many more."""
        super().__init__()
        self.output_dim, self.begin, self.end = output_dim, num_characters, num_characters + 1
        self.characters = nn.Embedding(num_characters + MARKS, character_dim)
        nn.init.normal_(self.characters.weight, std=0.5)
        self.filters = nn.ModuleList(
            nn.Conv1d(character_dim, num_filters * width, kernel_size=width, padding=width - 1) for width in WIDTHS
        )
        width = num_filters * sum(WIDTHS)
        self.highways = nn.Sequential(*(Highway(width) for _ in range(num_highways)))
        self.project = nn.Linear(width, output_dim)

    def forward(self, characters: Tensor) -> Tensor:
        """(B, T, K) -> (B, T, E)."""
        words, place = characters.flatten(0, 1).unique(dim=0, return_inverse=True)  # (N, K), (B*T,)
        return self.of_words(words)[place].view(*characters.shape[:2], -1)

    def of_words(self, words: Tensor) -> Tensor:
        """(N, K) -> (N, E)."""
        marked, is_there = self._marked(words)  # (N, K'), (N, K')
        x = self.characters(marked).masked_fill(~is_there.unsqueeze(2), 0.0).transpose(1, 2)  # (N, C, K')
        found = [self._highest(filters(x), is_there) for filters in self.filters]  # (1)
        return self.project(self.highways(torch.cat(found, dim=1)))  # (2) (3)

    def _marked(self, words: Tensor) -> tuple[Tensor, Tensor]:
        lengths = (words > 0).sum(dim=1)  # (N,)
        width = int(lengths.max()) + MARKS
        places = torch.arange(width, device=words.device)
        marked = torch.zeros(len(words), width, dtype=torch.long, device=words.device)
        marked[:, 1 : 1 + words.shape[1]] = words[:, : width - 1]
        marked[:, 0] = self.begin
        marked.scatter_(1, (lengths + 1).unsqueeze(1), self.end)
        return marked, places < (lengths + MARKS).unsqueeze(1)

    def _highest(self, found: Tensor, is_there: Tensor) -> Tensor:
        """(N, F_w, K'+w-1) -> (N, F_w), over the places at which the kernel touches the word."""
        extra = found.shape[2] - is_there.shape[1]
        touched = torch.cat([is_there[:, :1].expand(-1, extra), is_there], dim=1)  # (N, K'+w-1)
        return found.tanh().masked_fill(~touched.unsqueeze(1), -1.0).amax(dim=2)


def spelled(pieces: Sequence[str]) -> str:
    """The characters that pieces of a vocabulary are made of."""
    return "".join(sorted({character for piece in pieces for character in piece}))
