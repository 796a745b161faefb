"""The page of a back-fill on the server: the records of its years as a table, written anew after each of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flows.outcome.artifacts import Progress, Sheet
from flows.outcome.words.plain import without_cells
from flows.partitions.attempts.reading import latest
from flows.partitions.attempts.record import Attempt
from tasks.lake.store import Lake
from tasks.pipeline.progress import YEARS

_TOLD = 20
"""Times that the progress of partitions is told."""
Key = tuple[int, str]
"""A year, and its partition."""


class Page:
    """Shows how far a back-fill is."""

    def __init__(self, of: str, audit: str, lake: Lake, known: frozenset[str]) -> None:
        """Show the progress of years or partitions of an audit; ``known`` are texts that a message may quote."""
        self._of, self._audit, self._lake, self._known = of, audit, lake, known
        self._progress = Progress(f"{of} of {audit}")
        self._sheet = Sheet(of, f"{of} of {audit}")

    def show(self, ended: Mapping[Key, Attempt], asked: Sequence[Key], total: int) -> None:
        """Show the records that have ended, and of years those at work and to come.

        Args:
            ended: records by year and partition.
            asked: what this back-fill audits.
            total: years or partitions in all.
        """
        whole = self._of == YEARS
        if not whole and len(ended) % max(1, total // _TOLD) and len(ended) < total:
            return
        self._progress.reached(len(ended) / max(total, 1))
        at_work = self._at_work([key for key in asked if key not in ended]) if whole else iter(())
        table = [*rows([ended[key] for key in sorted(ended)], self._said), *at_work]
        self._sheet.show(sorted(table, key=lambda row: (row["year"], row.get("partition", ""))))

    def _at_work(self, left: Sequence[Key]) -> Iterator[dict[str, Any]]:
        """Years that have not ended, with the stage at work."""
        for year, value in left:
            last = latest(self._lake, self._audit, year, value)
            if last is None or last.ended:
                yield {**dict.fromkeys(_COLUMNS, ""), "year": year, "state": "to come"}
            else:
                yield from rows([last], self._said)

    def _said(self, message: str) -> str:
        return without_cells(message, self._known)


def rows(records: Sequence[Attempt], said: Callable[[str], str] = str) -> list[dict[str, Any]]:
    """The records as a table for people: aggregates only.

    Args:
        records: of years or partitions.
        said: what is shown of a message.
    """
    return [
        {
            "year": r.year,
            **({"partition": r.value} if r.value else {}),
            "state": r.state.value,
            "stage": r.stage,
            "run": r.run or "",
            "read": r.source_words,
            "lacks": len(r.lacking),
            "computed": r.computed,
            "seconds": r.seconds,
            "message": said(r.message),
        }
        for r in records
    ]


_COLUMNS = ("year", "state", "stage", "run", "read", "lacks", "computed", "seconds", "message")
