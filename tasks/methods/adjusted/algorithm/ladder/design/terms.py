"""Terms that may be added to a rung: hinges of numbers, and products across controls.

A hinge is how far a number lies above, or below, one of its quantiles. Each term is a product of two factors, the first
of which is 1 for a hinge alone, so that no matrix of all terms is ever held.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.applications import Applications, Control
from tasks.methods.adjusted.algorithm.ladder.design.coding import RARE, level_name, standardised
from tasks.methods.adjusted.algorithm.ladder.design.matrix import Design
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

KNOTS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of a number at which a hinge alone begins."""
PAIRED = ((0.5, 0.5), (0.75, 0.25))
"""Quantiles at which the hinges of a product begin: those above, and those below."""
MOST = 400
"""Most terms looked at; of more the products that vary most."""
AT_ONCE = 8
"""Terms of which all rows are held."""


@dataclass(frozen=True)
class Factor:
    """A column that terms are made of."""

    name: str
    control: int
    values: Floats
    """``(n,)``."""
    sort: str
    """``plain`` (a number or an indicator), ``knot`` (a hinge alone), or side and rank of a hinge in products."""


@dataclass(frozen=True)
class Terms:
    """Products of two factors each."""

    factors: Floats
    """``(f, n)``; the first is 1."""
    first: Ints
    """``(m,)`` a factor of each term."""
    second: Ints
    """``(m,)`` the other one."""
    names: tuple[str, ...]
    """``(f,)`` of the factors."""
    control: Ints
    """``(f,)`` which control a factor is of; -1 for the first."""

    def values(self, rows: Bools | Longs | slice, terms: Ints | slice = slice(None)) -> Floats:
        """``(rows, terms)``."""
        pairs = np.stack([self.first[terms], self.second[terms]])
        own, places = np.unique(pairs, return_inverse=True)
        one, two = places.reshape(pairs.shape)
        factors = self.factors[own][:, rows]
        found: Floats = factors[one]
        found *= factors[two]
        return found.T

    def name(self, term: int) -> str:
        """What a term is, in words."""
        first, second = self.names[self.first[term]], self.names[self.second[term]]
        return f"{first} x {second}" if first else second

    def kept(self, terms: Bools) -> "Terms":
        """Some of the terms."""
        return replace(self, first=self.first[terms], second=self.second[terms])


def terms_of(design: Design, applications: Applications, used: Bools, rung: int) -> Terms:
    """All terms of the controls up to a rung that have 30 rows or more and vary.

    Args:
        design: Rows and columns, numbers with their squares.
        applications: For the values of the controls, by which hinges are named.
        used: ``(n,)`` rows of the design.
        rung: Whose controls are looked at.
    """
    controls = [each for block in applications.blocks[:rung] for each in block.controls]
    factors = [Factor("", -1, np.ones(len(design.y)), "one")]
    for number, control in enumerate(controls):
        factors += _factors(design, number, control, used)
    pairs = [(0, k) for k, each in enumerate(factors) if each.sort == "knot"]
    pairs += [
        (i, j)
        for i, one in enumerate(factors)
        for j, other in enumerate(factors[i + 1 :], i + 1)
        if i and one.control != other.control and _meet(one, other)
    ]
    first, second = np.array(pairs, np.int32).reshape(-1, 2).T
    columns = np.stack([each.values for each in factors])
    found = Terms(
        columns, first, second, tuple(each.name for each in factors), np.array([each.control for each in factors])
    )
    return _common(found)


def _meet(one: Factor, other: Factor) -> bool:
    """Whether two factors make a product: plain ones, hinges of one rank, a hinge at the median with a level."""
    if "knot" in (one.sort, other.sort):
        return False
    if "plain" in (one.sort, other.sort):
        hinge, plain = (one, other) if other.sort == "plain" else (other, one)
        return hinge.sort in ("plain", "above 0") and (hinge.sort == "plain" or _is_indicator(plain.values))
    return one.sort[-1] == other.sort[-1]


