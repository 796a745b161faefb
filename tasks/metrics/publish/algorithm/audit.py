"""Auditor of disclosure: what an attacker can infer from all published counts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy

from tasks.metrics.publish.algorithm.populations import ALL, Count, Event, People, Population, Published
from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# Splits the columns of linked attributes into a tree of small sets, so that cells need not cross all columns.
#
# Counts are of one attribute each. Tables over sets of columns that agree where neighbours in a junction tree overlap
# come from one table of all columns, in whole numbers too: join two tables value by value of what they share. So the
# bounds of a count are those of a table of all columns crossed. Source: Lauritzen and Spiegelhalter 1988 (junction
# trees); Dobra and Fienberg 2000 (bounds of counts over decomposable graphs).


Columns = frozenset[str]


def cliques(sets: Iterable[Columns]) -> list[Columns]:
    """Sets of columns that hold each of the given sets, cliques of a chordal graph; one empty set where there are none.

    Columns are eliminated one by one, the one that adds fewest edges first, by name where several do.
    """
    near: dict[str, set[str]] = {}
    for columns in sets:
        for column in columns:
            near.setdefault(column, set()).update(columns - {column})
    out: list[Columns] = []
    while near:
        # edges that eliminating a column adds among its neighbours
        added = {
            name: sum(first not in near[other] for first, other in combinations(sorted(around), 2))
            for name, around in near.items()
        }
        column = min(near, key=lambda name: (added[name], name))
        around = near.pop(column)
        out.append(frozenset(around | {column}))
        for other in around:
            near[other] = (near[other] | around) - {column, other}
    return [clique for clique in out if not any(clique < other for other in out)] or [frozenset()]


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


# --------------------------------------------------------------------------------------------------------------------
# Cells: the smallest sets of people that published counts distinguish, and each count as a sum of them.
#
# A cell is a combination of groups (of linked attributes) and a status. A status is a combination of bases and events,
# such as used, denied by the lender, approved by the model. Groups and statuses are crossed in full. Of groups, and of
# statuses, only combinations that occur are cells: the auditor then knows more than a reader, which is the safe side.


Feature = tuple[str, ...]
"""A code that atoms have: an attribute's group, its part by decision maker, or the value of a separator."""


@dataclass(frozen=True, eq=False)
class Block:
    """The cells of one set of columns: its atoms, each crossed with every status."""

    columns: Columns
    first: int
    """Index of its first cell."""
    features: Mapping[Feature, Longs]
    """``(atoms,)`` codes by feature."""
    rows: Longs
    """Atom of each row of people, ``(rows,)``."""
    atoms: int


