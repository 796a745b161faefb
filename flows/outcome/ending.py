"""How a run ended, what a flow run is about, and texts of errors and checks without values of rows."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from flows.runs.index import Run
from flows.runs.released import door_of
from schemas.artifact import Partition
from schemas.audit.file import parse, spec_text
from schemas.audit.limits import GATE
from schemas.errors import SpecError
from schemas.questions import QUESTIONS, STATES, rephrase_of, rephrase_rows, state_words
from schemas.sentences import sentences
from schemas.tables.verdicts import VERDICTS, effect_words, limit_words, row_words, state_of_row
from schemas.terms import State, Theory
from tasks.lake.store import Lake

# --------------------------------------------------------------------------------------------------------------------
# How a run ended, as one value: what the server's state, the log and alerts say.


class Name(StrEnum):
    """Name of the state in which a run ended, as the server shows it."""

    WITHIN = STATES[State.WITHIN].words
    OUTSIDE = STATES[State.OUTSIDE].words
    INCONCLUSIVE = STATES[State.INCONCLUSIVE].words
    SPEC = "Spec"
    DATA_QUALITY = "Data quality"
    INFRASTRUCTURE = "Infrastructure"
    INTEGRITY = "Integrity"
    CRASHED = "Crashed"
    """Its process is gone; no exit code of a command shows that."""
    CANCELLED = "Cancelled"
    """Somebody cancelled it on the server."""
    OVERDUE = "Overdue"
    """No run came."""

    @classmethod
    def _missing_(cls, value: object) -> "Name | None":
        """A name that earlier versions wrote into records."""
        before = {"Within": cls.WITHIN, "Breach": cls.OUTSIDE, "Insufficient evidence": cls.INCONCLUSIVE}
        return before.get(str(value))


@dataclass(frozen=True)
class Ending:
    """How one run, or one back-fill, ended."""

    name: Name
    subject: str
    """What it was about: ``loans 2024``, or ``history 2018-2024``."""
    message: str
    """One line from published figures: counts and the worst check; or what failed, where, and the next step."""
    run: str = ""
    """Run id; empty where no run was published."""
    flow_run: str = ""
    """Id of the flow run on the server; empty without one."""
    report: str = ""
    """Address of the report, or its path; empty where there is none."""


# --------------------------------------------------------------------------------------------------------------------
# What a flow run is about, from its parameters: its name on the server and its tags.
#
# The spec may be a file that is not usable: a run has a name all the same, and fails with that error later.


LEAST_LETTERS = 3
"""A text of the spec that is shorter is too common to say that an error names a part of the spec by it."""


@dataclass(frozen=True)
class Subject:
    """Audit and years of a flow run."""

    name: str
    years: Sequence[int] | str = ()
    """As given: a back-fill may have them as words, such as ``2018-2024``."""
    value: str = ""
    """Of a partition of the year."""

    @property
    def words(self) -> str:
        """Such as ``loans 2024``, or ``history 2018-2024``."""
        return " ".join(filter(None, (self.name, self._years(), self.value)))

    @property
    def tags(self) -> tuple[str, ...]:
        """Such as ``dataset:loans`` and ``year:2024``."""
        years = (self.years,) if isinstance(self.years, str) else self.years
        return (f"dataset:{self.name}", *(f"year:{year}" for year in years))

    @property
    def year(self) -> str:
        """The year in words, or the years."""
        return self._years()

    def _years(self) -> str:
        if isinstance(self.years, str) or len(self.years) < 2:
            return self.years if isinstance(self.years, str) else "".join(map(str, self.years))
        first, last = min(self.years), max(self.years)
        is_range = sorted(self.years) == list(range(first, last + 1))
        return f"{first}-{last}" if is_range else ",".join(map(str, sorted(self.years)))


def subject_of(parameters: Mapping[str, Any]) -> Subject:
    """What a flow run with these parameters is about."""
    spec = _spec(parameters["spec"])
    name = str(spec.get("name") or Path(str(parameters["spec"])).stem)
    years = parameters.get("years")
    if years is None:
        years = parameters.get("year") or spec.get("year") or ()
        years = (years,) if isinstance(years, int) else ()
    source = spec.get("source")
    part = source.get("part") if isinstance(source, Mapping) else None
    return Subject(name, years, str(part["value"]) if isinstance(part, Mapping) else "")


def words_known(parameters: Mapping[str, Any]) -> frozenset[str]:
    """Every text of the spec: what an error may quote without quoting a row."""
    return frozenset(_texts(_spec(parameters["spec"])))


def run_name() -> str:
    """The name of the flow run that begins, for Prefect's ``flow_run_name``."""
    from prefect.runtime import flow_run

    words = subject_of(flow_run.parameters).words
    return f"{words} watch" if flow_run.flow_name == "watch" else words


