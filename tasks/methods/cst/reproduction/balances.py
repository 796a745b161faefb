"""Figure 2 of the CST paper: account balances of women, factual and counterfactual, and around single complainants.

The left half is the distribution of one column before and after the intervention. The right half has the mean of that
column in three groups around a complainant: the control group, the test group of situation testing, and that of
counterfactual situation testing. The paper draws five complainants at random among those whom both methods detect; here
they are the five with the largest difference of shares.

Scope: figures without printed numbers. Tables: ``obtained``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tasks.methods.cst.algorithm.comparisons import CST, ST, applicants_of
from tasks.methods.cst.algorithm.situations import NOBODY, Members
from tasks.methods.cst.reproduction.obtained import Tested
from tasks.numerics.arrays import Floats, Longs
from tasks.proof.drawings import Drawing, curves
from tasks.proof.lines import Cell, Value

BINS = 40
"""Equal-width bins of the distribution."""

SHOWN = 5
"""Complainants of the right half, as in the paper."""

CONTROL, SITUATION, COUNTERFACTUAL = "control group", "test group of ST", "test group of CST"


@dataclass(frozen=True)
class Balances:
    """One column of the complainants of a problem, ``c`` of them."""

    found: Tested
    column: str
    group: str
    """What the lines call the complainants."""

    @property
    def factual(self) -> Floats:
        """``(c,)`` the column as it is."""
        return self._all[self.found.row]

    @property
    def counterfactual(self) -> Floats:
        """``(c,)`` the column after the intervention.

        Raises:
            ValueError: The problem has no counterfactuals.
        """
        imagined = applicants_of(self.found.prepared.problem).counterfactuals
        if imagined is None:
            raise ValueError("Figure 2 compares with counterfactuals, and the problem has none")
        own: Floats = imagined.values[np.searchsorted(imagined.row, self.found.row), self._place]
        return own

    @property
    def most_different(self) -> Longs:
        """``(s,)`` places of the complainants with the largest delta of CST among those whom ST detects, too."""
        at = self.found.prepared.settings.ks.index(self.found.prepared.settings.k)
        delta = self.found.judged[CST].delta[at]
        both = np.flatnonzero((self.found.detected(CST)[at] > 0) & (self.found.detected(ST)[at] > 0))
        return both[np.argsort(-delta[both], kind="stable")][:SHOWN]

    @property
    def around(self) -> Mapping[str, Floats]:
        """Mean of the column in each of the three groups around those complainants, ``(s,)`` each."""
        compared, some = self.found.compared, self.most_different
        tested = np.searchsorted(compared.tested, some)
        return {
            CONTROL: self._means(compared.control.members, some),
            SITUATION: self._means(compared.factual.members, some),
            COUNTERFACTUAL: self._means(compared.test.members, tested),
        }

    @property
    def _place(self) -> int:
        return self.found.ground.applicants.columns.names.index(self.column)

    @property
    def _all(self) -> Floats:
        values: Floats = self.found.ground.applicants.columns.values[:, self._place]
        return values

    def _means(self, members: Members, some: Longs) -> Floats:
        rows = members.rows[some]
        means: Floats = np.nanmean(np.where(rows == NOBODY, np.nan, self._all[rows]), axis=1)
        return means


def cells(balances: Balances) -> Iterator[tuple[Cell, Value]]:
    """Yields the means behind both halves, and how often the test group of ST is nearer to the control group."""
    factual, imagined, at = balances.factual, balances.counterfactual, (balances.column,)
    for quantity, values in (
        ("mean_factual", factual),
        ("mean_counterfactual", imagined),
        ("mean_shift", imagined - factual),
    ):
        yield Cell(quantity, balances.group, at), float(values.mean())
    around = balances.around
    for name, means in around.items():
        for number, mean in enumerate(means.tolist(), start=1):
            yield Cell("mean_around", balances.group, (name, float(number))), mean
    nearer = np.abs(around[SITUATION] - around[CONTROL]) < np.abs(around[COUNTERFACTUAL] - around[CONTROL])
    yield Cell("st_nearer_to_control", balances.group), float(nearer.sum())


def drawings(balances: Balances) -> tuple[Drawing, ...]:
    """Returns both halves of Figure 2."""
    return _distributions(balances), _around(balances)


def _distributions(balances: Balances) -> Drawing:
    sides = {"factual": balances.factual, "counterfactual": balances.counterfactual}
    edges = np.histogram_bin_edges(np.concatenate(list(sides.values())), BINS)
    shares = {name: np.histogram(values, edges)[0] / len(values) for name, values in sides.items()}
    return Drawing(
        "balances-factual-and-counterfactual",
        "Figure 2",
        f"{balances.column} of complainants: {balances.group}",
        f"{balances.column}, middle of {BINS} bins",
        "share of complainants",
        curves(((edges[1:] + edges[:-1]) / 2).tolist(), {name: y.tolist() for name, y in shares.items()}),
    )


def _around(balances: Balances) -> Drawing:
    some = balances.most_different
    own = {
        "the complainant": balances.factual[some],
        "its counterfactual": balances.counterfactual[some],
    }
    means = {name: y.tolist() for name, y in {**balances.around, **own}.items()}
    return Drawing(
        "balances-around-complainants",
        "Figure 2",
        f"{balances.column} around the {len(some)} complainants with the largest delta that ST and CST both detect",
        "complainant, by falling delta",
        f"mean {balances.column} of the group",
        curves(range(1, len(some) + 1), means),
    )
