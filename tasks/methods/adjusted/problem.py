"""What adjusted disparities alone need of a problem: the estimates of the stage ``adjust``."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.compute as pc

from schemas.audit.column import NO_BLOCK
from schemas.terms import Note
from tasks.methods.adjusted.algorithm.detection import Beyond, DetectionExchange, Step, Steps
from tasks.methods.adjusted.algorithm.estimators import FEW, ONE
from tasks.methods.adjusted.settings import PRICE, STANDARDISED
from tasks.methods.adjusted.tables import ADJUSTED, ADJUSTED_EXCHANGED, ADJUSTED_ROWS, DISPARITIES, PRICING
from tasks.numerics.statistics.intervals import Changes
from tasks.pipeline.method import ProblemTables


def own(tables: ProblemTables, maker: str, attribute: str) -> Steps:
    """The estimates of one decision maker and protected attribute."""
    is_of_decision = (pc.field("decision_maker") == maker) & (pc.field("protected_attribute") == attribute)
    rows = tables.of_method(ADJUSTED).filter(is_of_decision).to_pylist()
    exchanges = []
    for row in tables.of_method(ADJUSTED_EXCHANGED).filter(is_of_decision).to_pylist():
        if row["effect"] is None:
            exchanges.append(DetectionExchange(row["group"], row["n"], reason=row["reason"]))
        else:
            changes = Changes(row["raised"], row["lowered"], row["n"])
            exchanges.append(DetectionExchange(row["group"], row["n"], changes, (row["low"], row["high"])))

    def number(value: float | None) -> float:
        return math.nan if value is None else value

    is_used = is_of_decision & pc.field("used") & pc.field("group").is_valid()
    used = {r["group"]: (r["rows"], r["denied"]) for r in tables.of_method(ADJUSTED_ROWS).filter(is_used).to_pylist()}
    primary_rungs = {(row["group"], row["blocks"]) for row in rows if row["primary"]}
    linear = {(r["group"], r["blocks"]): r for r in rows if r["estimator"] == "lpm"}

    def step(row: Mapping[str, Any]) -> Step:
        rung = row["group"], row["blocks"]
        beside = linear.get(rung, {})
        return Step(
            block=row["blocks"].rpartition(" + ")[2] or NO_BLOCK,
            group=row["group"],
            estimator=row["estimator"],
            over=row["average_over"],
            primary=row["primary"],
            value=number(row["value"]),
            low=number(row["low"]),
            high=number(row["high"]),
            n=row["n"],
            support=number(row["support"]),
            reason=row["reason"],
            se=number(row["se"]),
            df=math.inf if row["df"] is None else row["df"],
            judged_rung=rung in primary_rungs,
            robustness=number(beside.get("rv")),
            unseen=beside.get("unseen") or 0.0,
        )

    priced = [row for row in tables.of_method(PRICING).filter(is_of_decision).to_pylist() if row["primary"]]
    compared = tables.of_method(DISPARITIES).filter(is_of_decision & (pc.field("share").is_null()))
    plain = [row for row in compared.to_pylist() if row["measure"] == STANDARDISED]
    prices = [_beyond(row, PRICE, {}, number) for row in priced]
    prices += [_beyond(row, STANDARDISED, {"of": row["of"]}, number) for row in plain]
    return Steps(tuple(map(step, rows)), tuple(exchanges), used, tuple(prices))


def _beyond(
    row: Mapping[str, Any], measure: str, parameters: Mapping[str, str], number: Callable[[float | None], float]
) -> Beyond:
    """A row of prices, or of standardised differences, as a measure."""
    value, se, unseen = (number(row.get(name)) for name in ("value", "se", "unseen"))
    df = math.inf if row.get("df") is None else row["df"]
    ends = number(row["low"]), number(row["high"])
    few = (FEW in row["reason"] or ONE in row["reason"]) and math.isfinite(value)
    reason = str(Note.FEW_CLUSTERS) if few else row["reason"] if not math.isfinite(value) else ""
    errors = (se, df, number(row.get("rv")), 0.0 if math.isnan(unseen) else unseen)
    return Beyond(row["group"], measure, parameters, value, ends, row["n"], reason, *errors)
