"""What the characters of a word say of it: features beside its token, for words that are rare or were never seen.

    conv    f = max over places of relu(K * [e_1 .. e_k])            Ma & Hovy 2016 (kernels of three characters)
    lstm    f = [last state from the left; last from the right]      Lample et al. 2016

e_j is the embedding of the j-th character. Words are short, and few of a batch differ: each is computed once.

Shapes: B batch, T steps, K characters of a word, N words that differ, S width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

CHARACTER_DIM = 25


class CharacterFeatures(nn.Module):
    def __init__(self, kind: str, num_characters: int, output_dim: int):
        super().__init__()
        self.kind, self.output_dim = kind, output_dim
        self.characters = nn.Embedding(num_characters, CHARACTER_DIM)
        if kind == "conv":
            self.conv = nn.Conv1d(CHARACTER_DIM, output_dim, kernel_size=3, padding=2)
        else:
            self.lstm = nn.LSTM(CHARACTER_DIM, output_dim // 2, batch_first=True, bidirectional=True)

    def forward(self, characters: Tensor) -> Tensor:
        """(B, T, K) -> (B, T, S)."""
        words, place = characters.flatten(0, 1).unique(dim=0, return_inverse=True)  # (N, K), (B*T,)
        found = self._of_words(words)  # (N, S)
        return found[place].view(*characters.shape[:2], -1)

    def _of_words(self, words: Tensor) -> Tensor:
        lengths = (words > 0).sum(dim=1)  # (N,); 0 for the boundary, which has no characters
        words = words[:, : max(1, int(lengths.max()))]
        x = self.characters(words)  # (N, K', 25)
        if self.kind == "conv":
            x = x.masked_fill((words == 0).unsqueeze(2), 0.0)
            # behind the end of a word the kernel sees two zeros at the most, as it does before its beginning
            places = torch.arange(x.shape[1] + 2, device=x.device) < (lengths + 2).unsqueeze(1)  # (N, K'+2)
            found = self.conv(x.transpose(1, 2)).relu()  # (N, S, K'+2)
            return found.masked_fill(~places.unsqueeze(1), 0.0).amax(dim=2)
        packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
        _, (last, _) = self.lstm(packed)  # (2, N, S/2)
        return last.transpose(0, 1).flatten(1)