def _spec(spec_or_path: Any) -> Mapping[str, Any]:
    """The spec's keys, without a check."""
    if isinstance(spec_or_path, Mapping):
        return spec_or_path
    try:
        content = parse(spec_text(Path(spec_or_path))).value
    except (OSError, ValueError, SpecError):
        return {}
    return content if isinstance(content, Mapping) else {}


def _texts(part: Any) -> set[str]:
    if isinstance(part, Mapping):
        return set().union(*(_texts(key) | _texts(value) for key, value in part.items()))
    if isinstance(part, list | tuple):
        return set().union(*map(_texts, part))
    return {part} if isinstance(part, str) and len(part) >= LEAST_LETTERS else set()


# --------------------------------------------------------------------------------------------------------------------
# Words of an error without values of rows, and in one line; and rows of a stage, counted roughly.


_LONGEST: Final = 600
"""Characters of a message."""
_LEAST_PRINTED: Final = 100
"""Fewer rows than this are not counted in a log."""
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")


def without_cells(text: str, quotable_texts: Collection[str]) -> str:
    """The first line of a message, with what it quotes left out where that is no text of the spec.

    Messages about data may quote cells, and name rows in the lines below the first.
    """

    def kept(quote: re.Match[str]) -> str:
        quoted = quote[0][1:-1]
        return (
            quote[0]
            if quoted in quotable_texts or _YEAR.sub("{year}", quoted) in quotable_texts
            else "\N{HORIZONTAL ELLIPSIS}"
        )

    return _QUOTED.sub(kept, text.split("\n", maxsplit=1)[0].rstrip(":"))


def one_line(text: str) -> str:
    """A message as one line of bounded length."""
    line = " ".join(part.strip() for part in text.splitlines() if part.strip())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 4].rstrip() + " ..."


def stage_words(partition: Partition, seconds: float, lake: Lake) -> str:
    """Log message of a stage at its end."""
    refused = lake.lineage(partition)["rows"]["refused"]
    how = "from the lake" if partition.reused else f"{seconds:.1f} s"
    return f"{about(partition.tables[0].rows)} rows, {about(refused)} refused, {how}"


def about(rows: int) -> str:
    """A number of rows in a log, to two digits, and in hundreds at the finest.

    It is logged before disclosure control decides what may be published: a count that this rounds to tens would be
    known more closely than every profile promises.
    """
    return f"< {_LEAST_PRINTED}" if 0 < rows < _LEAST_PRINTED else f"{roughly(rows):,}"


def roughly(rows: int) -> int:
    """The same as a number, for metrics and traces: 0 where they are few."""
    if rows < _LEAST_PRINTED:
        return 0
    return round(rows, -2) if rows < 10 * _LEAST_PRINTED else int(float(f"{rows:.1e}"))


# --------------------------------------------------------------------------------------------------------------------
# Checks of a published run: rows of its published verdicts with a limit, and the sentence on the worst of them.


