"""Checks of a published run: rows of its published verdicts with a limit, and the sentence on the worst of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.runs.index import Run
from schemas.audit.limits import GATE
from schemas.tables.verdicts import VERDICTS, effect_words, limit_words, state_of_row
from schemas.terms import State, Theory
from tasks.lake.store import Lake

_DECIDE = ("primary", "adds")
"""Roles of rows that decide the state of their theory."""
_WORST_FIRST = (State.BREACH, State.INSUFFICIENT_EVIDENCE)

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
        rows = self.deciding
        of_state = [row for row in rows if row["state"] == state and not row["withheld"]]
        if state is State.BREACH:
            if not of_state:
                return f"a limit is breached; {self._reason(state)}"
            return f"{len(of_state)} of {len(rows)} limits breached; {words_of(of_state[0])}"
        if state is State.WITHIN:
            closest = f"; closest: {words_of(of_state[0])}" if of_state else ""
            return f"{len(of_state)} of {len(rows)} limits kept, none breached{closest}"
        if not rows:
            return f"no limit could be judged; {self._reason(state)}"
        open_ = [row for row in rows if row["withheld"] or row["state"] != State.WITHIN]
        return f"{len(open_)} of {len(rows)} limits could not be judged; {self._reason(State.INSUFFICIENT_EVIDENCE)}"

    def _reason(self, state: State) -> str:
        """Why the first theory with a state has it; of none, that no theory counts."""
        told = [row for row in self.theories if row["theory"] in self.gate and row["state"] == state]
        told = told or [row for row in self.theories if row["theory"] in self.gate]
        return f"{told[0]['theory']}: {told[0]['reason']}" if told else "no theory that counts has a limit"


def checks_of(lake: Lake, run: Run) -> Checks:
    """The checks of a run, as published.

    Raises:
        IntegrityError: the table is not the one that was written.
    """
    table = run.published(VERDICTS.name)
    rows = [] if table is None else lake.read(table).to_pylist()
    theories = [row for row in rows if row["role"] == "theory"]
    gate = (run.spec.get("verdicts") or {}).get("gate") or (*GATE, Theory.OWN)
    limited = [row for row in rows if row["limit"] is not None and row["role"] != "theory"]
    return Checks(sorted(limited, key=_order), theories, frozenset(map(str, gate)))


def words_of(row: Row) -> str:
    """A check in words, such as ``outcome, race: Black approval_rate_ratio 0.74 [0.67, 0.81], at least 0.90``."""
    whose = f"{row['theory']}, {row['protected_attribute']}: {row['group']} {row['measure']}"
    effect = "withheld" if row["withheld"] else effect_words(row)
    return ", ".join(filter(None, (f"{whose} {effect}".rstrip(), limit_words(row))))


def shown(row: Row) -> dict[str, Any]:
    """A check as a row of a table for people."""
    return {
        "state": state_of_row(row),
        "role": row["role"],
        "theory": str(row["theory"]),
        "group": f"{row['protected_attribute']}: {row['group']}",
        "measure": row["measure"],
        "decisions of": row["decision_maker"],
        "value [interval]": "withheld" if row["withheld"] else effect_words(row),
        "limit": limit_words(row),
        "why": row["reason"],
    }


def _order(row: Row) -> tuple[int, bool, float]:
    state = State.INSUFFICIENT_EVIDENCE if row["withheld"] else State(row["state"])
    place = _WORST_FIRST.index(state) if state in _WORST_FIRST else len(_WORST_FIRST)
    evidence = row["p_breach_holm"] if row["p_breach_holm"] is not None else row["p_breach"]
    return place, row["role"] not in _DECIDE, 1.0 if evidence is None else float(evidence)
