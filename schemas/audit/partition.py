"""The parts ``by`` and ``sampling`` of the spec: one audit a lender, or value of any column; samples of large ones.

A spec with ``by`` is audited once for each value of a column that has people enough, and once over every row, as the
partition ``all``. Beyond ``sampling`` a part of the applicants is asked; whom they are compared with is never sampled.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from pydantic import Field

from schemas.bounds import Strict
from schemas.errors import SpecError

ALL: Final = "all"
"""The partition over every row."""
_LONGEST: Final = 40
"""Letters of a slug."""


class By(Strict):
    """One audit for each value of a column."""

    column: str = Field(
        description="column of the source, such as lender_id: not derived, not protected, not the decision; at most "
        "20,000 values"
    )
    minimum: int = Field(
        500, ge=100, description="usable rows that a partition needs to be audited; one with fewer is `too few`"
    )
    values: tuple[str, ...] = Field((), description="only these partitions; every one if left out")
    largest: int | None = Field(None, ge=1, description="only so many, the largest first; every one if null")
    full: bool = Field(
        False,
        description="whether partitions are computed in full, with what their short reports do not print: curves, "
        "size-matched draws and lifted rules of FGCE, other k and tau, permuted labels and lifted arrows of CST",
    )

    def faults(
        self, attributes: Mapping[str, str], decided: Collection[str], derived: Mapping[str, str]
    ) -> Iterator[SpecError]:
        """Faults of the partition column: it must not be compared, decide, or be derived from other columns.

        Args:
            attributes: column -> the protected attribute that it tells.
            decided: columns of the decision and its outcome.
            derived: derived column -> the column of the source that it is made from.
        """
        name, instead = self.column, "name a column such as lender_id"
        if name in attributes:
            message = f"{name!r} is the protected attribute {attributes[name]}: a partition would hold one group alone"
            yield SpecError(f"{message}; {instead}", ("by", "column"))
        if name in decided:
            message = f"{name!r} is the decision or its outcome: a partition would hold one decision alone"
            yield SpecError(f"{message}; {instead}", ("by", "column"))
        if name in derived:
            message = f"{name!r} is derived; partitions are by a column of the source, such as {derived[name]!r}"
            yield SpecError(message, ("by", "column"))


class Part(Strict):
    """The partition that a run is about."""

    column: str = Field(description="filled in")
    value: str = Field(description="filled in")
    """Of the column, as its cells have it; ``ALL`` is not a part but every row."""
    rows_sha256: str = Field(description="filled in")
    """Of the partition's own rows, so that a corrected lender changes its own run and no other."""


class Sampling(Strict):
    """How many rows of a large partition are sampled; docs/limits.md describes the effect on intervals."""

    queries: int = Field(
        20_000,
        ge=2_000,
        description="applicants outside the reference group that CST, CEC and GCFN query, for each protected "
        "attribute; more are sampled in proportion, 2,000 of a group at least",
    )
    pool_rows: int | None = Field(
        200_000,
        ge=2_000,
        description="rows of all groups that CST and CEC compare these applicants with; more are sampled in "
        "proportion, a tenth of the number of a group at least; null: all",
    )
    graph_rows: int = Field(
        50_000, ge=2_000, description="rows of the graph of FGCE, drawn five times where there are more"
    )


def slug(value: str) -> str:
    """A value as a part of a run's name: letters, digits and ``_``. Values may share one: their run ids differ."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", value).strip("_")[:_LONGEST]
    return plain.strip("_") or "x"


SAMPLED: Final = "sampled"
"""The parameter of measures of which a sample was asked: ``2000 of 17593``."""


def as_sampled(sample_size: int, of: int) -> str:
    """The sample that the parameter ``sampled`` describes."""
    return f"{sample_size} of {of}"


def asked_and_of(sampled: str) -> tuple[int, int]:
    """What ``as_sampled`` was made from."""
    sample_size, _, of = sampled.partition(" of ")
    return int(sample_size), int(of)


def unsampled(parameters: str) -> str:
    """The parameters of a measure, a JSON object, without the sample size: its lookup key."""
    if f'"{SAMPLED}"' not in parameters:
        return parameters
    retained = {name: value for name, value in json.loads(parameters).items() if name != SAMPLED}
    return json.dumps(retained, sort_keys=True)


class Size(NamedTuple):
    """Rows that an audit is about."""

    rows: int
    """Of its source."""
    asked: int
    """Those of them that methods ask, at most, by ``sampling``."""
    graph: int
    """Those of them that are in a feasibility graph, at most, by ``sampling``."""
    pool: int
    """Those of them that are compared with, at most, by ``sampling``."""

    @classmethod
    def of(cls, rows: int, sampling: Sampling | None) -> "Size":
        """Size of an audit of so many rows."""
        if sampling is None:
            return cls(rows, rows, rows, rows)
        pool = min(rows, sampling.pool_rows or rows)
        return cls(rows, min(rows, sampling.queries), min(rows, sampling.graph_rows), pool)


class Growth(NamedTuple):
    """Line of a stage's memory beyond what its process holds before it reads a row.

    Measured on Boston (2,000 rows) and Texas 2022 (12,500 and 50,000), each stage in a process of its own: the line
    through the first and the last (docs/benchmarks.md).
    """

    fixed_mb: float = 0.0
    thousand_mb: float = 0.0
    """For each thousand rows."""
    of: Literal["rows", "asked", "graph"] = "rows"
    """Which rows of ``Size`` it grows with."""
    beyond_mb: float = 0.0
    """For each thousand rows of the source beyond these, which are read and not asked."""

    def at(self, size: Size) -> float:
        """MB at a size."""
        grown: int = getattr(size, self.of)
        return self.fixed_mb + (self.thousand_mb * grown + self.beyond_mb * (size.rows - grown)) / 1000