@dataclass(frozen=True, eq=False)
class Cells:
    """All cells, those of every block one after another; each block's cells by atom, then by status."""

    people: People
    blocks: tuple[Block, ...]
    statuses: Longs
    """Status of each row of people, ``(rows,)``."""
    samples: Longs
    """A row of people that has it, for each status."""
    pairs: tuple[tuple[int, int, Feature], ...]
    """Neighbouring blocks, and the feature in which they agree."""

    @property
    def size(self) -> int:
        """Number of cells."""
        return sum(block.atoms for block in self.blocks) * self.samples.size

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First cell of each block, and the one after its last."""
        return [(block.first, block.first + block.atoms * self.samples.size) for block in self.blocks]

    @cached_property
    def truth(self) -> Longs:
        """People in each cell, ``(cells,)``."""
        weights = np.ones(self.statuses.size, dtype=np.int64) if self.people.weights is None else self.people.weights
        width = self.samples.size
        parts = [
            np.bincount(block.rows * width + self.statuses, weights=weights, minlength=block.atoms * width)
            for block in self.blocks
        ]
        return np.concatenate(parts).astype(np.int64)

    @cached_property
    def agreements(self) -> "scipy.sparse.csr_array":
        """Rows, ``(agreements, cells)``, with product 0 with a table of cells, since blocks count the same people."""
        plus, minus = [], []
        for first, right, feature in self.pairs:
            for value in np.unique(self.blocks[first].features[feature]):
                for status in range(self.samples.size):
                    plus.append(self._valued(self.blocks[first], feature, value, status))
                    minus.append(self._valued(self.blocks[right], feature, value, status))
        return _sparse(plus, minus, self.size)

    def _valued(self, block: Block, feature: Feature, value: int, status: int) -> Longs:
        return block.first + np.flatnonzero(block.features[feature] == value) * self.samples.size + status

    def sums(self, counts: Sequence[Count]) -> "scipy.sparse.csr_array":
        """The counts as sums of cells, ``(counts, cells)`` of 0 and 1."""
        plus = [self.indices(count) for count in counts]
        return _sparse(plus, [columns[:0] for columns in plus], self.size)

    def indices(self, count: Count) -> Longs:
        """Cells that a count counts, in order."""
        population = count.population
        population_columns = columns_of(self.people, population)
        atoms_block = next(
            block_of_columns for block_of_columns in self.blocks if population_columns <= block_of_columns.columns
        )
        inside = np.ones(atoms_block.atoms, dtype=bool)
        if population.group != ALL:
            inside = inside & (atoms_block.features["group", population.attribute] == self.people.code(population))
        if population.part:
            inside = inside & (
                atoms_block.features["part", population.attribute, population.decision_maker] == max(population.part, 0)
            )
        having = self._statuses(count)
        return (atoms_block.first + np.flatnonzero(inside)[:, None] * self.samples.size + having[None, :]).ravel()

    def around(self, count: Count) -> tuple[Longs, Longs]:
        """Cells with people of one group alone, which no cell separates, and cells with at least one person of it.

        A block that shares no column with the group is crossed with it in full. KeyError where several share some.
        """
        population, width = count.population, self.samples.size
        population_columns = columns_of(self.people, population)
        blocks = [block for block in self.blocks if block.columns & population_columns]
        if len(blocks) > 1:
            raise KeyError(f"several blocks of cells are of {sorted(population_columns)}")
        block = blocks[0] if blocks else self.blocks[0]
        atoms = block.rows if blocks else np.zeros_like(block.rows)
        group = self.people.of_group(population)
        some, outside = (np.bincount(atoms[mask], minlength=block.atoms) > 0 for mask in (group, ~group))
        if not blocks:
            some, outside = np.full(block.atoms, some[0]), np.full(block.atoms, outside[0])
        pure, touched = (
            (block.first + np.flatnonzero(mask)[:, None] * width + self._statuses(count)[None, :]).ravel()
            for mask in (some & ~outside, some)
        )
        return pure, touched

    def _statuses(self, count: Count) -> Longs:
        inside = self.people.bases[count.population.place][self.samples]
        if count.event:
            event = self.people.events[count.happening][self.samples]
            inside = inside & (~event if count.rest else event)
        return np.flatnonzero(inside)


def cells_of(people: People, counts: Sequence[Count]) -> Cells:
    """The cells that the given counts distinguish. KeyError where a count names an unknown base, event or attribute."""
    places = dict.fromkeys(count.population.place for count in counts)
    events = dict.fromkeys(count.happening for count in counts if count.event)
    marks = [people.bases[place] for place in places] + [people.events[event] for event in events]
    samples, statuses = _distinct(np.column_stack(marks))
    populations = list(dict.fromkeys(count.population for count in counts))
    sets = cliques(sorted({columns_of(people, population) for population in populations}, key=sorted))
    features = [_features(people, columns, populations) for columns in sets]
    # Neighbouring sets and the feature in which they agree, which both are given.
    codes, join_pairs = coarse(people), []
    for number, (join_first, right) in enumerate(junctions(sets)):
        shared = [codes[column] for column in sorted(sets[join_first] & sets[right])]
        name = ("separator", str(number))
        _, value = _distinct(np.column_stack([*shared, np.zeros_like(codes[""])]))
        features[join_first][name] = features[right][name] = value
        join_pairs.append((join_first, right, name))
    pairs = tuple(join_pairs)
    blocks, first = [], 0
    for columns, coded in zip(sets, features, strict=True):
        chosen, rows = _distinct(np.column_stack([*coded.values(), np.zeros(statuses.size, dtype=np.int64)]))
        coded = {feature: codes[chosen] for feature, codes in coded.items()}
        blocks.append(Block(columns, first, coded, rows, chosen.size))
        first += chosen.size * samples.size
    return Cells(people, tuple(blocks), statuses, samples, pairs)


def columns_of(people: People, population: Population) -> Columns:
    """Columns that determine membership of a population; its parts are a separate column."""
    parts = {_parts(population.attribute, population.decision_maker)} if population.part else set()
    return frozenset(parts | (set() if population.group == ALL else {*people.attribute(population.attribute).columns}))


def _parts(attribute: str, decision_maker: str) -> str:
    """Name of the column that parts are."""
    return f"parts of {attribute}, {decision_maker}"


def _features(people: People, columns: Columns, populations: Sequence[Population]) -> dict[Feature, Longs]:
    """Codes of rows that distinguish the populations over these columns, ``(rows,)`` each."""
    out: dict[Feature, Longs] = {}
    for population in populations:
        if not columns_of(people, population) <= columns:
            continue
        if population.group != ALL:
            out["group", population.attribute] = people.attribute(population.attribute).codes
        if population.part:
            key = population.attribute, population.decision_maker
            out["part", *key] = people.parts[key]
    return out


def coarse(people: People) -> dict[str, Longs]:
    """Codes of every column, ``(rows,)`` each, values that no attribute distinguishes are merged.

    A column keeps its own values where an attribute of several columns is no function of the coarser ones.
    """
    rows = next(iter(people.bases.values())).size
    out = {}
    for name, values in people.columns.items():  # combinations of the groups of all attributes over this one column
        codes = [attribute.codes for attribute in people.attributes if attribute.columns == (name,)]
        out[name] = _distinct(np.column_stack(codes))[1] if codes else np.asarray(values, dtype=np.int64)
    for attribute in people.attributes:
        made_of = np.column_stack([np.zeros(rows, dtype=np.int64), *(out[column] for column in attribute.columns)])
        if len(_distinct(made_of)[0]) < len(_distinct(np.column_stack([made_of, attribute.codes]))[0]):
            out.update({column: people.columns[column] for column in attribute.columns})
    parts = {_parts(*key): codes for key, codes in people.parts.items()}
    return out | parts | {"": np.zeros(rows, dtype=np.int64)}


def _distinct(codes: Longs | Bools) -> tuple[Longs, Longs]:
    """Of ``(rows, k)`` codes: one row for each distinct combination, and the combination of each row."""
    _, first, inverse = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.ravel().astype(np.int64)


def _sparse(plus: Sequence[Longs], minus: Sequence[Longs], width: int) -> "scipy.sparse.csr_array":
    """Rows with 1 at the indices in ``plus`` and -1 at those in ``minus``."""
    columns = [np.concatenate(pair) for pair in zip(plus, minus, strict=True)]
    values = [np.repeat([1.0, -1.0], [first.size, other.size]) for first, other in zip(plus, minus, strict=True)]
    ends = np.cumsum([0, *(column.size for column in columns)])
    joined = np.concatenate(columns) if columns else np.empty(0, dtype=np.int64)
    data = np.concatenate(values) if values else np.empty(0)
    return scipy.sparse.csr_array((data, joined, ends), shape=(len(columns), width))


# --------------------------------------------------------------------------------------------------------------------
# Linear and integer programmes over tables of cells that fit what is published, solved by HiGHS.
#
# Scope: programmes. What they say about a count is in ``auditor``.


NODES = 2000
"""Limit of the integer programme's search tree; not of seconds, so that every machine finds the same."""
SLACK = 1e-6
"""What HiGHS may miss a bound by."""


