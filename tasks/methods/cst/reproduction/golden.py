"""Compares the reference outputs of CST with ours, complainant by complainant.

They are thousands of numbers, of which a line has the largest difference, or how many differ. There are frames of the
factual and the counterfactual data, a table for each variant and k with a row for each complainant, and the neighbours
of the first 300 complainants.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasks.methods.cst.algorithm.comparisons import CENTRED, CST, ST, compare
from tasks.methods.cst.algorithm.significance import Tests
from tasks.methods.cst.algorithm.situations import Members
from tasks.methods.cst.reproduction.obtained import Tested
from tasks.numerics.arrays import Floats
from tasks.proof.lines import Cell, Figure, Value

FILES = {CST: "CSTwo", ST: "ST", CENTRED: "CSTwi"}
"""What the files call the variants."""

KS = (15, 30, 50, 100)
NEIGHBOURS_OF = 15
"""The k whose neighbours are listed."""

TOLERANCE = 1e-12
DECLARED = 3
"""The reference divides distances by the number of declared attributes, the protected one among them."""

DECISIONS = ("LoanApproval", "Y")
"""Names of the column that holds the decision, which is positive where favourable."""

TABLES, LISTS = "*_k*.csv.gz", "*_neighbours.jsonl.gz"
"""What the lines call the files of which there is one for each variant."""

OURS = {"delta_p": "delta", "ci_lo": "low", "ci_hi": "high"}
"""Our names of their columns."""

Told = Iterator[tuple[Figure, Value]]
"""A figure of the reference, and ours."""


@dataclass(frozen=True)
class Golden:
    """The reference outputs of one problem."""

    place: Path
    name: str
    """Begins the names of its files."""
    group: str
    """Those who complain."""

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        tables = [f"{file}_k{k}.csv.gz" for file in FILES.values() for k in KS]
        lists = [self._neighbours(variant) for variant in FILES]
        return [self._file(name) for name in ("factual.csv.gz", "counterfactual.csv.gz", *tables, *lists)]

    def told(self, found: Tested) -> Told:
        """Yields all figures of the files, with ours."""
        yield from self._frames(found)
        for variant in FILES:
            for at, k in enumerate(KS):
                yield from self._table(found, variant, at, k)
            yield from self._lists(found, variant)

    def _file(self, name: str) -> Path:
        return self.place / f"{self.name}_{name}"

    def _neighbours(self, variant: str) -> str:
        return f"{FILES[variant]}_k{NEIGHBOURS_OF}_neighbours.jsonl.gz"

    def _line(self, file: str, quantity: str, at: tuple[Value, ...], ours: float, tolerance: float = 0.0) -> Any:
        """The reference differs from itself by nothing, so that ours is how much we differ from it."""
        return Figure(f"{self.name}_{file}", True, Cell(quantity, self.group, at), 0.0, tolerance), ours

    def _frames(self, found: Tested) -> Told:
        """Values and decisions of all rows, to the last digit."""
        applicants = found.ground.applicants
        imagined = applicants.counterfactuals
        if imagined is None or imagined.favourable is None:
            raise ValueError("the frames are of rows that are all imagined and decided on")
        both = {
            "factual": (applicants.columns.values, applicants.favourable),
            "counterfactual": (imagined.values, imagined.favourable),
        }
        for kind, (values, favourable) in both.items():
            file = f"{kind}.csv.gz"
            frame = pd.read_csv(self._file(file))
            yield self._line(file, f"{kind}_rows_missing", (), float(abs(len(frame) - len(values))))
            if len(frame) != len(values):
                continue
            (decision,) = (name for name in DECISIONS if name in frame)
            differ = (frame[decision].to_numpy() > 0) != favourable
            yield self._line(file, f"{kind}_values_differing", (decision,), float(differ.sum()))
            for name, column in zip(applicants.columns.names, values.T, strict=True):
                if name in frame:
                    differ = frame[name].to_numpy(dtype=float) != column
                    yield self._line(file, f"{kind}_values_differing", (name,), float(differ.sum()))

    def _table(self, found: Tested, variant: str, at: int, k: int) -> Told:
        """One variant and k, by complainant."""
        frame = pd.read_csv(self._file(f"{FILES[variant]}_k{k}.csv.gz")).set_index("individual")
        others = len(frame.index.symmetric_difference(pd.Index(found.row)))
        place, theirs = (variant, float(k)), frame.reindex(found.row)
        yield self._line(TABLES, "complainants_differing", place, float(others))
        for column, values in _reals(found.judged[variant]).items():
            furthest = float(np.abs(theirs[column].to_numpy() - values[at]).max())
            yield self._line(TABLES, f"{OURS.get(column, column)}_furthest_apart", place, furthest, TOLERANCE)
        flags = {"cf_flag": np.where(found.unfair < 0, 2.0, found.unfair)}
        for column, values in (_wholes(found.judged[variant], at) | flags).items():
            differ = theirs[column].to_numpy(dtype=float) != values
            yield self._line(TABLES, f"{column}_differing", place, float(differ.sum()))

    def _lists(self, found: Tested, variant: str) -> Told:
        """Whose neighbours differ, and how far the distances of those listed are apart.

        The files list equal distances in another order than that in which they were chosen.
        """
        packed = self._file(self._neighbours(variant)).read_bytes()
        told = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
        control, test = _members(found, variant)
        place = np.searchsorted(found.row, [each["id"] for each in told])
        for role, near, key in (("control", control, "ctr"), ("test", test, "tst")):
            differ, furthest = 0, 0.0
            for i, each in zip(place.tolist(), told, strict=True):
                known = near.rows[i] >= 0
                ours = near.distances[i, known] * found.ground.space.divisor / DECLARED
                differ += sorted(near.rows[i, known].tolist()) != sorted(each[key])
                if len(ours) == len(each[key]):
                    furthest = max(furthest, float(np.abs(ours - each[f"{key}_d"]).max()))
            yield self._line(LISTS, f"{role}_groups_differing", (variant,), float(differ))
            yield self._line(LISTS, f"{role}_distances_furthest_apart", (variant,), furthest, TOLERANCE)


def _reals(tests: Tests) -> dict[str, Floats]:
    """``(len(ks), c)`` by their names of the columns."""
    pair = tests.pair
    return {
        "p_c": pair.control_share,
        "p_t": pair.test_share,
        "delta_p": tests.delta,
        "ci_lo": tests.low,
        "ci_hi": tests.high,
    }


def _wholes(tests: Tests, at: int) -> dict[str, Floats]:
    """``(c,)`` of one k, by their names of the columns."""
    significant = (tests.low[at] > 0) & (tests.delta[at] > 0)
    return {
        "n_c": tests.pair.control_n[at],
        "n_t": tests.pair.test_n[at],
        "detected": tests.detected(0.0)[at],
        "significant": significant.astype(np.float64),
    }


def _members(found: Tested, variant: str) -> tuple[Members, Members]:
    """Control and test group of every complainant; those of situation testing are searched without counterfactuals."""
    of = found.compared
    if variant == ST:
        of = compare(replace(found.ground, imagined=None), found.prepared.group, found.row)
    return of.control.members, of.test.members
