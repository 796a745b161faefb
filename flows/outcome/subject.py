"""What a flow run is about, from its parameters: its name on the server and its tags.

The spec may be a file that is not usable: a run has a name all the same, and fails with that error later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.audit.text import parse, spec_text
from schemas.errors import SpecError

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
        whole = sorted(self.years) == list(range(first, last + 1))
        return f"{first}-{last}" if whole else ",".join(map(str, sorted(self.years)))


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


def _spec(given: Any) -> Mapping[str, Any]:
    """The spec's keys, without a check."""
    if isinstance(given, Mapping):
        return given
    try:
        read = parse(spec_text(Path(given))).value
    except (OSError, ValueError, SpecError):
        return {}
    return read if isinstance(read, Mapping) else {}


def _texts(part: Any) -> set[str]:
    if isinstance(part, Mapping):
        return set().union(*(_texts(key) | _texts(value) for key, value in part.items()))
    if isinstance(part, list | tuple):
        return set().union(*map(_texts, part))
    return {part} if isinstance(part, str) and len(part) >= LEAST_LETTERS else set()
