"""Look-up of CEC: measures by pair of groups, columns of tables of pairs, and the words for regimes.

Scope: names and look-ups. What is shown, and how it is read: the parts of the chapter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from schemas.terms import Role
from tasks.methods.cec.algorithm.score import REGIMES
from tasks.methods.cec.settings import CecSettings
from tasks.reporting.charts.vega import ACCENT, REFERENCE, WARM
from tasks.reporting.lookups import Lookup
from tasks.reporting.material import Measure, Unit, listed
from tasks.reporting.numbers import count, missing_words, n_cell, number_cell, value_cell
from tasks.reporting.section import Cell, Swatch

_WORDS = (
    "same decision, same reasons",
    "same decision, different reasons (hidden)",
    "different decision, same reasons",
    "different decision, different reasons",
)
_COLOURS = (ACCENT, WARM, "#56B4E9", REFERENCE)
_DASHES = ("", "6 3", "2 2", "8 3 2 3")
REGIME_LINES = {
    regime: Swatch(f"{regime}: {words}", colour, dash)
    for regime, words, colour, dash in zip(REGIMES, _WORDS, _COLOURS, _DASHES, strict=True)
}
"""The regimes: their words, and how their lines are drawn."""


@dataclass(frozen=True)
class Pair:
    """A group, and the group that its members are matched with."""

    group: str
    to: str
    number: int
    """By which figures name it."""

    @property
    def words(self) -> str:
        """The pair as it stands in sentences and on axes."""
        return f"{self.group} → {self.to}"

    @property
    def numbered(self) -> str:
        """The pair with its number before it."""
        return f"{self.number}  {self.words}"


Column = Callable[[Pair], Cell]
PAIR: Mapping[str, Column] = {
    "Pair": lambda pair: Cell(str(pair.number)),
    "Group": lambda pair: Cell(pair.group),
    "Matched with": lambda pair: Cell(pair.to),
}
"""First columns of a table of pairs."""


class Reasons(Lookup[CecSettings]):
    """The measures of CEC for one decision maker and one protected attribute."""

    METHOD, SETTINGS = "cec", CecSettings

    @cached_property
    def financial(self) -> frozenset[str]:
        """The columns by which applicants are matched."""
        columns = self.material.settings.columns.items()
        return frozenset(name for name, column in columns if Role.FINANCIAL in column.role)

    @cached_property
    def headline(self) -> tuple[Pair, ...]:
        """Every group with the reference group, groups of whom nothing was measured too."""
        return tuple(Pair(group, self.view.reference, number) for number, group in enumerate(self.others, 1))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The headline's pairs, then those that were measured in another direction or between other groups."""
        found = {(m.group, str(m.said["matched_with"])) for m in self.view.rows if "matched_with" in m.said}
        others = [(group, to) for group in self.view.groups for to in self.view.groups if (group, to) in found]
        first = len(self.headline) + 1
        return (*self.headline, *(Pair(*each, number) for number, each in enumerate(others, first)))

    def get(self, pair: Pair, measure: str, **parameters: float | str) -> Measure | None:
        """A measure of a pair of groups; the headline's pairs are not named among the parameters."""
        named = {} if pair.to == self.view.reference else {"matched_with": pair.to}
        return self.view.get(pair.group, measure, {**named, **parameters})

    def n(self, measure: str) -> Column:
        """The column of what stands behind a measure."""
        return lambda pair: n_cell(self.get(pair, measure))

    def values(self, measure: str, unit: Unit, **parameters: float | str) -> Column:
        """The column of a measure."""
        return lambda pair: value_cell(self.get(pair, measure, **parameters), unit)

    def events(self, measure: str) -> Column:
        """The column of how many a share counts, or why that is not said."""

        def cell(pair: Pair) -> Cell:
            m = self.get(pair, measure)
            return Cell(missing_words(m), "none") if m is None or m.events is None else number_cell(count(m.events))

        return cell

    @property
    def counted(self) -> str:
        """How many pairs of applicants stand behind a figure, and of whom they are too few."""
        found = {pair: m for pair in self.headline if (m := self.get(pair, "cec"))}
        said = [f"{p.group} {missing_words(m) if m.n is None else count(m.n)}" for p, m in found.items()]
        few = [p.group for p, m in found.items() if m.n is not None and m.n < self.minimum]
        none = [p.group for p in self.headline if p not in found]
        return "".join(
            (
                f" Pairs compared: {', '.join(said)}." if said else "",
                f" Fewer than {self.minimum}, too few to say: {listed(few)}." if few else "",
                f" No pair could be compared: {listed(none)}." if none else "",
            )
        )
