"""What is asked of a league: measures that can be held beside each other whatever the size of a partition, and groups.

Which can is declared with each method (``Method.comparable``), not listed here.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from schemas.errors import SpecError, nearest
from schemas.terms import Theory
from tasks.metrics.algorithm.measures import base_name
from tasks.metrics.algorithm.verdicts.thresholds import known_names
from tasks.pipeline.registry import METHODS, comparable, measures_known

Row = Mapping[str, Any]
SIZE: Final = "size"
"""Parameter of a measure that was taken at one number of rows."""
_ROLES: Final = ("primary", "adds", "beside")
_THEORIES: Final = tuple(theory.value for theory in Theory if theory is not Theory.OWN)


class Subject(NamedTuple):
    """One measure of one group, as one table of the league shows it."""

    theory: str
    """Empty of a measure that no theory is judged by."""
    role: str
    method: str
    measure: str
    parameters: str
    decision_maker: str
    protected_attribute: str
    group: str
    reference_group: str

    def is_of(self, row: Row) -> bool:
        """Whether a row of published measures or verdicts is about it."""
        own = (self.method, self.measure, self.decision_maker, self.protected_attribute, self.group)
        names = ("method", "measure", "decision_maker", "protected_attribute", "group")
        return own == tuple(row[name] for name in names) and row.get("parameters", "{}") == self.parameters


@dataclass(frozen=True)
class Asked:
    """What the caller wants to see; None: all that judges, and all groups."""

    measure: str | None
    group: str | None

    def chosen(self, subjects: Sequence[Subject]) -> list[Subject]:
        """The subjects that are asked for, those of theories first, ``direct`` before all.

        Raises:
            SpecError: no run has the measure or the group, or partitions of different size cannot be compared by it.
        """
        if self.measure is not None:
            check_measure(self.measure, subjects)
        if self.group is not None and self.group not in {each.group for each in subjects}:
            known = sorted({each.group for each in subjects})
            raise SpecError(f"--group {self.group}: no partition has a figure of it; {nearest(self.group, known)}")
        found = [each for each in subjects if self.group in (None, each.group)]
        if self.measure is None:
            return [each for each in found if each.theory]
        found = [each for each in found if each.measure == self.measure]
        judged = [each for each in found if each.theory]
        return judged or found


def check_measure(measure: str, subjects: Iterable[Subject]) -> None:
    """Refuse a measure that no run has, or by which partitions of different size cannot be compared."""
    every = known_names(measures_known())
    allowed = sorted({each.measure for each in subjects})
    if measure in allowed:
        return
    if measure not in every:
        raise SpecError(f"--measure {measure}: there is no such measure; {nearest(measure, allowed)}")
    may = f"ask for {', '.join(allowed)}" if allowed else "no measure of these runs can be held beside each other"
    if not is_comparable(measure, "{}"):
        grows = next((m.grows for m in METHODS.values() if base_name(measure) in m.measures), "")
        why = f"depends on the number of rows ({grows})" if grows else "depends on the number of rows"
        raise SpecError(f"--measure {measure} {why}, and a league holds partitions of every size together; {may}")
    raise SpecError(f"--measure {measure}: no partition has a figure of it; {may}")


def is_comparable(measure: str, parameters: str) -> bool:
    """Whether a measure means the same in partitions of every size: by declaration, or since it is taken at one."""
    return SIZE in json.loads(parameters or "{}") or any(
        measure.removesuffix(suffix) in comparable() for suffix in ("", "_difference", "_ratio")
    )


def subjects_of(verdicts: Iterable[Sequence[Row]], measures: Iterable[Sequence[Row]]) -> list[Subject]:
    """Every comparable measure and group of any partition, in the order of theories, roles and names."""
    found = dict[Subject, None]()
    for row in (row for rows in verdicts for row in rows):
        if row["theory"] in _THEORIES and row["role"] in _ROLES and is_comparable(row["measure"], "{}"):
            found[_subject(row, row["theory"], row["role"], "{}")] = None
    judged = {each[3:] for each in found}
    for row in (row for rows in measures for row in rows):
        plain = row["subgroup"] == 0 and (row["parameters"] == "{}" or SIZE in json.loads(row["parameters"]))
        if plain and is_comparable(row["measure"], row["parameters"]):
            subject = _subject(row, "", "", row["parameters"])
            if subject[3:] not in judged:
                found[subject] = None
    return sorted(found, key=_place)


def _subject(row: Row, theory: str, role: str, parameters: str) -> Subject:
    whose = (row["decision_maker"], row["protected_attribute"], row["group"], row["reference_group"] or "")
    return Subject(theory, role, row["method"], row["measure"], parameters, *whose)


def _place(subject: Subject) -> tuple[int, int, Subject]:
    theory = _THEORIES.index(subject.theory) if subject.theory else len(_THEORIES)
    return theory, _ROLES.index(subject.role) if subject.role else len(_ROLES), subject
