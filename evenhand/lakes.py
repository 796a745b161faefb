"""What the pipeline left in a lake, as frames; nothing is written."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from evenhand.errors import InputError, SpecError
from evenhand.results import QUESTIONS
from schemas.errors import nearest


def open(lake: str | Path) -> "LakeReader":  # noqa: A001 read as `evenhand.open`
    """Open a lake to read its runs.

    Args:
        lake: Directory, or its URI.

    Raises:
        SpecError: There is no lake.
    """
    from tasks.lake.store import open_lake

    return LakeReader(open_lake(str(lake)))


class LakeReader:
    """The runs of a lake."""

    def __init__(self, lake: Any) -> None:
        self._lake = lake

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held open between two questions."""

    def runs(self, audit: str | None = None, year: int | None = None) -> pd.DataFrame:
        """The runs, newest first: id, audit, year, state, finished, and the state of each question.

        Args:
            audit: Name of the audit; all if None.
            year: Of the decisions; all if None.
        """
        from flows.runs.index import listed

        rows = [
            {
                "id": row.run,
                "audit": row.audit,
                "year": row.year,
                "state": row.state,
                "finished": row.finished,
                **row.theories,
            }
            for row in listed(self._lake, audit, year)
        ]
        return pd.DataFrame(rows, columns=["id", "audit", "year", "state", "finished", *QUESTIONS])

    def __getitem__(self, run: str) -> "RunReader":
        """A run by its id, or the first letters of it.

        Raises:
            SpecError: There is no such run.
        """
        from flows.runs.index import run_of

        return RunReader(self._lake, run_of(self._lake, run).run)

    def sql(self, query: str, run: str | None = None, seconds: float = 60.0) -> pd.DataFrame:
        """The answer to a query over the tables of all runs, or of one.

        Args:
            query: SQL of DuckDB that reads; it may begin with `from`.
            run: Id of the run.
            seconds: What the query may take.

        Raises:
            SpecError: The query is wrong, or does more than read.
        """
        from tasks.lake.views import answer, default_memory, open_views

        memory = default_memory()
        with open_views(self._lake, run, memory) as connection:
            frame: pd.DataFrame = answer(connection, query, seconds, memory).to_pandas()
            return frame


class RunReader:
    """One run of a lake."""

    def __init__(self, lake: Any, run: str) -> None:
        self._lake, self.id = lake, run

    def measures(self, question: str | None = None, measure: str | None = None) -> pd.DataFrame:
        """The published measures, in long form; differences are group less reference group in approval.

        Args:
            question: Such as `similar_applicants`: the measures by which it is judged, as judged; all measures if None.
            measure: One measure by name.

        Raises:
            InputError: There is no such question.
        """
        from schemas.tables.verdicts import measure_in_approval

        frame = self._published("published_measures", "measures")
        turned = [measure_in_approval(row) for row in frame.to_dict("records")]
        frame = pd.DataFrame(turned, columns=frame.columns).astype(frame.dtypes)
        if question is not None:
            frame = frame[frame["measure"].isin(self._measures_of(question)) & (frame["parameters"] == "{}")]
        if measure is not None:
            frame = frame[frame["measure"] == measure]
        return frame.rename(columns={"value": "estimate"}).reset_index(drop=True)

    def verdicts(self) -> pd.DataFrame:
        """The published verdicts: a row for each question and group, in the sign of the first page."""
        from schemas.tables.verdicts import in_approval

        frame = self._published("published_verdicts", "verdicts")
        turned = [in_approval(row) for row in frame.to_dict("records")]
        return pd.DataFrame(turned, columns=frame.columns).rename(columns={"theory": "question"})

    def table(self, name: str) -> pd.DataFrame:
        """A table of the run, such as `findings`; those with rows of persons are restricted.

        Raises:
            SpecError: The run has no such table.
        """
        return self._ask(f'from "{name}"')

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Spec, digests and files of the run."""
        from flows.runs.index import read_manifest

        return read_manifest(self._lake, self.id)

    def _measures_of(self, question: str) -> set[str]:
        from tasks.pipeline.registry import METHODS, OUTCOMES

        if question not in QUESTIONS:
            raise InputError(f"there is no question {question!r}; {nearest(question, QUESTIONS)}")
        if question == "approval_rates":
            return {*OUTCOMES, *(f"{name}_{of}" for name in OUTCOMES for of in ("difference", "ratio"))}
        judgements = (judgement for method in METHODS.values() for judgement in method.verdict_measures)
        return {judgement.measure for judgement in judgements if judgement.theory == question}

    def _published(self, name: str, before: str) -> pd.DataFrame:
        """A publishable table; a run of an early version has none, and its tables take their place."""
        try:
            return self._ask(f"from {name}")
        except SpecError:
            return self._ask(f"from {before}")

    def _ask(self, query: str) -> pd.DataFrame:
        return LakeReader(self._lake).sql(query, self.id)
