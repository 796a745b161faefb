"""Results of a run as frames: a group a row, with estimate, interval, size, state and reason.

Scope: selection and shape. The numbers are those of the table ``measures`` and of the tables of curves.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd
import pyarrow.compute as pc
from sklearn.base import BaseEstimator

from evenhand.errors import InputError, NotComputedError, NotFittedError
from evenhand.runs import Run
from schemas.audit.partition import unsampled
from schemas.terms import Theory
from tasks.metrics.curves import rows_of, table_of

QUESTIONS: Final = tuple(str(theory) for theory in Theory)
"""Keys of the questions of the first page."""
COLUMNS: Final = ("estimate", "low", "high", "n", "state", "reason")
"""Of every frame by group."""


def group_frame(measures: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """Rows of the table of measures as a frame with a group a row."""
    frame = pd.DataFrame(
        {
            "estimate": measures["value"].to_numpy(float),
            "low": measures["low"].to_numpy(float),
            "high": measures["high"].to_numpy(float),
            "n": measures["n"].astype("Int64").to_numpy(),
            "state": measures["state"].to_list(),
            "reason": [reason or note for reason, note in zip(measures["reason"], measures["note"], strict=True)],
        },
        index=pd.Index(measures["group"].to_list(), name=attribute),
    )
    return frame.sort_index(kind="stable")


class Measured:
    """Measures of a run, selected by name and parameters."""

    def __init__(self, run: Run, method: str, decision_maker: str, attribute: str) -> None:
        """Keep the rows of one method, decision maker and attribute that are about whole groups."""
        self.run, self.attribute, self.method = run, attribute, method
        rows = run.rows("measures", method=method, decision_maker=decision_maker, protected_attribute=attribute)
        references = {attribute.name: attribute.reference for attribute in run.spec.protected}
        curves = run.tables[table_of(method).name]
        chosen = pc.and_(pc.equal(curves["method"], method), pc.equal(curves["decision_maker"], decision_maker))
        points = pd.DataFrame(rows_of(curves.filter(chosen).to_pylist(), references), columns=rows.columns)
        points = points[points["protected_attribute"] == attribute]
        if len(points):
            rows = pd.concat([rows, points.astype({"value": float, "low": float, "high": float})], ignore_index=True)
        rows = rows[rows["subgroup"] == 0]
        self.rows = rows.assign(parameters=[unsampled(text) for text in rows["parameters"]])

    def by_group(self, measure: str, parameters: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """One measure, a group a row.

        Raises:
            NotComputedError: These settings do not produce it.
        """
        rows = self.rows[self.rows["measure"] == measure]
        if not len(rows):
            computed = ", ".join(sorted(set(self.rows["measure"])))
            raise NotComputedError(f"{measure} was not computed; there are {computed}")
        key = json.dumps(dict(parameters or {}), sort_keys=True)
        chosen = rows[rows["parameters"] == key]
        if not len(chosen):
            computed = "; ".join(sorted(set(rows["parameters"]))[:8])
            raise NotComputedError(f"{measure} was not computed with {key}; there are {computed}")
        return group_frame(chosen, self.attribute)

    def frame(self) -> pd.DataFrame:
        """Every measure in long form: a row for each measure, group and set of parameters."""
        head = self.rows[["measure", "group", "parameters"]].reset_index(drop=True)
        tail = group_frame(self.rows.assign(group=range(len(self.rows))), "at").reset_index(drop=True)
        return pd.concat([head.assign(parameters=[json.loads(text) for text in head["parameters"]]), tail], axis=1)


def checks_frame(table: Any, attribute: str) -> pd.DataFrame:
    """Rows of `generator_checks` of an attribute: a row for each check, network and column.

    Args:
        table: The table, as the stage made it.
        attribute: The protected attribute.
    """
    from tasks.counterfactuals.algorithm.diagnostics import LIMITS  # loads torch

    rows = table.to_pandas()
    rows = rows[rows["protected_attribute"] == attribute].reset_index(drop=True)
    bounds = [LIMITS.get(check, ("", math.nan)) for check in rows["check"]]
    frame = rows[["check", "network", "column", "value", "n"]].rename(columns={"check": "name"})
    frame["network"] = frame["network"].astype("Int64")
    frame.insert(4, "limit", [limit for _, limit in bounds])
    frame.insert(5, "side", [side for side, _ in bounds])
    passed = (~rows["doubtful"].astype(bool)).astype("boolean")
    frame.insert(6, "passed", passed.mask(frame["limit"].isna() | (frame["value"].isna() & passed)))
    return frame


class Results(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the classes of methods share: parameters as in scikit-learn, and frames by group after ``fit``."""

    METHOD: str
    MEASURE: str
    """What `by_group` is about."""
    COMPARED: tuple[str, ...] = ("difference", "ratio")
    """Comparisons with the reference group that the method makes of it."""
    _measured: Measured

    def _keep(self, run: Run, method: str, decision_maker: str) -> None:
        """Keep a run as results."""
        attribute = run.spec.protected[0]
        self._measured = Measured(run, method, decision_maker, attribute.name)
        self.reference_ = attribute.reference
        self.feature_names_in_ = run.data.rows.names
        self.n_features_in_ = len(run.data.rows.names)

    @property
    def _fitted(self) -> Measured:
        try:
            return self._measured
        except AttributeError as error:
            raise NotFittedError(f"{type(self).__name__} is not fitted; call fit first") from error

    def _parameters(self) -> dict[str, Any]:
        """Parameters of the measure that `by_group` is about."""
        return {}

    @property
    def by_group(self) -> pd.DataFrame:
        """The measure of every group: estimate, low, high, n, state, reason."""
        return self._fitted.by_group(self.MEASURE, self._parameters())

    def difference(self) -> pd.DataFrame:
        """Every other group less the reference group."""
        return self._comparison("difference")

    def ratio(self) -> pd.DataFrame:
        """Every other group over the reference group."""
        return self._comparison("ratio")

    def _comparison(self, of: str) -> pd.DataFrame:
        if of not in self.COMPARED:
            raise NotComputedError(f"{self.MEASURE} compares groups already; no {of} is made of it")
        return self._fitted.by_group(f"{self.MEASURE}_{of}", self._parameters())

    def measure(self, name: str, **parameters: Any) -> pd.DataFrame:
        """Another measure of the method, a group a row; `measures_` lists them all.

        Raises:
            NotComputedError: These settings do not produce it.
        """
        return self._fitted.by_group(name, parameters)

    @property
    def measures_(self) -> pd.DataFrame:
        """All measures of the method in long form."""
        return self._fitted.frame()

    @property
    def refused_(self) -> Any:
        """The rows that no figure is about, by their index, each with stage, reason and column."""
        run = self._fitted.run
        return run.data.rows.native(run.refused)

    @property
    def findings_(self) -> Any:
        """What was found of every row that the method looked at, in the order and by the index of the frame.

        Raises:
            NotComputedError: The method looks at groups only.
        """
        run = self._fitted.run
        rows = run.rows("findings", method=self.METHOD, protected_attribute=self._fitted.attribute)
        if not len(rows):
            raise NotComputedError(f"{type(self).__name__} judges groups, and no single row; see by_group")
        rows = rows.assign(place=[row_place(i) for i in rows["row_id"]]).sort_values("place")
        frame = rows[["group", "verdict", "statistic", "control", "test", "low", "high", "p", "q", "refusal"]]
        frame = frame.dropna(axis="columns", how="all")
        return run.data.rows.native(frame.set_index(run.labels(rows["row_id"])))

    def plot(self) -> str:
        """`by_group` as the report draws it: an SVG drawing, as text."""
        from tasks.reporting.charts.layout import svg  # loads templates

        return str(svg(forest(self.by_group, self.MEASURE), "evenhand"))

    def _repr_html_(self) -> str:
        try:
            frame = self.by_group
        except NotFittedError:
            return f"<code>{type(self).__name__}</code>, not fitted"
        return f"<p>{self.MEASURE}, reference group {self.reference_}</p>{frame.to_html()}"


def forest(frame: pd.DataFrame, measure: str) -> Any:
    """The chart of a frame by group."""
    from tasks.reporting.charts.rows import Forest
    from tasks.reporting.charts.values import Mark, Unit

    marks = tuple(
        Mark(
            label=str(group),
            value=None if pd.isna(row["estimate"]) else float(row["estimate"]),
            low=None if pd.isna(row["low"]) else float(row["low"]),
            high=None if pd.isna(row["high"]) else float(row["high"]),
            n=None if pd.isna(row["n"]) else int(row["n"]),
        )
        for group, row in frame.iterrows()
    )
    if not marks:
        raise InputError("no group to draw")
    words = re.sub("_", " ", measure)
    return Forest(title=words, unit=Unit(words, places=3), rows=marks, head="Group")


def row_place(row_id: Any) -> int:
    """Place of a row in the frame."""
    from evenhand.runs import row_number

    return row_number(row_id)
