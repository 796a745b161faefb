"""Material of report sections: settings, measures by name, signatures."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from schemas.audit.causal import CausalGraph
from schemas.audit.column import ColumnSpec
from schemas.audit.limits import Bootstrap, Disclosure, Threshold, Verdicts
from schemas.audit.methods import Methods, MethodSettings
from schemas.audit.model import Model
from schemas.audit.partition import ALL, SAMPLED, Growth, Part, unsampled
from schemas.audit.source import Source
from schemas.audit.spec import Decision, Explain, Protected, StageSettings
from schemas.questions import STATES
from schemas.table import Table
from schemas.tables.verdicts import PREFIX, PUBLISHED_CURVES, PUBLISHED_MEASURES, measure_in_approval
from schemas.terms import DecisionMaker, Note, State
from tasks.metrics.curves import rows_of

# --------------------------------------------------------------------------------------------------------------------
# Sign-off on a report's first page: who prepared, reviewed and approved the run, when, and what they signed.
#
# The report that a run makes is a draft. One that is made later is given what the log of the lake has by then.


DRAFT = "draft"
ENDED = ("rejected", "withdrawn")
_ROLES = ("prepared", "reviewed", "approved")
_STATES = {"prepared": "draft, prepared", "reviewed": "draft, reviewed"}
_MOST_NAMES = 3
"""Of a role; the page has room for no more."""
_MOST_WORDS = 20
"""Of a reason."""


@dataclass(frozen=True)
class Signature:
    """One signature."""

    by: str
    role: str
    """prepared, reviewed, approved, rejected or withdrawn."""
    day: str
    """Such as 2027-01-31."""
    sha256: str
    """Of the manifest that was signed."""
    text: str = ""
    key: str = ""
    """Fingerprint of the key; empty where the name is as given, and not verified."""


@dataclass(frozen=True)
class Signed:
    """Review state of a run."""

    state: str = DRAFT
    """draft, or the highest role that counts."""
    signatures: tuple[Signature, ...] = ()
    before: str = ""
    """A sentence on the run before; empty without one that was approved."""
    head: str = ""
    """Number and sha256 of the last of these entries of the log."""
    trusted: bool = True
    """Whether keys were trusted where the page was made; without trusted keys a name is a claim, with a key too."""

    @property
    def short(self) -> str:
        """The state in the line above the headline."""
        return _STATES.get(self.state, self.state)

    @property
    def words(self) -> str:
        """The review state in the words of the page."""
        return " ".join(part for part in (*self._state_words(), self.before, *self._proof()) if part)

    def _state_words(self) -> Iterator[str]:
        if self.state in ENDED:
            [last] = self.signatures
            words = last.text.split()
            cut = " ".join(words) if len(words) <= _MOST_WORDS else " ".join(words[:_MOST_WORDS]) + " ..."
            yield f"{self.state.capitalize()} by {last.by}, {last.day}: {cut}"
            return
        sentences = [_STATES.get(self.state, self.state).capitalize()]
        for role in _ROLES:
            matching = [signature for signature in self.signatures if signature.role == role]
            names = [
                f"{signature.by}, {signature.day}" + (f" (key {signature.key})" if signature.key else "")
                for signature in matching[-_MOST_NAMES:]
            ]
            names += [f"{len(matching) - _MOST_NAMES} more"] if len(matching) > _MOST_NAMES else []
            sentences.append(f"{role.capitalize()} by: {'; '.join(names) or 'open'}")
        yield ". ".join(sentences) + "."

    def _proof(self) -> Iterator[str]:
        """Whether keys vouch for the names, what was signed, and which entry of the log records it."""
        unverified = [signature for signature in self.signatures if not signature.key]
        if unverified:
            every = len(unverified) == len(self.signatures)
            yield "Names as given, not verified." if every else "Names without a key are as given, not verified."
        if len(unverified) < len(self.signatures) and not self.trusted:
            yield "No key is trusted here: names are claims."
        for digest in sorted({signature.sha256 for signature in self.signatures}):
            yield f"Signed manifest: {digest}."
        if self.head:
            yield f"Log: {self.head}."


NOT_SIGNED = Signed()


# --------------------------------------------------------------------------------------------------------------------
# What the sections are given: the settings of the report and the measures, found by name.
#
# Here belongs looking up. Nothing is computed from measures: what is printed is what was measured.


Rows = tuple[Mapping[str, Any], ...]
S = TypeVar("S", bound=MethodSettings)
C = TypeVar("C")


class ReportSettings(StageSettings):
    """The part of the audit spec that the report shows, and what identifies the run."""

    memory: ClassVar[Growth] = Growth(110, 1.2)

    name: str
    title: str
    year: int
    profile: str
    source: Source
    decision: Decision
    protected: tuple[Protected, ...]
    columns: dict[str, ColumnSpec]
    model: Model
    explain: Explain
    causal_graph: CausalGraph
    methods: Methods
    thresholds: tuple[Threshold, ...]
    verdicts: Verdicts
    disclosure: Disclosure
    bootstrap: Bootstrap
    seed: int
    missing: str
    unconfirmed: tuple[str, ...]
    run: str
    run_day: str
    """Day in UTC on which the run began, such as 2027-01-31; the age of the data counts from its year."""
    source_sha256: str
    code: str
    """Digest of the code that made the numbers."""
    effective_spec: str
    """How to make the run again."""
    version: str
    lender_name: str = ""
    """Beside the key of the source: a name that becomes known later makes the report again, and no result."""


RESTRICTED = "Restricted: the profile internal withholds nothing. Not to be published or passed on."
_OF_ENDS = {*Note, STATES[State.INFORMATION].words}
"""Parts of a note that are about the ends of an interval, or say that none is printed."""


@dataclass(frozen=True)
class Measure:
    """One row of the table of measures."""

    dataset: str
    year: int
    method: str
    decision_maker: str
    protected_attribute: str
    group: str
    reference_group: str | None
    subgroup: int
    measure: str
    parameters: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    events: int | None
    p: float | None
    q: float | None
    state: str
    reason: str
    note: str = ""

    @property
    def in_approval(self) -> "Measure":
        """The measure in the sign that people read, as pages, workbook and trend print it."""
        ends = {name: getattr(self, name) for name in ("measure", "value", "low", "high")}
        turned = measure_in_approval(ends)
        return self if turned == ends else replace(self, **turned)

    @property
    def withheld(self) -> bool:
        """Whether disclosure control took the value away (an undefined value keeps its n)."""
        return self.value is None and (self.n is None or self.reason.startswith("withheld"))

    @property
    def bound(self) -> str:
        """What qualifies the value itself: its note without the part about the two ends."""
        return "; ".join(part for part in self.note.split("; ") if part not in _OF_ENDS)

    @property
    def of_draws(self) -> bool:
        """Whether its ends are the range of what was drawn, and no interval."""
        return Note.RANGE in self.note.split("; ")

    @property
    def of_few(self) -> bool:
        """Whether it is a rate of so few people that its counts alone are printed; the reason has them."""
        return self.value is None and Note.FEW in self.note.split("; ")

    @cached_property
    def said(self) -> dict[str, Any]:
        """The parameters that distinguish measures: without the sample size."""
        return dict(json.loads(unsampled(self.parameters or "{}")))

    @property
    def sampled(self) -> str:
        """Sampled and total number; empty where all were sampled."""
        return str(json.loads(self.parameters or "{}").get(SAMPLED, ""))


@dataclass(frozen=True)
class View:
    """The measures of one method, decision maker and protected attribute."""

    rows: tuple[Measure, ...]
    """In the sign that people read."""
    maker: str
    attribute: str
    reference: str
    everyone: tuple[str, ...] = ()
    """The groups of the attribute in the report's order, those without any row here too; found in ``rows`` if empty."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Features in words, where the audit spec gives them."""
    method: MethodSettings | None = None
    """The settings of the method; None of what no method made."""
    whose: str = ""
    """Whose decisions, in words."""
    minimum: int = 0
    """Fewest people for a reading."""

    @property
    def name(self) -> str:
        """Name of the method; empty without a row."""
        return self.rows[0].method if self.rows else ""

    @cached_property
    def _index(self) -> dict[tuple[str, str, str, int], Measure]:
        return {(m.group, m.measure, json.dumps(m.said, sort_keys=True), m.subgroup): m for m in self.rows}

    @cached_property
    def _of(self) -> dict[str, tuple[Measure, ...]]:
        by_measure: dict[str, list[Measure]] = {}
        for m in self.rows:
            if m.subgroup == 0:
                by_measure.setdefault(m.measure, []).append(m)
        return {measure: tuple(rows) for measure, rows in by_measure.items()}

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups, the reference first, then by falling size; groups without a printed size last."""
        return self.everyone or by_size(self.rows, self.reference)

    def named(self, group: str) -> str:
        """A group as named in tables and above panels."""
        return f"{group} (reference)" if group == self.reference else group

    def label(self, feature: str) -> str:
        """A feature in words, or its name."""
        return self.labels.get(feature) or feature

    def get(
        self, group: str, measure: str, parameters: Mapping[str, float | str] | None = None, subgroup: int = 0
    ) -> Measure | None:
        """One measure, or nothing where the run did not make it."""
        return self._index.get((group, measure, json.dumps(dict(parameters or {}), sort_keys=True), subgroup))

    def all(self, measure: str) -> tuple[Measure, ...]:
        """A measure of whole groups, at all its parameters."""
        return self._of.get(measure, ())

    def subgroups(self, group: str) -> tuple[int, ...]:
        """Numbers of the group's subgroups."""
        return tuple(sorted({m.subgroup for m in self.rows if m.group == group and m.subgroup}))


