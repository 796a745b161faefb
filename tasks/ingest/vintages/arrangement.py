"""Which file of a sorted vintage a row goes to: pieces of a state, each a range of lenders.

A state's rows are in the order of lender and number in the file. They are cut into pieces of about the same work: whole
lenders as long as they fit, and a lender of more rows than a piece holds by the numbers of its rows. Scope: the plan.
What is written by it: ``sorting``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NO_STATE: Final = "none"
"""In the place of the state of rows that have none."""
NO_LENDER: Final = ""
MOST_ROWS: Final = 131_072
"""Of a piece: two groups of rows. More do not sort within the memory that is allowed."""

Numbers = Callable[[str, str], NDArray[np.int64]]
"""State and lender -> the numbers of its rows in the file, in their order."""


@dataclass(frozen=True)
class Piece:
    """One file of rows."""

    state: str
    number: int
    """Within its state, from 0."""
    rows: int

    @property
    def path(self) -> str:
        """Its name below the directory of all rows."""
        return f"state={self.state}/part-{self.number}.parquet"


@dataclass(frozen=True)
class Arrangement:
    """The pieces in the order of states and lenders, and which rows are in each."""

    pieces: tuple[Piece, ...]
    states: pa.Array
    lenders: pa.Array
    first: NDArray[np.int32]
    """States x lenders: the number of the piece; of a lender that is cut, of its first."""
    cuts: dict[tuple[int, int], NDArray[np.int64]]
    """Of those that are cut: the lowest number of a row of the second piece, of the third, ..."""

    def of(self, rows: pa.Table) -> NDArray[np.int32]:
        """The number of the piece of each row of a table of applications."""
        states = pc.fill_null(pc.cast(rows["state_code"], pa.string()), NO_STATE)
        lenders = pc.fill_null(rows["lender_id"], NO_LENDER)
        state, lender = (
            pc.index_in(values, among).to_numpy() for values, among in ((states, self.states), (lenders, self.lenders))
        )
        out: NDArray[np.int32] = self.first[state, lender]
        numbers = rows["source_row"].to_numpy()
        for (s, one), cuts in self.cuts.items():
            theirs = (state == s) & (lender == one)
            out[theirs] += np.searchsorted(cuts, numbers[theirs], side="right").astype(np.int32)
        return out


def arranged(counts: Iterable[tuple[str, str, int]], numbers: Numbers, most: int = MOST_ROWS) -> Arrangement:
    """The plan for a table of applications.

    Args:
        counts: State, lender and rows, in the order of states and lenders.
        numbers: Asked of lenders that have more rows in a state than a piece holds.
        most: Rows of a piece.
    """
    told = list(counts)
    states, lenders = sorted({state for state, _, _ in told}), sorted({lender for _, lender, _ in told})
    place = {name: i for i, name in enumerate(lenders)}
    first = np.full((len(states), len(lenders)), -1, np.int32)
    cuts: dict[tuple[int, int], NDArray[np.int64]] = {}
    pieces: list[Piece] = []
    for s, state in enumerate(states):
        own = [(lender, rows) for of, lender, rows in told if of == state]
        filled: list[int] = []
        for lender, rows in own:
            if rows > most:
                cut = numbers(state, lender)[most::most]
                first[s, place[lender]], cuts[s, place[lender]] = len(pieces) + len(filled), cut
                filled += [most] * len(cut) + [rows - most * len(cut)]
                continue
            if not filled or filled[-1] + rows > most:
                filled.append(0)
            filled[-1] += rows
            first[s, place[lender]] = len(pieces) + len(filled) - 1
        pieces += [Piece(state, i, rows) for i, rows in enumerate(filled)]
    return Arrangement(tuple(pieces), pa.array(states), pa.array(lenders), first, cuts)
