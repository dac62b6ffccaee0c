"""Two stacks of LSTMs over words made of their characters, one from each end: the body of ELMo, and what others read.

    x_t = word made of its characters               character_words.py                                   (1)
    h_t = LSTM(x_t, h_{t-1})                        forward, residual, with a projection                 (2)
    g_t = LSTM(x_t, g_{t+1})                        backward, its own weights                            (3)
    layer 0 = [x_t; x_t],  layer l = [h_t; g_t] of layer l                                               (4)

Shapes: B batch, T steps, K characters of a word, D model width, L layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .character_words import CharacterWords
from .dropout import Dropout
from .lstm import LSTMCell
from .recurrent import RecurrentStack, State


class BidirectionalLM(nn.Module):
    def __init__(
        self,
        num_characters: int,
        *,
        model_dim: int,
        memory_dim: int,
        num_layers: int,
        character_dim: int,
        num_filters: int,
        num_highways: int,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.words = CharacterWords(
            num_characters,
            model_dim,
            character_dim=character_dim,
            num_filters=num_filters,
            num_highways=num_highways,
        )

        def stack() -> RecurrentStack:
            return RecurrentStack(
                lambda width: LSTMCell(width, memory_dim, projection_dim=model_dim),
                model_dim,
                num_layers,
                connections="residual",
                dropout=dropout,
            )

        self.forward_stack, self.backward_stack = stack(), stack()
        self.dropout = Dropout(dropout)
        self.output_dim, self.layer_dim, self.num_layers = model_dim, 2 * model_dim, num_layers + 1

    def initial_state(self, batch_size: int) -> State:
        """Of the forward direction: h (B, L, D) and c."""
        return self.forward_stack.initial_state(batch_size)

    def read_forward(
        self, characters: Tensor, lengths: Tensor | None, state: State, layers: list[Tensor] | None = None
    ) -> tuple[Tensor, State]:
        """(2): (B, T, K) -> (B, T, D), and the state after the last step."""
        x = self.dropout(self.words(characters))  # (1)
        hidden, after = self.forward_stack(x, state, lengths, layers=layers)
        return self.dropout(hidden), after

    def read_backward(self, characters: Tensor, lengths: Tensor, layers: list[Tensor] | None = None) -> Tensor:
        """(3), from the last step of each row to its first: (B, T, K) -> (B, T, D)."""
        x = self.dropout(self.words(_turned(characters, lengths)))
        found: list[Tensor] | None = None if layers is None else []
        hidden, _ = self.backward_stack(x, self.backward_stack.initial_state(len(x)), lengths, layers=found)
        if layers is not None and found is not None:
            layers += [_turned(layer, lengths) for layer in found]
        return self.dropout(_turned(hidden, lengths))

    def layers(self, characters: Tensor, lengths: Tensor) -> list[Tensor]:
        """(4): (B, T, K) -> L + 1 times (B, T, 2D)."""
        forward: list[Tensor] = []
        backward: list[Tensor] = []
        x = self.words(characters)
        self.read_forward(characters, lengths, self.initial_state(len(characters)), forward)
        self.read_backward(characters, lengths, backward)
        return [torch.cat(pair, dim=-1) for pair in zip([x, *forward], [x, *backward], strict=True)]


def _turned(steps: Tensor, lengths: Tensor) -> Tensor:
    """Each row (B, T, ...) from its last step to its first; what stands behind its end stays there."""
    place = torch.arange(steps.shape[1], device=steps.device)
    last = lengths.unsqueeze(1) - 1
    place = torch.where(place <= last, last - place, place)  # (B, T)
    return steps[torch.arange(len(steps), device=steps.device).unsqueeze(1), place]
