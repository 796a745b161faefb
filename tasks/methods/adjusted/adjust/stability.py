"""Whether the state of a group depends on its effect is estimated: states by 48 choices, and their chart.

Scope: states and words of choices, and the chart. The estimates: ``algorithm.choices``. Which state: ``tasks.metrics``.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from scipy.stats import norm, t

from schemas.audit.limits import Verdicts
from schemas.errors import SpecError
from schemas.sentences import choices_sentence
from schemas.tables.readings import CHOICES
from schemas.tables.verdicts import approval_of
from schemas.terms import State, Theory
from tasks.methods.adjusted.adjust.examination import tables_of
from tasks.methods.adjusted.adjust.power import QUESTIONS, WORDS, examinations_of
from tasks.methods.adjusted.adjust.rows import table_of
from tasks.methods.adjusted.adjust.settings import AdjustSettings
from tasks.methods.adjusted.algorithm.choices import Choice, grid
from tasks.metrics.readings import Whose, states_of_choices
from tasks.metrics.verdicts import rules_of
from tasks.reporting.charts.rows import Caterpillar
from tasks.reporting.charts.values import POINTS, Mark

_TWO_SIDED = 0.025


@dataclass(frozen=True)
class ByChoice:
    """The effect by one choice, in points of approval: negative where the group is approved less often."""

    number: int
    choice: Choice
    value: float
    low: float
    high: float
    """95 % interval."""
    limit: float
    state: State


@dataclass(frozen=True)
class Stability:
    """One group by all choices."""

    protected_attribute: str
    group: str
    state: State
    """Of the whole group in the run, by the audit's own choice."""
    n: int
    choices: tuple[ByChoice, ...]
    """In their order; none where the row is not judged."""
    reason: str = ""
    """Why there is none."""

    @property
    def counts(self) -> dict[State, int]:
        """Choices by state."""
        return Counter(effect.state for effect in self.choices)

    @property
    def different(self) -> int:
        """Choices with different results: where no column has a gap there is nothing to weight."""
        return len({(round(effect.value, 9), round(effect.low, 9)) for effect in self.choices})

    @property
    def sentence(self) -> str:
        """In how many choices the state is the same; or why it is unknown."""
        if not self.choices:
            return f"{self.group}: {self.reason}."
        counts = self.counts
        return choices_sentence(self.group, len(self.choices), counts[State.OUTSIDE], counts[State.WITHIN])

    def chart(self) -> Caterpillar:
        """Each choice as a dot with its interval, sorted; the limit is a line."""
        marks = [
            Mark(
                label=effect.choice.words,
                value=effect.value,
                low=effect.low,
                high=effect.high,
                n=self.n,
                state=str(effect.state),
            )
            for effect in sorted(self.choices, key=lambda effect: (effect.value, effect.number))
        ]
        title = f"{self.group}: the effect by {len(marks)} choices of form, columns, files and estimator"
        return Caterpillar(title=title, unit=POINTS, rows=tuple(marks), limit=self.choices[0].limit, head="Choice")


def choices_of(tables: Mapping[str, pa.Table], settings: AdjustSettings) -> pa.Table:
    """The table of choices, from the applications of a run."""
    rows: list[Mapping[str, Any]] = []
    for of in examinations_of(tables, settings):
        chosen = grid(of.files, of.rules)
        rows += tables_of(of.identity, of.files, [], of.cluster, settings.limits.points, chosen)[CHOICES.name]
    return table_of(CHOICES, rows)


def stability_of(verdicts: pa.Table, choices: pa.Table, settings: Verdicts) -> Iterator[Stability]:
    """Every group with a verdict on similar applicants.

    Args:
        verdicts: of a run, exact; withheld ones are the caller's.
        choices: of the same run.
        settings: of verdicts.

    Raises:
        SpecError: the run judged nobody's similar applicants.
    """
    rows = [
        row
        for row in verdicts.to_pylist()
        if (row["theory"], row["role"]) == (Theory.SIMILAR_APPLICANTS, "primary") and row["group"]
    ]
    if not rows:
        raise SpecError(f"this run has no verdict on {QUESTIONS[Theory.SIMILAR_APPLICANTS]}: it judges no group")
    by_group: dict[Whose, list[dict[str, Any]]] = {}
    for row in choices.to_pylist():
        by_group.setdefault((row["decision_maker"], row["protected_attribute"], row["group"]), []).append(row)
    states = states_of_choices(rows, by_group, rules_of(settings))
    for row in rows:
        whose = row["decision_maker"], row["protected_attribute"], row["group"]
        by_choice = tuple(_by_choice(choice, state) for choice, state in states.get(whose, ()))
        of_whole = by_choice[0].state if by_choice else State(row["state"])
        reason = "" if by_choice else row["reason"] or "the effect was not estimated by other choices"
        n = int(states[whose][0][0]["n"] if by_choice else row["n"] or 0)
        yield Stability(row["protected_attribute"], row["group"], of_whole, n, by_choice, reason)


def _by_choice(row: Mapping[str, Any], state: State) -> ByChoice:
    choice = Choice(*(row[name] for name in ("form", "clipped", "through", "weighted", "estimator")))
    df = math.inf if row["df"] is None else row["df"]
    half = float(norm.isf(_TWO_SIDED) if math.isinf(df) else t.isf(_TWO_SIDED, df)) * row["se"]
    value = row["value"]
    points, low, high, limit = (100 * approval_of(n) for n in (value, value + half, value - half, row["limit"]))
    return ByChoice(row["number"], choice, points, low, high, limit, state)


def rows_of_choices(stabilities: Sequence[Stability]) -> list[dict[str, Any]]:
    """A row for each group and choice, as JSON has them."""
    return [
        {"protected_attribute": of.protected_attribute, "group": of.group, "number": effect.number}
        | vars(effect.choice)
        | {name: round(getattr(effect, name), 4) for name in ("value", "low", "high", "limit")}
        | {"state": WORDS.get(effect.state, "inconclusive")}
        for of in stabilities
        for effect in of.choices
    ]
