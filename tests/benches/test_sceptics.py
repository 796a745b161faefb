"""Lenders that a sceptic would try, and planted models, at fixed seeds: no state is wrong."""

import pytest
from benches.sceptics import SCEPTICS, tried

from research.bench.lenders import OUTSIDE, WITHIN, Shape
from research.bench.planted import MODELS, Planted, state

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("shape", SCEPTICS, ids=lambda shape: shape.name)
def test_no_lender_of_a_sceptic_has_a_wrong_state(shape: Shape) -> None:
    states = [answer.state for answer, _ in tried(shape, 3)]
    wrong = {OUTSIDE, WITHIN} - set(shape.states)
    assert not wrong & set(states)
    assert not shape.harms or states.count(OUTSIDE) >= 2


@pytest.mark.parametrize(
    "planted",
    [planted for planted in MODELS if "finances" not in planted.name],
    ids=lambda planted: f"{planted.theory}: {planted.name}",
)
def test_a_planted_model_has_a_right_state(planted: Planted) -> None:
    assert state(planted, 0)[0] in planted.states