class SpentError(Exception):
    """A programme would take more than the work that is allowed."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Cells that may change while all others stay as they truly are, and the constraints on them."""

    cells: Longs
    rows: Longs
    """Rows, of counts and of agreements after them, that have some of the cells."""
    matrix: "scipy.sparse.csr_array"
    rest: Floats
    """What the other cells add to these rows."""


class Programme:
    """Tables of cells that fit bounds of some sums of them. ``low`` and ``high`` are ``(rows,)``, infinite for none."""

    def __init__(self, cells: Cells, rows: "scipy.sparse.csr_array") -> None:
        self.truth: Floats = cells.truth.astype(np.float64)
        self.matrix, self.agreements = rows, cells.agreements
        self._parts = [np.arange(first, last, dtype=np.int64) for first, last in cells.spans]
        self._most = 2 * self.truth.sum() + 100
        self._scopes: dict[int, Scope] = {}
        self.effort = 0.0
        """Work of all programmes solved so far: 40,000 are about a second."""
        self.limit = np.inf
        """Work that is allowed."""

    def add(self, rows: Sequence[int]) -> None:
        """A further row: the sum of rows that share no cell."""
        row = scipy.sparse.csr_array(self.matrix[list(rows)].sum(axis=0)[None, :])
        self.matrix = scipy.sparse.csr_array(scipy.sparse.vstack([self.matrix, row]))
        self._scopes = {}

    def parts(self, row: int) -> list[int]:
        """Scopes in which a row can change, the smaller first: its own block of cells, then all cells (-1)."""
        first = self.matrix[[row]].indices[0] if self.matrix[[row]].nnz else 0
        block = next(number for number, part in enumerate(self._parts) if part[0] <= first <= part[-1])
        return [block, -1] if len(self._parts) > 1 else [-1]

    def solve(
        self, aim: Floats, low: Floats, high: Floats, integral: bool, part: int = -1
    ) -> tuple[float, Floats | None]:
        """The least value of ``aim``, ``(cells,)``, and a table that has it; NaN where the search was cut short.

        Raises:
            SpentError: it would take more than the work that is allowed.
        """
        if part not in self._scopes:
            matrix = scipy.sparse.csr_array(scipy.sparse.vstack([self.matrix, self.agreements]))
            cells = np.arange(self.truth.size, dtype=np.int64) if part < 0 else self._parts[part]
            inside = scipy.sparse.csr_array(matrix[:, cells])
            rows = np.flatnonzero(np.diff(inside.indptr)).astype(np.int64)
            rest = np.asarray(matrix @ self.truth - inside @ self.truth[cells])[rows]
            self._scopes[part] = Scope(cells, rows, scipy.sparse.csr_array(inside[rows]), rest)
        scope = self._scopes[part]
        self._spend(scope.cells.size, integral)
        zeros = np.zeros(self.agreements.shape[0])
        least = np.concatenate([low, zeros])[scope.rows] - scope.rest
        most = np.concatenate([high, zeros])[scope.rows] - scope.rest
        solution = scipy.optimize.milp(
            aim[scope.cells],
            integrality=np.full(scope.cells.size, int(integral)),
            bounds=scipy.optimize.Bounds(0, self._most),
            constraints=scipy.optimize.LinearConstraint(scope.matrix, least, most),
            options={"node_limit": NODES, "mip_rel_gap": 0.0} if integral else {},
        )
        if solution.x is None:
            return np.nan, None
        table = self.truth.copy()
        table[scope.cells] = solution.x
        return (float(aim @ table) if solution.status == 0 else np.nan), table

    def elastic(
        self, row: int, beyond: tuple[float, float], low: Floats, high: Floats, costs: Floats
    ) -> tuple[float, Longs]:
        """Least cost of a table that has a row within ``beyond``, and the rows whose bounds it misses.

        A table may miss the bounds of a row at its cost for each person, ``(rows,)``; infinite where it may not. The
        cost returned is infinite where there is no such table. ``SpentError`` as in ``solve``.
        """
        rows, cells = self.matrix.shape
        self._spend(cells)
        slack, none = scipy.sparse.eye_array(rows), scipy.sparse.csr_array((self.agreements.shape[0], 2 * rows))
        matrix = scipy.sparse.vstack(
            [scipy.sparse.hstack([self.matrix, slack, -slack]), scipy.sparse.hstack([self.agreements, none])]
        )
        aim = scipy.sparse.hstack([self.matrix[[row]], scipy.sparse.csr_array((1, 2 * rows))])
        zeros = np.zeros(self.agreements.shape[0])
        fits = scipy.optimize.LinearConstraint(matrix, np.concatenate([low, zeros]), np.concatenate([high, zeros]))
        can_miss, prices = np.where(np.isfinite(costs), np.inf, 0.0), np.where(np.isfinite(costs), costs, 0.0)
        solution = scipy.optimize.milp(
            np.concatenate([np.zeros(cells), prices, prices]),
            bounds=scipy.optimize.Bounds(0, np.concatenate([np.full(cells, self._most), can_miss, can_miss])),
            constraints=[fits, scipy.optimize.LinearConstraint(aim, *beyond)],
        )
        if solution.status != 0:
            return np.inf, np.empty(0, dtype=np.int64)
        missed = solution.x[cells : cells + rows] + solution.x[cells + rows :]
        return float(solution.fun), np.flatnonzero(missed > SLACK)

    def _spend(self, cells: int, integral: bool = False) -> None:
        """Measured: a linear programme over 4,900 cells takes 0.6 s, one in whole numbers 10 to 25 s."""
        work = cells * (1 + cells / 1000) * (3 + cells / 300 if integral else 1)
        if self.effort + work > self.limit:
            raise SpentError
        self.effort += work