@dataclass(frozen=True)
class Material:
    """The tables of a run and its settings."""

    settings: ReportSettings
    measures: tuple[Measure, ...]
    tables: Mapping[str, Rows]
    """Every other table that the stage reads, by name."""
    signed: Signed = NOT_SIGNED
    """What people signed until the report is made."""
    curves: tuple[pa.Table, ...] = ()
    """Tables of curves; their points are made rows where a page asks for them."""

    @classmethod
    def of(cls, settings: ReportSettings, tables: Mapping[str, pa.Table]) -> "Material":
        """From the tables as they are read, by name."""
        of_curves = {table.name for table in PUBLISHED_CURVES}
        rows = {name: tuple(table.to_pylist()) for name, table in tables.items() if name not in of_curves}
        measures = rows.pop(PUBLISHED_MEASURES.name, None) or rows.pop(PUBLISHED_MEASURES.name.removeprefix(PREFIX), ())
        curves = tuple(table for name, table in tables.items() if name in of_curves)
        return cls(settings, tuple(Measure(**row) for row in measures), rows, curves=curves)

    @cached_property
    def points(self) -> tuple[Measure, ...]:
        """Every point of a curve, followed by the mean of its draws, as a row of measures."""
        references = {p.name: p.reference for p in self.settings.protected}
        whose: dict[str, Any] = {"dataset": self.settings.name, "year": self.settings.year}
        return tuple(Measure(**whose, **row) for table in self.curves for row in rows_of(table.to_pylist(), references))

    def rows(self, table: Table) -> Rows:
        """A table that the stage reads, by its published or its raw declaration."""
        published_name = f"{PREFIX}{table.name.removeprefix(PREFIX)}"
        return self.tables[published_name] if published_name in self.tables else self.tables[table.name]

    def named(self, name: str) -> Rows:
        """A table by its name, as it was published; empty where the run has none."""
        return self.tables.get(f"{PREFIX}{name}") or self.tables.get(name, ())

    def asked(self, kind: type[S]) -> S:
        """The audit's settings of this kind for the method; their defaults if it has none."""
        return self.settings.methods.of(kind) or kind()

    @property
    def part(self) -> Part | None:
        """The partition of many that the run is about; None where it is about every row."""
        part = self.settings.source.part
        return None if part is None or part.value == ALL else part

    @property
    def title(self) -> str:
        """Of the audit, with the partition that the run is about."""
        title, name = self.settings.title or self.settings.name, self.settings.lender_name
        if self.part is None:
            return title
        part = f"{name} ({self.part.value})" if name else f"{self.part.column} {self.part.value}"
        return f"{title}, {part}"

    @cached_property
    def _names(self) -> frozenset[str]:
        settings = self.settings
        attributes = {name for p in settings.protected for name in (p.name, *p.columns, p.reference, *p.groups)}
        return frozenset(attributes | {m.group for m in self.measures} | {*settings.columns, self.title})

    def rephrase(self, text: str) -> str:
        """A sentence with the words of the decision; groups, columns and the title stay as they are written."""
        return self.settings.decision.wording.rephrase(text, self._names)

    def rephrase_all(self, content: C) -> C:
        """The same of a page or a result."""
        return self.settings.decision.wording.rephrase_all(content, self._names)

    @property
    def restricted(self) -> str:
        """Why no file of the run is to be passed on; empty where disclosure control protects."""
        return RESTRICTED if self.settings.disclosure.profile == "internal" else ""

    @property
    def minimum(self) -> int:
        """Fewest people for a verdict or a reading."""
        return self.settings.bootstrap.minimum_n

    @property
    def model(self) -> str:
        """The decision maker besides the lender: a model that was fitted to the lender's decisions, or a given rule."""
        return "rule" if self.settings.model.kind == "rule" else "model"

    def maker(self, maker: str) -> str:
        """A decision maker in one word."""
        return self.model if maker == DecisionMaker.MODEL else maker

    def whose(self, maker: str) -> str:
        """The decision maker in words."""
        if maker == DecisionMaker.LENDER:
            return "the lender's own decisions"
        descriptions = {"rule": "the rule that is audited", "file": "the model that is audited, given as a file"}
        return descriptions.get(self.settings.model.kind, "the model of the lender's decisions")

    def label(self, column: str) -> str:
        """A column in words without its unit; its name where the spec gives none."""
        column_spec = self.settings.columns.get(column)
        return (column_spec.label if column_spec else "").partition(" (")[0] or column

    def makers(self, method: str) -> tuple[str, ...]:
        """Decision makers that the method looked at, the model first."""
        present = {m.decision_maker for m in self.measures if m.method == method}
        return tuple(maker for maker in DecisionMaker if maker in present)

    def views(self, method: str, maker: str) -> tuple[View, ...]:
        """One view per protected attribute, in the order of the audit spec."""
        of_method = (m for rows in (self.measures, self.points) for m in rows if m.method == method)
        method_measures = [m for m in of_method if m.decision_maker == maker]
        labels = {name: column.label for name, column in self.settings.columns.items()}
        return tuple(
            View(
                tuple(m.in_approval for m in method_measures if m.protected_attribute == p.name),
                maker,
                p.name,
                p.reference,
                by_size((m for m in self.measures if m.protected_attribute == p.name), p.reference),
                labels,
                self.settings.methods.by_name.get(method),
                self.whose(maker),
                self.minimum,
            )
            for p in self.settings.protected
            if any(m.protected_attribute == p.name for m in method_measures)
        )


def by_size(rows: Iterable[Measure], reference: str) -> tuple[str, ...]:
    """The groups of ``rows``, the reference first, then by falling size; groups without a printed size last."""
    size: dict[str, int] = {}
    for m in rows:
        if m.subgroup == 0:
            n = -1 if m.n is None or m.reference_group is not None else m.n
            size[m.group] = max(size.get(m.group, -1), n)
    return tuple(sorted(size, key=lambda group: (group != reference, -size[group], group)))


def anchor(*parts: str) -> str:
    """A fragment identifier: letters, digits and dashes only, for any name of a group."""
    text = "-".join(parts).lower()
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text).strip("-") or "part"


def listed(words: Iterable[str]) -> str:
    """Words as a sentence lists them."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else "none"


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]
