"""The verdict of Great Expectations on counts.

All rules of a stage are one expectation over one frame of counts, a row a rule: an expectation costs as much as a rule
takes to count. Only where it fails has each rule an expectation of its own. The expectation and its metric are custom
ones of the pandas engine, made the public way: a ``BatchExpectation`` that depends on a ``TableMetricProvider``.

This module imports Great Expectations (seconds of CPU time), with its telemetry off: import it late.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import pandas as pd

from schemas.errors import InfrastructureError

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when it is imported

import great_expectations as gx
from great_expectations.execution_engine import PandasExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

METRIC = "evenhand.counts"


class Counts(TableMetricProvider):  # type: ignore[misc]
    """The frame of counts by number of the rule; computed once a suite."""

    metric_name = METRIC

    @metric_value(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(  # the library calls it with its class
        cls,  # noqa: N805
        execution_engine: Any,
        metric_domain_kwargs: Any,
        **_: Any,
    ) -> dict[int, dict[str, int]]:
        frame = execution_engine.get_domain_records(metric_domain_kwargs)
        rows: dict[int, dict[str, int]] = frame.to_dict("index")
        return rows


class ExpectNoneUnexpected(BatchExpectation):  # type: ignore[misc]
    """That no element of some rules breaks them."""

    rules: list[int]
    """Their numbers: rows of the frame."""
    metric_dependencies: ClassVar[tuple[str, ...]] = (METRIC,)
    success_keys: ClassVar[tuple[str, ...]] = ("rules",)
    args_keys: ClassVar[tuple[str, ...]] = ("rules",)

    def _validate(self, metrics: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        rule_counts = [metrics[METRIC][rule] for rule in self.rules]
        elements, unexpected = (sum(of_rule[name] for of_rule in rule_counts) for name in ("elements", "unexpected"))
        return {"success": unexpected == 0, "result": {"element_count": elements, "unexpected_count": unexpected}}


def judge(elements: Sequence[int], unexpected: Sequence[int]) -> list[bool]:
    """Whether each rule is kept.

    Raises:
        InfrastructureError: the engine failed on an expectation.
    """
    if not elements:
        return []
    frame = pd.DataFrame({"elements": list(elements), "unexpected": list(unexpected)}, dtype="int64")
    rules = list(range(len(frame)))
    all_met = _kept(frame, [rules])[0]
    return [all_met] * len(rules) if all_met else _kept(frame, [[rule] for rule in rules])


def _kept(frame: pd.DataFrame, suites: Sequence[list[int]]) -> list[bool]:
    """Whether all rules are kept, for each of several lists of them."""
    suite = gx.ExpectationSuite("boundary", expectations=[ExpectNoneUnexpected(rules=rules) for rules in suites])
    validation = _batches().get_batch({"dataframe": frame}).validate(suite, result_format="BASIC")
    verdicts = {result.expectation_config.kwargs["rules"][0]: _verdict(result) for result in validation.results}
    return [verdicts[rules[0]] for rules in suites]


def _verdict(result: Any) -> bool:
    """Verdict of a result; one without counts was not evaluated, which is a fault of the engine and not of the data."""
    if "unexpected_count" not in result.result:
        raise InfrastructureError(f"a rule could not be evaluated: {result.exception_info}")
    return bool(result.success)


@lru_cache(maxsize=1)
def _batches() -> Any:
    for name in ("great_expectations", "great_expectations.data_context.types.base"):
        logging.getLogger(name).setLevel(logging.WARNING)  # it tells of a temporary directory
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    source = context.data_sources.add_pandas("stages")
    return source.add_dataframe_asset("counts").add_batch_definition_whole_dataframe("whole")


def prepare() -> None:
    """Make the context ahead of its first use."""
    _batches()