def is_whole(table: Floats) -> bool:
    """Whether a table has whole numbers, but for what HiGHS may miss."""
    return bool((np.abs(table - np.rint(table)) < SLACK).all())


# --------------------------------------------------------------------------------------------------------------------
# Computes the bounds that an attacker can infer for a count from all published numbers, by linear programming (HiGHS).
#
# Unknowns are the people in each cell. Every published count bounds a sum of cells. The attacker knows that people are
# whole, so that bounds by linear programming alone may be wider than the attacker's: they would call a count safe that
# is not. Hence the auditor calls a count open only by witnesses: two tables of whole numbers that fit all that is
# published and differ in the count by the width that is wanted. A witness is a vertex of the linear programme where
# that is whole, else a solution of the integer programme within a limit of nodes. Where the limit ends the search, the
# count is called closed. An error is thus always to the safe side. Source: rule 6 of the disclosure pass; decision
# 0034.


@dataclass(frozen=True)
class Interval:
    """Bounds of a count: in tables that fit the published numbers it is from ``least`` to ``largest``."""

    count: Count
    least: int
    largest: int
    proven: bool
    """Whether no table of whole numbers that fits has it lower or higher."""

    @property
    def width(self) -> int:
        """Distance of the ends: 0 where the count can be inferred exactly."""
        return self.largest - self.least


