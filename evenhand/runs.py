"""Stages of an audit on the rows of a frame, in memory: from a frame to the tables that the pipeline would leave.

Nothing is computed here: the stages are those of ``tasks.plan``, with the settings that an audit spec of the same
words would give them. Scope: the spec of a frame, and the run. Frames of results: ``evenhand.results``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from threadpoolctl import threadpool_limits

from evenhand.errors import InputError
from evenhand.frame_rows import Column, Rows, decided, rows_of, sensitive_of
from schemas.audit.model import Model
from schemas.audit.source import Source
from schemas.audit.spec import AuditSpec
from schemas.errors import missing_extra, nearest
from tasks.ingest.sources.typed_cells import cell
from tasks.numerics.arrays import Bools
from tasks.pipeline import registry

YEAR: Final = 2000
"""Of a spec that is about no year; no figure depends on it."""
CROSSING: Final = " and "
"""Between the groups of crossed attributes, as ingest joins them."""
SIDES: Final = {True: "1", False: "0"}


@dataclass(frozen=True)
class Data:
    """Rows, decisions and groups that belong together."""

    rows: Rows
    sensitive: Mapping[str, pa.Array]
    decision: str
    favourable: Bools

    @classmethod
    def of(cls, X: Any, y: Any, sensitive_features: Any, favourable: Any = None) -> "Data":  # noqa: N803 as scikit-learn
        """What a user hands in.

        Raises:
            InputError: A fault of the frame, the decisions or the groups; it names the column.
        """
        rows = rows_of(X)
        name, decisions = decided(y, favourable, rows)
        return cls.joined(rows, sensitive_of(sensitive_features, rows), name, decisions)

    @classmethod
    def joined(cls, rows: Rows, sensitive: Mapping[str, pa.Array], decision: str, favourable: Bools) -> "Data":
        """The parts, with a name of the decision that no other column has."""
        while decision in rows.names or decision in sensitive:
            decision = f"{decision}_made"
        for name, groups in sensitive.items():
            if name in rows.names and rows.text[name].combine_chunks() != groups:
                raise InputError(f"X and sensitive_features have different columns {name!r}; rename one of them")
        return cls(rows, sensitive, decision, favourable)

    @property
    def table(self) -> pa.Table:
        """All columns as text, as a source has them."""
        table = self.rows.text
        for name, groups in self.sensitive.items():
            if name not in table.column_names:
                table = table.append_column(name, groups)
        return table.append_column(self.decision, pa.array([SIDES[bool(flag)] for flag in self.favourable]))

    def protected(self, reference: Any) -> list[dict[str, Any]]:
        """The protected attributes of the spec, the one that results are about first.

        Args:
            reference: The group that the others are compared with, a tuple for crossed features; the largest if None.

        Raises:
            InputError: No row is of that group.
        """
        names, text = list(self.sensitive), {name: pd.Series(a.to_pylist()) for name, a in self.sensitive.items()}
        values = list(reference) if isinstance(reference, tuple) else [reference] * len(names)
        if len(values) != len(names) or (len(names) > 1 and isinstance(reference, str)):
            raise InputError(f"reference is {reference!r}; give a tuple with a group of {', '.join(names)}")
        references = {}
        for name, value in zip(names, values, strict=True):
            groups = sorted(set(text[name]) - {""})
            group = str(text[name][text[name] != ""].value_counts().idxmax()) if value is None else cell(value)
            if group not in groups:
                raise InputError(f"no row of {name!r} is of the reference group {group!r}; {nearest(group, groups)}")
            references[name] = group
        single = [{"name": name, "columns": [name], "reference": references[name]} for name in names]
        if len(names) == 1:
            return single
        crossed = {"name": CROSSING.join(names), "columns": names, "reference": CROSSING.join(references.values())}
        return [crossed, *single]


def spec_of(
    data: Data,
    *,
    methods: Mapping[str, Any],
    reference: Any = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    model: Model | None = None,
    random_state: Any = 0,
    further: Mapping[str, Any] | None = None,
) -> AuditSpec:
    """The audit spec with the meaning of the arguments of a class.

    Args:
        data: Rows, decisions and groups.
        methods: Method -> its settings; no other runs, not even those that an audit runs by default.
        reference: Group that the others are compared with.
        columns: Column -> keys of the spec that differ from what its values show.
        model: Of which decisions are explained; none if None.
        random_state: Seed.
        further: Other parts of the spec.

    Raises:
        SpecError: What the arguments say does not fit together.
    """
    overrides = dict(columns or {})
    for name in overrides:
        if name not in data.rows.names:
            raise InputError(f"X has no column {name!r}; {nearest(name, data.rows.names)}")
    values: dict[str, Any] = {
        "name": "frame",
        "year": YEAR,
        "source": {"kind": "frame"},
        "decision": {"column": data.decision, "favourable": [SIDES[True]], "unfavourable": [SIDES[False]]},
        "protected": data.protected(reference),
        "columns": {c.name: merged(c, overrides.get(c.name, {})) for c in data.rows.columns},
        "model": {"kind": "none"},
        "explain": {"decision_makers": ["lender" if model is None else "model"]},
        "methods": {**dict.fromkeys(registry.METHODS), **methods},
        "disclosure": {"profile": "internal"},
        "seed": seed_of(random_state),
        **(further or {}),
    }
    spec = registry.checked(values, "arguments")
    parts: dict[str, Any] = {"source": Source.of_frame(data.table)}
    if model is not None:
        parts["model"] = model
    return spec.model_copy(update=parts)


def merged(column: Column, override: Mapping[str, Any]) -> dict[str, Any]:
    """A column of a spec by its values and by the keys of the user; without categories where another type is set.

    Raises:
        InputError: Its numbers are texts, and the user says no type.
    """
    if column.number_as_text and "type" not in override:
        raise InputError(
            f"column {column.name!r} has numbers as text ({column.number_as_text!r}): take off signs and use "
            f"pandas.to_numeric, or say columns={{{column.name!r}: {{'type': 'nominal'}}}} if they are codes"
        )
    out = {**column.spec, **override}
    if out["type"] not in ("ordinal", "binary") and "order" not in override:
        out.pop("order", None)
    return out


def seed_of(random_state: Any) -> int:
    """A seed of an audit from what scikit-learn takes as a random state."""
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        draw = random_state.randint if isinstance(random_state, np.random.RandomState) else random_state.integers
        return int(draw(2**31))
    return 0 if random_state is None else int(random_state)


@dataclass
class Run:
    """The tables of an audit that ran in memory."""

    spec: AuditSpec
    data: Data
    tables: dict[str, pa.Table] = field(repr=False)

    def rows(self, table: str, **values: Any) -> pd.DataFrame:
        """The rows of a table with these values."""
        frame: pd.DataFrame = self.tables[table].to_pandas()
        for name, value in values.items():
            frame = frame[frame[name] == value]
        return frame

    def labels(self, row_ids: Sequence[Any]) -> pd.Index:
        """The labels, in the frame's index, of rows by their ids."""
        numbers = pd.Series(row_ids, dtype=object).map(row_number)
        return self.data.rows.index[numbers.to_numpy(np.int64)]

    @property
    def refused(self) -> pd.DataFrame:
        """The rows that no figure is about, by their labels, each with stage, reason and column."""
        rows = self.rows("refusals")[["row_id", "stage", "reason", "column"]]
        labelled = rows.set_index(self.labels(rows["row_id"])).drop(columns="row_id")
        return labelled.rename_axis(self.data.rows.index.name)


