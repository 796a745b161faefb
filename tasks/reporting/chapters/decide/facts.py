"""What the first page is decided from: published verdicts and groups, and facts of the run.

Every number is one that was published: nothing here is raw, and ``None`` is withheld or not measured.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from schemas.terms import State, Theory

Key = tuple[str, str]
"""Protected attribute and group: groups of two attributes may have one name."""
LEFT_OUT = 0.05
"""Share of applications without every feature above which the page has a line on them."""
TINY = 1e-9
"""What sums of published numbers are off by."""
_NUMBERS = (
    *("value", "low", "high", "plain_low", "plain_high", "robustness", "bias", "detectable", "needed"),
    *("n", "events", "n_reference"),
)


@dataclass(frozen=True)
class Row:
    """A row of the table ``verdicts``; names as there. One that is withheld keeps no number and no state."""

    theory: Theory
    state: State
    role: str = "primary"
    protected_attribute: str = ""
    group: str = ""
    reference_group: str | None = None
    decision_maker: str = ""
    measure: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    plain_low: float | None = None
    plain_high: float | None = None
    robustness: float | None = None
    bias: float | None = None
    limit: float | None = None
    side: str | None = None
    detectable: float | None = None
    needed: float | None = None
    n: int | None = None
    events: int | None = None
    n_reference: int | None = None
    reason: str = ""
    withheld: bool = False

    def __post_init__(self) -> None:
        if self.withheld:
            for name in _NUMBERS:
                object.__setattr__(self, name, None)
            object.__setattr__(self, "state", State.INSUFFICIENT_EVIDENCE)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """From a row of the table; columns that the page does not need are left out, and what is not finite is None."""
        known = {each.name: _known(row[each.name]) for each in fields(cls) if each.name in row}
        return cls(**{**known, "theory": Theory(row["theory"]), "state": State(row["state"])})

    @property
    def key(self) -> Key:
        """Whom it is about."""
        return self.protected_attribute, self.group

    @property
    def ends(self) -> tuple[float, float] | None:
        """The verdict interval, or the two-sided 95 % interval where no limit was tested; None without either."""
        for low, high in ((self.low, self.high), (self.plain_low, self.plain_high)):
            if low is not None and high is not None:
                return low, high
        return None

    @property
    def outside_but_for_missing(self) -> bool:
        """Whether it is open only because its interval counts columns that the table lacks (verdicts.md 5).

        The end is taken at the level that Holm left the widened row. Without the widening the level is never stricter,
        so that a row that is outside here would be outside there.
        """
        if self.state is not State.INSUFFICIENT_EVIDENCE or self.side != "at_most":
            return False
        if self.low is None or self.limit is None or not self.bias:
            return False
        return self.low + self.bias > self.limit + TINY


@dataclass(frozen=True)
class Group:
    """A group of people, as published."""

    attribute: str
    name: str
    n: int | None = None
    """Applications; None where withheld."""
    approval: float | None = None
    """Share approved by the decision maker whose outcomes are judged, as published; None where withheld."""
    shown: str = ""
    """The share of 100 in words, where only a range is published: ``more than 95``."""
    reference: bool = False
    decision_maker: str = field(default="", compare=False)
    """Whose decisions; empty where that is not known."""

    @property
    def key(self) -> Key:
        """Attribute and name."""
        return self.attribute, self.name


@dataclass(frozen=True)
class LeftOut:
    """Applications that lack a feature: they count in the lender's approval rates alone."""

    n: int
    of: int
    """Applications of the source that an audit of complete rows would have used."""
    denied: float | None = None
    """Share denied among them; None where withheld or unknown."""
    denied_of_others: float | None = None

    @property
    def is_told(self) -> bool:
        """Whether they are more than 5 %."""
        return self.n > LEFT_OUT * self.of


@dataclass(frozen=True)
class Lost:
    """A group of which half or more lack a feature, as published."""

    attribute: str
    name: str
    n: int
    """Applications that an audit of complete rows would have used."""
    used: int
    """Those that have every feature."""
    columns: tuple[str, ...]
    """Features that they lack, the one named most often first."""


@dataclass(frozen=True)
class Benchmark:
    """The strongest column on file, and the shares of what is left of group and of approval that it explains."""

    column: str
    of_group: float
    of_approval: float


@dataclass(frozen=True)
class Files:
    """Files of denied applicants that are worth reading, and the command that packs them."""

    n: int | None = None
    command: str = ""


@dataclass(frozen=True)
class GraphTests:
    """Tests of the assumed graph on the data."""

    n: int
    against: int
    """That speak against it after correction for their number."""


@dataclass(frozen=True)
class Run:
    """All that the first page is decided from."""

    rows: tuple[Row, ...]
    groups: tuple[Group, ...]
    """Reference groups and judged groups of every attribute, in any order."""
    warnings: tuple[str, ...] = ()
    """Names of warnings about the data, of ``headline.what`` in sentences.yaml; other texts are printed as they are."""
    minimum_n: int = 30
    columns: Mapping[Key, int] = field(default_factory=dict)
    """Columns that the adjusted comparison of a group adjusts for."""
    neighbours: int | None = None
    """Nearest applicants that each is compared with."""
    credit_history: bool = True
    """Whether a column has the role of a credit history."""
    strongest: Mapping[Key, Benchmark] = field(default_factory=dict)
    files: Mapping[Key, Files] = field(default_factory=dict)
    graph_tests: GraphTests | None = None
    left_out: LeftOut | None = None
    lost: tuple[Lost, ...] = ()
    """The largest group first."""
    complete: bool = False
    """Whether the spec says that the columns are all that the lender decided by."""
    year: int = 0
    """Of the data."""
    lacking: tuple[str, ...] = ()
    """Columns that the audit asks for and the data of the year do not have."""
    public: bool = False
    """Whether the data are a public file and not the lender's own."""
    lenders: int | None = 1
    """Lenders in the data; None where a file says nothing of their number."""
    sampled: bool = False
    """Whether the data are a sample of others."""
    asked: tuple[int, int] | None = None
    """Applicants of one group, or of the graph, who were drawn to be asked, and of how many: where fewest of all were;
    None where everybody was asked."""
    years_old: int | None = None
    """Age of the data in the year of the run; None where it does not matter."""

    def theory(self, theory: Theory) -> Row | None:
        """The row of a theory as a whole; None where the run has none."""
        found = [row for row in self.rows if row.theory is theory and row.role == "theory"]
        return found[0] if found else None


def _known(value: Any) -> Any:
    """None in place of a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