class _End(NamedTuple):
    """One end of what a programme allows for a count."""

    limit: float
    """Infinite where the search was cut short."""
    met: bool
    """Whether whole people meet it."""


class Witnesses:
    """Tables of whole people found so far, the true one first. A table that does not fit now may fit later."""

    def __init__(self, truth: Floats, rows: "scipy.sparse.csr_array") -> None:
        self._tables: list[Floats] = []
        self._values = np.empty((16, rows.shape[0]))
        self.keep(truth, rows)

    @property
    def values(self) -> Floats:
        """Rows of counts by table, ``(tables, rows)``."""
        return self._values[: len(self._tables)]

    def keep(self, table: Floats, rows: "scipy.sparse.csr_array") -> Floats:
        """Keep a table; its rows, ``(rows,)``."""
        if len(self._tables) == len(self._values):
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        values = np.asarray(rows @ table)
        self._values[len(self._tables)] = values
        self._tables.append(table)
        return values

    def renew(self, rows: "scipy.sparse.csr_array") -> None:
        """Compute the sums again after rows were added."""
        tables, self._tables = self._tables, []
        self._values = np.empty((max(len(tables), 16), rows.shape[0]))
        for table in tables:
            self.keep(table, rows)

    def tables(self, low: Floats, high: Floats) -> Floats:
        """The tables that fit the bounds, ``(tables, cells)``."""
        return np.array([self._tables[number] for number in np.flatnonzero(self.fitting(low, high))])

    def fitting(self, low: Floats, high: Floats) -> Bools:
        """Which tables fit the bounds, ``(tables,)``. ValueError where the true one does not."""
        values = self.values
        fitting = np.asarray(((values >= low) & (values <= high)).all(axis=1))
        if not fitting[0]:
            raise ValueError("what is published does not hold of the people themselves")
        return fitting


