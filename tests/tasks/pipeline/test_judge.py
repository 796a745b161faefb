"""Great Expectations as the judge of counts: a verdict for each rule, and faults of the engine are no bad data."""

from typing import Any

import pytest

from schemas.errors import InfrastructureError
from tasks.pipeline import judge as judged
from tasks.pipeline.judge import judge


def test_a_rule_is_kept_when_nothing_breaks_it() -> None:
    assert judge([5, 0, 7, 2**40], [0, 0, 1, 2**40]) == [True, True, False, False]
    assert judge([], []) == []


def test_a_rule_that_could_not_be_evaluated_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("no such metric")

    monkeypatch.setattr(judged.ExpectNoneUnexpected, "_validate", broken)
    with pytest.raises(InfrastructureError, match="no such metric"):
        judge([1], [0])
