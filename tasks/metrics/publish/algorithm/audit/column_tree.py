"""Splits the columns of linked attributes into a tree of small sets, so that cells need not cross all columns.

Counts are of one attribute each. Tables over sets of columns that agree where neighbours in a junction tree overlap
come from one table of all columns, in whole numbers too: join two tables value by value of what they share. So the
bounds of a count are those of a table of all columns crossed. Source: Lauritzen and Spiegelhalter 1988 (junction
trees); Dobra and Fienberg 2000 (bounds of counts over decomposable graphs).
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

Columns = frozenset[str]


def cliques(sets: Iterable[Columns]) -> list[Columns]:
    """Sets of columns that hold each of the given sets, cliques of a chordal graph; one empty set where there are none.

    Columns are eliminated one by one, the one that adds fewest edges first, by name where several do.
    """
    near: dict[str, set[str]] = {}
    for each in sets:
        for column in each:
            near.setdefault(column, set()).update(each - {column})
    out: list[Columns] = []
    while near:
        column = min(near, key=lambda name: (_fill(near, name), name))
        around = near.pop(column)
        out.append(frozenset(around | {column}))
        for other in around:
            near[other] = (near[other] | around) - {column, other}
    return [each for each in out if not any(each < other for other in out)] or [frozenset()]


def _fill(near: dict[str, set[str]], column: str) -> int:
    """Edges that eliminating a column adds among its neighbours."""
    return sum(one not in near[other] for one, other in combinations(sorted(near[column]), 2))


def junctions(sets: Sequence[Columns]) -> list[tuple[int, int]]:
    """Pairs of neighbours in a junction tree over cliques: a spanning tree with the largest overlaps (Prim)."""
    inside, out = [0], []
    while len(inside) < len(sets):
        outside = [i for i in range(len(sets)) if i not in inside]
        pair = max(
            ((i, j) for i in inside for j in outside), key=lambda p: (len(sets[p[0]] & sets[p[1]]), -p[1], -p[0])
        )
        out.append(pair)
        inside.append(pair[1])
    return out