class Auditor:
    """Bounds of counts over one set of cells, given bounds of others.

    Rows are the distinct sums of cells among the counts; several counts may be the same sum. ``low`` and ``high`` are
    ``(rows,)`` bounds of these sums, infinite where nothing is published.
    """

    def __init__(self, cells: Cells, counts: Sequence[Count]) -> None:
        sums = [cells.indices(count).tobytes() for count in counts]
        distinct = {key: row for row, key in enumerate(dict.fromkeys(sums))}
        samples = dict(zip(reversed(sums), reversed(counts), strict=True))
        self.rows: dict[Count, int] = {count: distinct[key] for count, key in zip(counts, sums, strict=True)}
        self._cells = cells
        self._programme = Programme(cells, cells.sums([samples[key] for key in distinct]))
        self._witnesses = Witnesses(self._programme.truth, self._programme.matrix)

    @property
    def effort(self) -> float:
        """Work of all programmes solved so far: 40,000 are about a second."""
        return self._programme.effort

    def allow(self, effort: float) -> None:
        """From now on ``SpentError`` is raised in place of more work than this, all that was done counted in."""
        self._programme.limit = effort

    @property
    def truth(self) -> Longs:
        """True value of each row."""
        return np.asarray(self._witnesses.values[0], dtype=np.int64)

    def added(self, counts: Sequence[Count]) -> int:
        """A further row: the sum of counts that share no cell. Its index."""
        self._programme.add([self.rows[count] for count in counts])
        self._witnesses.renew(self._programme.matrix)
        return self.truth.size - 1

    def spread(self, row: int, low: Floats, high: Floats) -> tuple[float, float]:
        """Least and largest value of a row among the witnesses found so far."""
        values = self._witnesses.values[self._witnesses.fitting(low, high), row]
        return float(values.min()), float(values.max())

    def open(self, row: int, target_width: int, low: Floats, high: Floats) -> bool:
        """Whether a count is open by ``target_width``: witnesses that far apart are known, or are found now.

        They are sought first where only the count's own block of cells changes, and by integer programmes only where
        linear ones leave the width.
        """
        if self._width(row, low, high) >= target_width:
            return True
        for part in self._programme.parts(row):
            ends = [self._look(row, sign, low, high, part) for sign in (1, -1)]
            if self._width(row, low, high) >= target_width:
                return True
            if np.floor(ends[1].limit + SLACK) - np.ceil(ends[0].limit - SLACK) < target_width:
                continue
            for sign in [sign for sign, end in zip((1, -1), ends, strict=True) if not end.met]:
                self._look(row, sign, low, high, part, integral=True)
                if self._width(row, low, high) >= target_width:
                    return True
        return False

    def _width(self, row: int, low: Floats, high: Floats) -> float:
        least, largest = self.spread(row, low, high)
        return largest - least

    def lies_in(self, row: int, ends: tuple[float, float], low: Floats, high: Floats) -> bool:
        """Whether a count is proven to lie between two ends, both included; not where a search is cut short."""
        for sign, end in zip((1, -1), ends, strict=True):
            for integral in (False, True):
                least, largest = self.spread(row, low, high)
                if least < ends[0] or largest > ends[1]:
                    return False
                limit = self._look(row, sign, low, high, integral=integral).limit
                if np.ceil(sign * limit - SLACK) >= sign * end:
                    break
            else:
                return False
        return True

    def interval(self, count: Count, low: Floats, high: Floats, exact: bool = True) -> Interval:
        """Least and largest value of a count that the bounds allow; by the witnesses so far where not ``exact``."""
        row, proven = self.rows[count], exact
        for sign in (1, -1) if exact else ():
            end = self._look(row, sign, low, high)
            end = end if end.met else self._look(row, sign, low, high, integral=True)
            proven &= end.met
        least, largest = self.spread(row, low, high)
        return Interval(count, int(least), int(largest), proven)

    def unsaid(self, count: Count, low: Floats, high: Floats) -> Interval:
        """The bounds of a count of an attribute without published counts, which no cell separates.

        Of a cell with people of the group and others, any may be of the group. The attribute's groups are known.
        """
        inside, touched = self._cells.around(count)
        aim = np.zeros(self._cells.size)
        aim[touched] = -1.0
        for again in (True, False):
            tables = self._witnesses.tables(low, high)
            least, largest = tables[:, inside].sum(axis=1).min(), tables[:, touched].sum(axis=1).max()
            if again:
                self._kept(self._programme.solve(aim, low, high, integral=False)[1], low, high)
        size = int(self._cells.people.size(count))
        return Interval(count, max(int(least), min(size, 1)), int(largest), proven=False)

    def explore(self, rows: Longs, low: Floats, high: Floats) -> None:
        """Look for witnesses that move many rows at once, so that fewer need a separate programme."""
        for signs in (np.ones(rows.size), np.where(np.arange(rows.size) % 2, -1.0, 1.0)):
            for direction in (1.0, -1.0):
                weights = np.zeros(self.truth.size)
                weights[rows] = direction * signs
                _, table = self._programme.solve(weights @ self._programme.matrix, low, high, integral=False)
                self._kept(table, low, high)

    def cheapest(self, row: int, target_width: int, low: Floats, high: Floats, costs: Floats) -> Longs | None:
        """The rows that must lose their bounds, at least cost, to leave a count open by ``target_width``.

        A further table may miss bounds, at the cost of the row for each person that it misses them by, ``(rows,)``,
        infinite where the bound stays. It is sought on either side of the witnesses, at the wanted width, then nearer.
        No row where a linear programme finds the count open, None where there is no such table.
        """
        least, largest = self.spread(row, low, high)
        is_feasible = False
        for step in range(target_width, int(largest - least), -1):
            sides = [(-np.inf, largest - step), (least + step, np.inf)]
            cost, rows = min(
                (self._programme.elastic(row, s, low, high, costs) for s in sides), key=lambda pair: pair[0]
            )
            if rows.size:
                return rows
            is_feasible |= bool(np.isfinite(cost))
        return np.empty(0, dtype=np.int64) if is_feasible else None

    def neighbours(self, row: int, low: Floats, high: Floats) -> Longs:
        """Rows with bounds that share a cell with a row."""
        matrix = self._programme.matrix
        shared = np.asarray((matrix @ matrix[[row]].T).toarray()).ravel() > 0
        return np.flatnonzero(shared & (np.isfinite(low) | np.isfinite(high)))

    def _look(self, row: int, sign: int, low: Floats, high: Floats, part: int = -1, integral: bool = False) -> _End:
        """The least (sign 1) or largest (-1) value of a row, by a linear programme or one in whole numbers.

        Where a witness has the whole number next to the limit of a linear programme, none in whole numbers goes beyond.
        """
        aim = sign * self._programme.matrix[[row]].toarray()[0]
        limit, table = self._programme.solve(aim, low, high, integral, part)
        met = self._kept(table, low, high) and bool(np.isfinite(limit))
        if not (met or integral) and np.isfinite(limit):
            nearest = min(sign * end for end in self.spread(row, low, high))
            met = bool(nearest <= np.ceil(limit - SLACK))
        return _End(sign * limit if np.isfinite(limit) else -sign * np.inf, met)

    def _kept(self, table: Floats | None, low: Floats, high: Floats) -> bool:
        """Keep a table as a witness if it is whole and fits; whether it does."""
        if table is None or not is_whole(table):
            return False
        table = np.rint(table)
        values = self._programme.matrix @ table
        fits = bool(((values >= low) & (values <= high)).all()) and not np.any(self._programme.agreements @ table)
        if fits and (table >= 0).all():
            self._witnesses.keep(table, self._programme.matrix)
        return fits


