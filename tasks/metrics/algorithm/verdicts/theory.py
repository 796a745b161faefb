"""The state of a theory of harm from those of its rows, and of an audit from those of its theories."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from schemas.terms import State, Theory
from tasks.metrics.algorithm.verdicts.agreement import Disagreement, Whose, whose
from tasks.metrics.algorithm.verdicts.judgement import DECIDING, Verdict


class Concluded(NamedTuple):
    """A theory as a whole."""

    state: State
    words: str
    about: tuple[tuple[Whose, str], ...] = ()
    """The groups that decide it, each with what more is said of it."""

    @property
    def reason(self) -> str:
        """Why, in words, with every group named."""
        named = dict.fromkeys(f"{group}{more}" for (*_, group), more in self.about)
        return f"{self.words}: {', '.join(named)}" if named else self.words


def conclude(rows: Sequence[Verdict], disagreeing: Sequence[Disagreement] = (), why_not: str = "") -> Concluded:
    """A theory's state: a breach of one row, else too little evidence in one, else within.

    Args:
        rows: those of the theory, of judged groups.
        disagreeing: groups of which two methods say what excludes each other.
        why_not: why it has no row of a primary measure, where it has none.
    """
    primary = [row for row in rows if row.case.role == "primary"]
    at_odds = {each.whose for each in disagreeing}
    breaching = [r for r in rows if r.case.role in DECIDING and r.state is State.BREACH]
    breached = [row for row in breaching if whose(row.case) not in at_odds]
    if breached:  # of a row that adds as well, though the primary measure has no limit, or its method is off
        return Concluded(State.BREACH, "beyond the limit", _groups(breached))
    if not primary:
        return Concluded(State.NOT_RUN, why_not or "no group is judged")
    if all(row.case.limit is None for row in primary):
        measured = any(row.state is State.NO_LIMIT for row in primary)
        return Concluded(State.NO_LIMIT, "no limit is set") if measured else Concluded(State.NOT_RUN, primary[0].reason)
    if disagreeing:
        pairs = tuple((each.whose, f" ({each.pair})") for each in disagreeing)
        return Concluded(State.INSUFFICIENT_EVIDENCE, "methods disagree", pairs)
    unsettled = [row for row in primary if row.state is not State.WITHIN]
    if unsettled:
        return Concluded(State.INSUFFICIENT_EVIDENCE, "too little evidence", _groups(unsettled))
    return Concluded(State.WITHIN, "every judged group lies inside the limit")


def _groups(rows: Sequence[Verdict]) -> tuple[tuple[Whose, str], ...]:
    return tuple((of, "") for of in dict.fromkeys(whose(row.case) for row in rows))


def overall(theories: Mapping[Theory, State], gate: Sequence[Theory], *, named: bool) -> State:
    """The state that decides the exit code.

    Args:
        theories: the state of each.
        gate: theories that count.
        named: whether the spec names them: one that did not run, or has no limit, is then too little evidence.
    """
    counted = [theories.get(theory, State.NOT_RUN) for theory in gate]
    if State.BREACH in counted:
        return State.BREACH
    idle = (State.NOT_RUN, State.NO_LIMIT, State.DESCRIPTIVE)
    if State.INSUFFICIENT_EVIDENCE in counted or (named and any(state in idle for state in counted)):
        return State.INSUFFICIENT_EVIDENCE
    return State.WITHIN if State.WITHIN in counted else State.NOT_RUN
