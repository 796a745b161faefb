"""Cells: the smallest sets of people that published counts tell apart, and each count as a sum of them.

A cell is a combination of groups (of linked attributes) and a status. A status is a combination of bases and events,
such as used, denied by the lender, approved by the model. Groups and statuses are crossed in full. Of groups, and of
statuses, only combinations that occur are cells: the auditor then knows more than a reader, which is the safe side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from tasks.metrics.publish.algorithm.audit.column_tree import Columns, cliques, junctions
from tasks.metrics.publish.algorithm.populations import ALL, Count, People, Population
from tasks.numerics.arrays import Bools, Longs

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
        return [(each.first, each.first + each.atoms * self.samples.size) for each in self.blocks]

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
        """Blocks count the same people: rows whose product with a table of cells is 0, ``(agreements, cells)``."""
        plus, minus = [], []
        for left, right, feature in self.pairs:
            for value in np.unique(self.blocks[left].features[feature]):
                for status in range(self.samples.size):
                    plus.append(self._valued(self.blocks[left], feature, value, status))
                    minus.append(self._valued(self.blocks[right], feature, value, status))
        return _sparse(plus, minus, self.size)

    def _valued(self, block: Block, feature: Feature, value: int, status: int) -> Longs:
        return block.first + np.flatnonzero(block.features[feature] == value) * self.samples.size + status

    def sums(self, counts: Sequence[Count]) -> "scipy.sparse.csr_array":
        """The counts as sums of cells, ``(counts, cells)`` of 0 and 1."""
        plus = [self.indices(count) for count in counts]
        return _sparse(plus, [each[:0] for each in plus], self.size)

    def indices(self, count: Count) -> Longs:
        """Cells that a count counts, in order."""
        block, atoms = self._atoms(count.population)
        having = self._statuses(count)
        return (block.first + np.flatnonzero(atoms)[:, None] * self.samples.size + having[None, :]).ravel()

    def around(self, count: Count) -> tuple[Longs, Longs]:
        """Cells whose people all are of a group that no cell tells apart, and those with at least one of it.

        A block that shares no column with the group is crossed with it in full. KeyError where several share some.
        """
        population, width = count.population, self.samples.size
        mine = columns_of(self.people, population)
        blocks = [each for each in self.blocks if each.columns & mine]
        if len(blocks) > 1:
            raise KeyError(f"several blocks of cells are of {sorted(mine)}")
        block = blocks[0] if blocks else self.blocks[0]
        atoms = block.rows if blocks else np.zeros_like(block.rows)
        group = self.people.of_group(population)
        some, others = (np.bincount(atoms[each], minlength=block.atoms) > 0 for each in (group, ~group))
        if not blocks:
            some, others = np.full(block.atoms, some[0]), np.full(block.atoms, others[0])
        pure, touched = (
            (block.first + np.flatnonzero(each)[:, None] * width + self._statuses(count)[None, :]).ravel()
            for each in (some & ~others, some)
        )
        return pure, touched

    def _atoms(self, population: Population) -> tuple[Block, Bools]:
        wanted = columns_of(self.people, population)
        block = next(each for each in self.blocks if wanted <= each.columns)
        inside = np.ones(block.atoms, dtype=bool)
        if population.group != ALL:
            inside = inside & (block.features["group", population.attribute] == self.people.code(population))
        if population.part:
            inside = inside & (
                block.features["part", population.attribute, population.decision_maker] == max(population.part, 0)
            )
        return block, inside

    def _statuses(self, count: Count) -> Longs:
        inside = self.people.bases[count.population.place][self.samples]
        if count.event:
            event = self.people.events[count.happening][self.samples]
            inside = inside & (~event if count.rest else event)
        return np.flatnonzero(inside)


def cells_of(people: People, counts: Sequence[Count]) -> Cells:
    """The cells that the given counts tell apart. KeyError where a count names an unknown base, event or attribute."""
    places = dict.fromkeys(count.population.place for count in counts)
    events = dict.fromkeys(count.happening for count in counts if count.event)
    marks = [people.bases[each] for each in places] + [people.events[each] for each in events]
    samples, statuses = _distinct(np.column_stack(marks))
    populations = list(dict.fromkeys(count.population for count in counts))
    sets = cliques(sorted({columns_of(people, each) for each in populations}, key=sorted))
    features = [_features(people, columns, populations) for columns in sets]
    pairs = _join(people, sets, features)
    blocks, first = [], 0
    for columns, coded in zip(sets, features, strict=True):
        chosen, rows = _distinct(np.column_stack([*coded.values(), np.zeros(statuses.size, dtype=np.int64)]))
        coded = {feature: codes[chosen] for feature, codes in coded.items()}
        blocks.append(Block(columns, first, coded, rows, chosen.size))
        first += chosen.size * samples.size
    return Cells(people, tuple(blocks), statuses, samples, pairs)


def columns_of(people: People, population: Population) -> Columns:
    """Columns that tell who is of a population; its parts are a column of their own."""
    parts = {_parts(population.attribute, population.decision_maker)} if population.part else set()
    return frozenset(parts | (set() if population.group == ALL else {*people.attribute(population.attribute).columns}))


def _parts(attribute: str, decision_maker: str) -> str:
    """Name of the column that parts are."""
    return f"parts of {attribute}, {decision_maker}"


def _features(people: People, columns: Columns, populations: Sequence[Population]) -> dict[Feature, Longs]:
    """Codes of rows by which populations over these columns are told, ``(rows,)`` each."""
    out: dict[Feature, Longs] = {}
    for each in populations:
        if not columns_of(people, each) <= columns:
            continue
        if each.group != ALL:
            out["group", each.attribute] = people.attribute(each.attribute).codes
        if each.part:
            key = each.attribute, each.decision_maker
            out["part", *key] = people.parts[key]
    return out


def _join(
    people: People, sets: Sequence[Columns], features: Sequence[dict[Feature, Longs]]
) -> tuple[tuple[int, int, Feature], ...]:
    """Neighbouring sets and the feature in which they agree, which both are given."""
    codes, pairs = coarse(people), []
    for number, (left, right) in enumerate(junctions(sets)):
        shared = [codes[column] for column in sorted(sets[left] & sets[right])]
        name = ("separator", str(number))
        _, value = _distinct(np.column_stack([*shared, np.zeros_like(codes[""])]))
        features[left][name] = features[right][name] = value
        pairs.append((left, right, name))
    return tuple(pairs)


def coarse(people: People) -> dict[str, Longs]:
    """Codes of every column, ``(rows,)`` each, values that no attribute tells apart taken together.

    A column keeps its own values where an attribute of several columns is no function of the coarser ones.
    """
    rows = next(iter(people.bases.values())).size
    out = {name: _together(people, name) for name in people.columns}
    for each in people.attributes:
        made_of = np.column_stack([np.zeros(rows, dtype=np.int64), *(out[column] for column in each.columns)])
        if len(_distinct(made_of)[0]) < len(_distinct(np.column_stack([made_of, each.codes]))[0]):
            out.update({column: people.columns[column] for column in each.columns})
    parts = {_parts(*key): codes for key, codes in people.parts.items()}
    return out | parts | {"": np.zeros(rows, dtype=np.int64)}


def _together(people: People, column: str) -> Longs:
    """Combinations of the groups of all attributes over this one column."""
    codes = [each.codes for each in people.attributes if each.columns == (column,)]
    return _distinct(np.column_stack(codes))[1] if codes else np.asarray(people.columns[column], dtype=np.int64)


def _distinct(codes: Longs | Bools) -> tuple[Longs, Longs]:
    """Of ``(rows, k)`` codes: one row for each distinct combination, and the combination of each row."""
    _, first, inverse = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.ravel().astype(np.int64)


def _sparse(plus: Sequence[Longs], minus: Sequence[Longs], width: int) -> "scipy.sparse.csr_array":
    """Rows with 1 at the indices in ``plus`` and -1 at those in ``minus``."""
    columns = [np.concatenate(pair) for pair in zip(plus, minus, strict=True)]
    values = [np.repeat([1.0, -1.0], [one.size, other.size]) for one, other in zip(plus, minus, strict=True)]
    ends = np.cumsum([0, *(each.size for each in columns)])
    joined = np.concatenate(columns) if columns else np.empty(0, dtype=np.int64)
    data = np.concatenate(values) if values else np.empty(0)
    return scipy.sparse.csr_array((data, joined, ends), shape=(len(columns), width))