# --------------------------------------------------------------------------------------------------------------------
# What two runs tell of the people in whom they differ, to a reader who knows all of everybody but the decisions.
#
# Such a reader knows the groups of each record, which features it lacks, in which runs it is, and whether its decision
# differs between runs: what he does not know is how many of the records that are alike in all this were denied. Every
# published count of denied records bounds a sum of these numbers. A withheld count promises an interval of some width
# that is no less than there are few people: of the few in whom the runs differ, that nobody and that all were denied
# must stay possible. One to three of three tells that somebody was.


NODES = 2000
"""Of a search in whole numbers; what one that ends there leaves open counts as told."""


def told_decisions(
    people: People, before: Sequence[Published], published: Sequence[Published], targets: Iterable[Count]
) -> list[Interval]:
    """Bounds of the denied among the few that runs differ in, as a reader learns them who knows all but decisions.

    Args:
        people: of all runs, with the decisions that each has.
        before: what earlier runs have published.
        published: what this run publishes.
        targets: numbers of those with an event among few people.

    Returns:
        What is told of each, if it is less than from nobody to all, and more than earlier runs tell by themselves.
    """
    alike, counts = _Alike(people), list(dict.fromkeys(targets))
    followed = _followed(alike, people, before, counts)
    earlier = {interval.count: interval.width for interval in followed if interval.proven}
    intervals = _followed(alike, people, (*before, *published), counts)
    return [interval for interval in intervals if interval.width < earlier.get(interval.count, math.inf)]


