"""Dropout: shares, masks, and what is drawn."""

from __future__ import annotations

import pytest
import torch

from seqwise.layers.dropout import Dropout, dropped_out


def test_variational_dropout_has_one_mask_for_all_steps_of_a_row() -> None:
    dropped = Dropout(0.3, is_variational=True)(torch.ones(50, 9, 40))
    assert torch.equal(dropped, dropped[:, :1].expand(-1, 9, -1))
    assert not torch.equal(dropped[0], dropped[1])
    assert {round(value, 4) for value in dropped.unique().tolist()} == {0.0, round(1 / 0.7, 4)}


@pytest.mark.parametrize("is_variational", [False, True], ids=["plain", "variational"])
def test_dropout_keeps_the_mean_and_drops_its_share(is_variational: bool) -> None:
    dropped = Dropout(0.3, is_variational=is_variational)(torch.ones(500, 4, 100))
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)


def test_plain_dropout_has_other_masks_at_other_steps() -> None:
    dropped = Dropout(0.5)(torch.ones(3, 9, 40))
    assert not torch.equal(dropped[:, 0], dropped[:, 1])


@pytest.mark.parametrize("is_variational", [False, True], ids=["plain", "variational"])
def test_dropout_changes_with_each_call_and_rests_after_training(is_variational: bool) -> None:
    layer, x = Dropout(0.5, is_variational=is_variational), torch.randn(3, 9, 40)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), x)


def test_variational_dropout_passes_gradients_through_what_is_kept() -> None:
    x = torch.randn(3, 9, 40, requires_grad=True)
    dropped = Dropout(0.5, is_variational=True)(x)
    dropped.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), dropped.detach())


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.97, 0.999999])
def test_the_share_is_met_to_the_error_of_chance(share: float) -> None:
    torch.manual_seed(0)
    n = 1_000_003  # not a multiple of the values that one draw decides
    found = (dropped_out(torch.ones(n), share) == 0).double().mean().item()
    assert abs(found - share) < 4 * (share * (1 - share) / n) ** 0.5 + 1 / 65_536


def test_values_that_share_a_draw_are_dropped_independently() -> None:
    torch.manual_seed(0)
    dropped = (dropped_out(torch.ones(400_000), 0.5) == 0).view(-1, 4).double()
    assert (torch.corrcoef(dropped.T) - torch.eye(4)).abs().max() < 0.01
    assert abs(torch.corrcoef(torch.stack([dropped[:-1, 3], dropped[1:, 0]]))[0, 1]) < 0.01


def test_the_seed_decides_what_is_dropped() -> None:
    x = torch.randn(7, 5)
    torch.manual_seed(1)
    first = dropped_out(x, 0.5)
    torch.manual_seed(1)
    assert torch.equal(first, dropped_out(x, 0.5))
