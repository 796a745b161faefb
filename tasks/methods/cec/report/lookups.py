"""What CEC's chapter looks measures up by: pairs of groups, theta, and the words that all of its parts share.

Here belong names and lookups. What is shown, and how it is read, is in the parts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from schemas.terms import Role
from tasks.methods.cec.algorithm.score import REGIMES
from tasks.methods.cec.settings import CecSettings
from tasks.reporting.charts.vega import ACCENT, REFERENCE, WARM
from tasks.reporting.lookups import Lookup
from tasks.reporting.material import Measure, listed
from tasks.reporting.numbers import count, missing_words
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

    @property
    def cells(self) -> tuple[Cell, Cell, Cell]:
        """The first cells of a row."""
        return Cell(str(self.number)), Cell(self.group), Cell(self.to)


PAIR_HEADER = ("Pair", "Group", "Matched with")


class Reasons(Lookup):
    """The measures of CEC for one decision maker and one protected attribute."""

    METHOD = "cec"

    @cached_property
    def settings(self) -> CecSettings:
        """What the audit asked of the method."""
        return self.material.asked(CecSettings)

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


def undrawn_pairs(pairs: Iterable[Pair], drawn: set[str]) -> str:
    """Which pairs a figure leaves out, by the words of those that it draws."""
    out = [pair.words for pair in pairs if pair.words not in drawn]
    return f" Not drawn, because withheld or undefined: {listed(out)}." if out else ""