_DECIDE = ("primary", "adds")
"""Roles of rows that decide the state of their theory."""
_WORST_FIRST = (State.OUTSIDE, State.INCONCLUSIVE)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Checks:
    """The published verdicts of a run."""

    rows: Sequence[Row]
    """Rows with a limit, the worst first."""
    theories: Sequence[Row]
    """Of each theory as a whole."""
    gate: frozenset[str]
    """Theories that decide the run's state."""
    rephrase: Callable[[str], str] = str
    """Sentences in the words of the decision."""
    apart: str = ""
    """Why no row is shown: an earlier release of the same rows that the run was not audited together with."""

    @property
    def deciding(self) -> list[Row]:
        """The rows that decide the run's state."""
        return [row for row in self.rows if row["role"] in _DECIDE and row["theory"] in self.gate]

    @property
    def open(self) -> list[Row]:
        """Rows that are not within their limit, without levels of practitioners, which are no limits of the spec."""
        return [
            row for row in self.rows if row["role"] != "watch" and (row["withheld"] or row["state"] != State.WITHIN)
        ]

    def message(self, state: State) -> str:
        """One line: how many limits are kept or not, and the worst check."""
        return self.apart or self.rephrase(self._message(state))

    def _message(self, state: State) -> str:
        rows = self.deciding
        of_state = [row for row in rows if row["state"] == state and not row["withheld"]]
        if state is State.OUTSIDE:
            if not of_state:
                return _pattern("outside_hidden", reason=self._reason(state))
            return _pattern("outside", n=len(of_state), of=len(rows), row=row_words(of_state[0]))
        if state is State.WITHIN:
            row = row_words(of_state[0]) if of_state else ""
            return _pattern("within_closest" if row else "within", n=len(of_state), of=len(rows), row=row)
        if not rows:
            return _pattern("nothing", reason=self._reason(state))
        open_ = [row for row in rows if row["withheld"] or row["state"] != State.WITHIN]
        return _pattern("inconclusive", n=len(open_), of=len(rows), reason=self._reason(State.INCONCLUSIVE))

    def _reason(self, state: State) -> str:
        """Why the first theory with a state has it; of none, that no theory counts."""
        gate_rows = [row for row in self.theories if row["theory"] in self.gate and row["state"] == state]
        gate_rows = gate_rows or [row for row in self.theories if row["theory"] in self.gate]
        if not gate_rows:
            return _pattern("no_reason")
        question = QUESTIONS[Theory(gate_rows[0]["theory"])].short
        return _pattern("reason", question=question, reason=gate_rows[0]["reason"])


def _pattern(name: str, **words: object) -> str:
    text: str = sentences("messages")[name]
    return text.format(**words)


def checks_of(lake: Lake, run: Run) -> Checks:
    """The checks of a run, as published; no rows where an earlier release was not audited together with it.

    Raises:
        IntegrityError: the table is not the one that was written.
    """
    door = door_of(lake, run.run)
    if door.apart:
        return Checks((), (), frozenset(), apart=_pattern("apart", runs=", ".join(door.apart), run=run.run))
    table = run.published(VERDICTS.name)
    rephrase = rephrase_of(run.spec)
    rows = [] if table is None else rephrase_rows(door.through(table.table, lake.read(table)).to_pylist(), rephrase)
    theories = [row for row in rows if row["role"] == "theory"]
    gate = (run.spec.get("verdicts") or {}).get("gate") or (*GATE, Theory.OWN_LIMITS)
    limited = [row for row in rows if row["limit"] is not None and row["role"] != "theory"]
    return Checks(sorted(limited, key=_order), theories, frozenset(map(str, gate)), rephrase)


def shown(row: Row) -> dict[str, Any]:
    """A check as a row of a table for people."""
    return {
        "state": state_words(state_of_row(row)),
        "role": row["role"],
        "question": QUESTIONS[Theory(row["theory"])].short,
        "group": f"{row['protected_attribute']}: {row['group']}",
        "measure": row["measure"],
        "decisions of": row["decision_maker"],
        "value [verdict interval]": "withheld" if row["withheld"] else effect_words(row),
        "limit": limit_words(row),
        "why": row["reason"],
    }


def _order(row: Row) -> tuple[int, bool, float]:
    state = State.INCONCLUSIVE if row["withheld"] else State(row["state"])
    place = _WORST_FIRST.index(state) if state in _WORST_FIRST else len(_WORST_FIRST)
    evidence = row["p_breach_holm"] if row["p_breach_holm"] is not None else row["p_breach"]
    return place, row["role"] not in _DECIDE, 1.0 if evidence is None else float(evidence)