def _followed(
    alike: "_Alike", people: People, published: Sequence[Published], targets: Sequence[Count]
) -> list[Interval]:
    rows, low, high = [], list[float](), list[float]()
    for statement in published:
        if statement.count.event and np.isfinite([statement.low, statement.high]).any():
            parts = [alike.terms(count) for count in (statement.count, *statement.other_counts)]
            constant = sum(part for _, part in parts)
            rows.append(np.sum([terms for terms, _ in parts], axis=0))
            low.append(statement.low - constant)
            high.append(statement.high - constant)
    fits = scipy.optimize.LinearConstraint(np.array(rows), low, high) if rows else ()
    out = []
    for target in targets:
        terms, fixed = alike.terms(target)
        ends, proven = [], True
        for sign in (1, -1):
            end = scipy.optimize.milp(
                sign * terms, constraints=fits, bounds=scipy.optimize.Bounds(0, alike.sizes),
                integrality=np.ones(terms.size), options={"node_limit": NODES},
            )  # fmt: skip
            proven &= end.status == 0
            ends.append(round(sign * end.fun) + fixed if end.status == 0 else people.size(target))
        if ends[1] - ends[0] < people.size(Count(target.population)):
            out.append(Interval(target, int(ends[0]), int(ends[1]), proven))
    return out


class _Alike:
    """Records that differ in nothing but the decision, for each decision maker."""

    def __init__(self, people: People) -> None:
        self._people = people
        self._weights = people.weights if people.weights is not None else np.ones(len(people.attributes[0].codes))
        occurring = self._weights > 0
        first: dict[str, Bools] = {}
        settled: dict[str, Bools] = {}
        self._turned: dict[Event, Bools] = {}
        """Whether a record has another decision than in the first run that decides on it."""
        for event, happened in people.events.items():
            nobody = np.zeros_like(happened)
            decided = nobody.copy()
            for place, inside in people.bases.items():
                if (place.decision_maker, place.run) == (event.decision_maker, event.run):
                    decided |= inside
            before = settled.setdefault(event.decision_maker, nobody)
            base = first.setdefault(event.decision_maker, nobody)
            first[event.decision_maker] = np.where(before, base, happened & decided)
            settled[event.decision_maker] = before | decided
            self._turned[event] = decided & (happened != first[event.decision_maker])
        marks = [*(a.codes for a in people.attributes), *people.bases.values(), *self._turned.values()]
        keys = np.column_stack([np.asarray(mark, dtype=np.int64) for mark in marks])[occurring]
        _, inverse = np.unique(keys, axis=0, return_inverse=True)
        self._class = np.full(occurring.size, -1)
        self._class[occurring] = inverse.ravel()
        self._classes = int(inverse.max()) + 1 if inverse.size else 0
        self._makers = list(first)
        people_of_class = np.bincount(self._class[occurring], self._weights[occurring], self._classes)
        self.sizes = np.tile(people_of_class, len(self._makers))
        """``(classes of each decision maker,)`` records, any of which may have been denied."""

    def terms(self, count: Count) -> tuple[Floats, int]:
        """A number with an event as a sum: a factor for the denied of each class, and a constant."""
        inside = self._people.of(count.population) & (self._class >= 0)
        turned = self._turned[count.happening] != count.rest
        out, fixed = np.zeros(self.sizes.size), 0
        start = self._makers.index(count.population.decision_maker) * self._classes
        for number in np.unique(self._class[inside]):
            of_class = inside & (self._class == number)
            is_turned = bool(turned[of_class][0])
            out[start + number] = -1.0 if is_turned else 1.0
            fixed += int(self._weights[of_class].sum()) if is_turned else 0
        return out, fixed