def row_number(row_id: Any) -> int:
    """The place in the frame, from 0, of a row that is identified by its number in the source."""
    return int(str(row_id).rpartition("-")[2]) - 1


def run(data: Data, spec: AuditSpec, subject: str, until: str = "measure") -> Run:
    """Run the stages up to one, on one thread as the pipeline does.

    Args:
        data: That the spec is about.
        spec: Of the audit.
        subject: What needs the libraries, for the message where one is not installed.
        until: The last stage.

    Raises:
        MissingExtraError: A stage needs a library of an extra.
        SpecError, DataQualityError: As the stages say.
    """
    from tasks.in_memory import tables_through  # loads the declarations of every stage

    return Run(spec, data, calling(lambda: tables_through(spec, until), subject))


def calling(call: Callable[[], Any], subject: str) -> Any:
    """The result of stages, on one thread; an error names the extra of a library that is not installed."""
    try:
        with threadpool_limits(1, user_api="blas"):
            return call()
    except ImportError as error:
        message = missing_extra(error, subject)
        if message is None:
            raise
        raise message from error


def given_columns(names: Sequence[str], what: str, rows: Rows, frame: str = "X") -> list[str]:
    """Column names of a parameter, which the frame, called ``frame`` in messages, has.

    Raises:
        InputError: The parameter is a text and no list, or the frame has no such column.
    """
    if isinstance(names, str):
        raise InputError(f"{what} is {names!r}; give a list of columns, [{names!r}]")
    for name in names:
        if name not in rows.names:
            raise InputError(f"{what} names {name!r}, and {frame} has no such column; {nearest(name, rows.names)}")
    return list(names)