def _is_indicator(values: Floats) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def _factors(design: Design, number: int, control: Control, used: Bools) -> Iterator[Factor]:
    """The factors of one control: its own columns but squares, the base of a category, and hinges of a number."""
    at = [j for j, of in enumerate(design.control) if of == number]
    squared = f"{control.name} squared"
    for j in at:
        if design.names[j] != squared:
            yield Factor(design.names[j], number, design.x[:, j], "plain")
    if control.kind == "category":
        if len(at) > 1:
            levels, counts = np.unique(control.values[used], return_counts=True)
            name = level_name(control, float(levels[counts.argmax()]))
            yield Factor(name, number, 1 - design.x[:, at].sum(axis=1), "plain")
    elif squared in (design.names[j] for j in at):
        yield from _hinges(control, number, design.x[:, at[0]], control.values[used])


def _hinges(control: Control, number: int, z: Floats, values: Floats) -> Iterator[Factor]:
    """Hinges of a number ``z`` as it stands in the design, named by its own ``values``."""
    for share in KNOTS:
        yield Factor(_named(control, "above", values, share), number, np.maximum(z - np.quantile(z, share), 0), "knot")
    for rank, (above, below) in enumerate(PAIRED):
        over, under = np.maximum(z - np.quantile(z, above), 0), np.maximum(np.quantile(z, below) - z, 0)
        yield Factor(_named(control, "above", values, above), number, over, f"above {rank}")
        yield Factor(_named(control, "below", values, below), number, under, f"below {rank}")


def _named(control: Control, side: str, values: Floats, share: float) -> str:
    return f"{control.name} {side} {np.quantile(values, share):.3g}"


def _common(terms: Terms) -> Terms:
    """Those that are not 0 in 30 rows or more; of more than 400 those that vary most."""
    count, spread = np.zeros(len(terms.first)), np.zeros(len(terms.first))
    for start in range(0, len(terms.first), AT_ONCE):
        part = np.arange(start, min(start + AT_ONCE, len(terms.first)), dtype=np.int32)
        values = terms.values(slice(None), part)
        count[part], spread[part] = (values != 0).sum(axis=0), values.std(axis=0)
    fit = (count >= RARE) & (spread > 0)
    if fit.sum() > MOST:
        order = np.argsort(-np.where(fit, np.where(terms.first == 0, np.inf, spread), -1.0), kind="stable")
        fit[order[MOST:]] = False
    return terms.kept(fit)


def added(design: Design, terms: Terms, chosen: list[int], rung: int) -> Design:
    """The design up to a rung with terms as its last columns. A hinge is a column of its control, a product of both.

    A term stands there less what the controls and the terms before it tell of it, which changes no effect: coefficients
    stay of the size of one, and separation is found by theirs. Groups are not taken out: no control may depend on them.
    """
    width = design.widths[rung]
    if not chosen:
        return design
    controls = design.x[:, np.r_[0, design.first_control : width]]
    columns = _orthogonal(controls, terms.values(slice(None), np.array(chosen, np.int32)))
    first, second = terms.control[terms.first[chosen]], terms.control[terms.second[chosen]]
    return replace(
        design,
        x=np.hstack([design.x[:, :width], columns]),
        names=(*design.names[:width], *(terms.name(k) for k in chosen)),
        control=(*design.control[:width], *(int(each) for each in second)),
        widths=(*design.widths[:rung], width + len(chosen)),
        partners={width + place: int(each) for place, each in enumerate(first) if each >= 0},
        terms=tuple(terms.name(k) for k in chosen),
    )


def _orthogonal(controls: Floats, columns: Floats) -> Floats:
    """Columns ``(n, k)`` less what the controls ``(n, p)`` and the columns before tell of them, standardised."""
    basis = np.linalg.qr(controls)[0]
    found = []
    for column in columns.T:
        left = column - basis @ (basis.T @ column)
        found.append(standardised(left - basis @ (basis.T @ left)))
        basis = np.column_stack([basis, found[-1] / np.sqrt(len(left))])
    return np.column_stack(found)
