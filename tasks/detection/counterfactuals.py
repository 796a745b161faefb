"""Counterfactuals of a protected attribute as arrays, from any generator.

Scope: reads whole applicants, which ``generate`` writes, and mediators with changes of the decision, which ``mediate``
writes. Regeneration: ``applicants``.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.spec import Protected
from schemas.terms import DecisionMaker, Kind
from tasks.counterfactuals.assumptions import Generator
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.encoding import category_codes
from tasks.numerics.problem import Counterfactuals
from tasks.pipeline.given import ProblemTables


class Decided(NamedTuple):
    """Decisions on the real applicants, and who made them."""

    maker: str | None
    """None for a model that cannot be asked about others."""
    favourable: Bools
    """``(n,)``."""


def imagined(
    given: ProblemTables,
    attribute: Protected,
    columns: Columns,
    decided: Decided,
    generator: Generator,
    some: Bools | None = None,
) -> Counterfactuals | None:
    """What the generator left of an attribute, those refused excepted; None where it imagined nobody.

    Args:
        given: Tables.
        attribute: Of which a counterfactual is in the reference group.
        columns: Of the applicants.
        decided: Decisions on the applicants as they are.
        generator: Whose counterfactuals.
        some: ``(n,)`` the rows whose counterfactuals are wanted; None: all.
    """
    if generator in ("gan", "quantile"):
        return _mediated(given, attribute, columns, decided, some)
    table = _where(given.counterfactuals, generator=generator, protected_attribute=attribute.name)
    table = _among(table, given, some)
    if not table.num_rows:
        return None
    mine, row = _in_order(table.filter(pc.is_null(table["refusal"])), given)
    values = [_column(mine, columns.names[i], columns, i) for i in range(len(columns.names))]
    favourable = _favourable(given, attribute.name, generator, mine, decided)
    return Counterfactuals(row, np.column_stack(values).astype(np.float64), favourable)


def _favourable(given: ProblemTables, attribute: str, generator: str, mine: pa.Table, decided: Decided) -> Bools | None:
    """Decisions on counterfactuals: the model's are stored, the lender's exist for real applicants only."""
    if decided.maker == DecisionMaker.MODEL:
        decided_on = _where(given.reconsidered, generator=generator, protected_attribute=attribute)
        decided_on = decided_on.filter(pc.is_in(decided_on["row_id"], mine["row_id"].combine_chunks()))
        decision = dict(zip(decided_on["row_id"].to_pylist(), decided_on["favourable"].to_pylist(), strict=True))
        return np.array([decision[i] for i in mine["row_id"].to_pylist()], dtype=bool)
    if decided.maker == DecisionMaker.LENDER and generator == "nearest":
        return decided.favourable[_rows(mine["other_row_id"], given)]
    return None


def _mediated(
    given: ProblemTables, attribute: Protected, columns: Columns, decided: Decided, some: Bools | None
) -> Counterfactuals | None:
    """Applicants with the mediators that the most typical network imagines of them in the reference group."""
    table = _where(given.mediated, protected_attribute=attribute.name, to_group=attribute.reference)
    table = _among(table, given, some)
    if not table.num_rows:
        return None
    mine, row = _in_order(table.filter(pc.is_null(table["refusal"])), given)
    values = columns.values[row]
    for place, name in enumerate(columns.names):
        if name in mine.column_names and name not in attribute.columns:
            values[:, place] = _column(mine, name, columns, place)
    if decided.maker != DecisionMaker.MODEL:
        return Counterfactuals(row, values, None)
    return Counterfactuals(row, values, decided.favourable[row] ^ _flipped(given.mediated_decisions, attribute, mine))


def _flipped(decisions: pa.Table, attribute: Protected, mine: pa.Table) -> Bools:
    """Whether the network whose mediators are shown has the model decide otherwise."""
    known = _where(decisions, protected_attribute=attribute.name, to_group=attribute.reference)
    flips = dict(zip(known["row_id"].to_pylist(), known["flips"].to_pylist(), strict=True))
    shown = zip(mine["row_id"].to_pylist(), mine["network"].to_pylist(), strict=True)
    return np.array([flips[row_id][network or 0] == 1 for row_id, network in shown], dtype=bool)


def _where(table: pa.Table, **values: str) -> pa.Table:
    """The rows of a table with these values."""
    for name, value in values.items():
        table = table.filter(pc.equal(table[name], value))
    return table


def _among(table: pa.Table, given: ProblemTables, some: Bools | None) -> pa.Table:
    """The rows of a table that are about some applicants ``(n,)``."""
    return table if some is None else table.filter(pc.is_in(table["row_id"], pa.array(given.ids[some])))


def _in_order(table: pa.Table, given: ProblemTables) -> tuple[pa.Table, Longs]:
    """The rows of a table by ascending number of the applicant, and these numbers."""
    row = _rows(table["row_id"], given)
    order = np.argsort(row)
    return table.take(order), row[order]


def _rows(row_ids: pa.ChunkedArray, given: ProblemTables) -> Longs:
    number = pd.Series(np.arange(len(given.ids)), index=given.ids)
    found: Longs = number.loc[row_ids.to_pylist()].to_numpy(np.int64)
    return found


def _column(table: pa.Table, name: str, columns: Columns, place: int) -> Floats:
    if columns.kinds[place] is Kind.CONTINUOUS:
        values: Floats = table[name].to_numpy()
        return values
    return category_codes(table[name].to_pylist(), columns.categories[place]).astype(np.float64)
