"""Shows what a run withholds, for restricted readers: each withheld population, the reason, and what follows from it.

And the earlier published runs over the same rows, as a reader has their numbers, too: the spec of a run names them when
it starts, so that they are part of its identity, and a replay takes the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from flows.runs.index import Run, published_runs, run_of, shares_rows
from schemas.artifact import Artifact, Partition
from schemas.audit.limits import Earlier
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.tables.verdicts import GONE, HANDED_ON, PUBLICATION, PUBLICATION_BESIDE, earlier
from schemas.terms import EVERYBODY
from tasks.lake.store import Lake
from tasks.metrics.publish.algorithm.profiles import POLICIES

RESTRICTED = "restricted: counts of withheld groups can be told from this; it is not to be published or passed on"
PROFILES = ("internal", "published", "public", "strict", "official")
"""Profiles of disclosure, the most careful last."""
SMALLEST = {name: policy.smallest for name, policy in POLICIES.items()}
"""Profile -> populations of fewer people are withheld; 0 where none is."""
_WHOSE = ("protected_attribute", "group", "part", "decision_maker", "base", "reason")
_WHOLE = ("source", "used")
"""Bases of populations that represent a group as a whole."""
_NAMED = 3
"""Groups that a line names."""


def with_earlier(spec: AuditSpec, lake: Lake) -> AuditSpec:
    """The spec with the published runs of the lake that share rows with it, and with those that it names itself.

    A published run that is audited again is the same run: it keeps the earlier runs that it had. Runs of a version
    that hands nothing on, or whose rows cannot be matched, are left out; the audit warns of them.

    Raises:
        SpecError: a run that the spec names is not in the lake, or its rows cannot be matched.
        InfrastructureError: the source is not there.
    """
    if not POLICIES[spec.disclosure.profile].protects:
        return spec
    named = [earlier_run.run for earlier_run in spec.disclosure.beside]
    published = [run for run in published_runs(lake) if run.spec.get("row_id") == spec.row_id and _handed_on(run)]
    if not (named or published):
        return spec
    from tasks.ingest import stage as ingest  # loads the stages, and who reads results needs none

    source_sha256 = ingest.ingest_settings(spec).source_sha256
    sharing = [run for run in published if _shares(run, spec, source_sha256)]
    for run in sharing:
        again = _again(spec, run) if {*named} <= {*run.beside} else None
        if again is not None:
            return again
    also = [run_of(lake, name) for name in named if name not in {run.run for run in sharing}]
    unmatched = [run.run for run in also if not _shares(run, spec, source_sha256)]
    if unmatched:
        message = f"{unmatched[0]} shares no rows with this audit that could be matched; leave it out"
        raise SpecError(message, ("disclosure", "beside"))
    taken_now = sorted([*sharing, *also], key=lambda run: run.run)
    return _beside(spec, [Earlier(run=run.run, tables=_handed_on(run)) for run in taken_now])


def _again(spec: AuditSpec, run: Run) -> AuditSpec | None:
    """The spec with the earlier runs of a run, where it is that run's; None where it is another's."""
    from tasks.plan import plan

    if (run.audit, run.year) != (spec.name, spec.year):
        return None
    same = _beside(spec, [Earlier.model_validate(earlier_run) for earlier_run in run.disclosure.get("beside", ())])
    return same if plan(same).run == run.run else None


def _shares(run: Run, spec: AuditSpec, source_sha256: str) -> bool:
    """Whether a run publishes its counted rows, and these rows can be identified among those of the spec.

    Rows of one file are by their number or identifier, those of two editions of a year by an identifier alone.
    """
    if not shares_rows(run.partition, spec.partition):
        return False
    same_file = run.source_sha256 == source_sha256
    same_year = (run.audit, run.year) == (spec.name, spec.year) and spec.row_id is not None
    return (same_file or same_year) and run.spec.get("row_id") == spec.row_id and bool(_handed_on(run))


def _handed_on(run: Run) -> tuple[Artifact, ...]:
    """The tables that a run hands on, as a later run reads them; none of a version that had not all of them."""
    artifacts = {artifact.table: artifact for partition in run.partitions for artifact in partition.tables}
    if any(table.name not in artifacts or not artifacts[table.name].rows for table in HANDED_ON):
        return ()  # of an older version, or one whose refused rows are kept as a sample
    return tuple(artifacts[t.name].model_copy(update={"table": earlier(t).name}) for t in HANDED_ON)


def _beside(spec: AuditSpec, runs: Sequence[Earlier]) -> AuditSpec:
    return spec.model_copy(update={"disclosure": spec.disclosure.model_copy(update={"beside": tuple(runs)})})


def beside(spec: AuditSpec, runs: Sequence[Run]) -> AuditSpec:
    """The spec with these earlier runs, and no others, under the most careful profile of all of them.

    Raises:
        SpecError: the rows of one cannot be matched with those of the audit.
    """
    profile = max([spec.disclosure.profile, *(run.disclosure["profile"] for run in runs)], key=PROFILES.index)
    unmatched = [run.run for run in runs if run.spec.get("row_id") != spec.row_id or not _handed_on(run)]
    if unmatched:
        raise SpecError(
            f"{unmatched[0]} was released and has rows of this run, and they cannot be matched row by row, so that "
            "what follows from them is unknown. Audit with the row_id of that run, and with refusals.keep: all"
        )
    named = _beside(spec, [Earlier(run=run.run, tables=_handed_on(run)) for run in sorted(runs, key=lambda r: r.run)])
    return named.model_copy(update={"disclosure": named.disclosure.model_copy(update={"profile": profile})})


def coarser(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """Cells that one publication prints and another prints more coarsely or not at all, in words; restricted."""
    printed = {_cell(row): (row["number"], row["text"], row["fate"]) for row in before if not row["groups"]}
    out = []
    for row in after:
        was = printed.get(_cell(row))
        if row["groups"] or was is None or was[2] in GONE or was == (row["number"], row["text"], row["fate"]):
            continue
        now = "is withheld" if row["fate"] in GONE else f"is {row['text'] or row['number']}"
        out.append(f"{_cell_words(row)}: {was[1] or was[0]} {now}")
    return out


def told_cells(rows: Sequence[Mapping[str, Any]], profile: str) -> list[str]:
    """Withheld cells of a publication that follow from it all the same, in words; restricted."""
    least_width = POLICIES[profile].wanted
    small_rows = [row for row in rows if row["fate"] == "withheld_small"]
    narrow_rows = [row for row in small_rows if (width := _width(row)) is not None and width < least_width]
    return [f"{_cell_words(row)}: {row['least']} to {row['largest']}" for row in narrow_rows]


def _cell(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*_WHOSE, "event"))


def _cell_words(row: Mapping[str, Any]) -> str:
    """Group, place and event of a cell."""
    part = f"part {row['part']}" if row["part"] else ""
    words = (row["protected_attribute"], row["group"], part, row["base"], row["reason"], row["decision_maker"])
    return ", ".join(str(word) for word in (*words, row["event"] or "n") if word)


def withheld(lake: Lake, partitions: Sequence[Partition]) -> list[dict[str, Any]]:
    """A row for each withheld count of people: group, reason, lowest and highest value that can be inferred, and width.

    Raises:
        SpecError: the run was made by a version without the disclosure pass.
        IntegrityError: the table is not the one that was written.
    """
    rows = read_rows(lake, partitions, PUBLICATION.name)
    if rows is None:
        raise SpecError("the run was made before the disclosure pass; audit again to have it")
    return [
        {**{name: row[name] for name in (*_WHOSE, "event", "fate", "least", "largest")}, "width": _width(row)}
        for row in rows
        if row["fate"] in GONE
    ]


def taken(lake: Lake, partitions: Sequence[Partition]) -> list[dict[str, Any]]:
    """The earlier published runs that a run was audited with, in the shape of ``PUBLICATION_BESIDE``.

    Raises:
        IntegrityError: the table is not the one that was written.
    """
    return read_rows(lake, partitions, PUBLICATION_BESIDE.name) or []


def of_earlier(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Notes for the publisher on earlier runs: how much more is withheld for them, and what can be inferred anyway."""
    runs, out = ", ".join(row["run"] for row in rows), []
    if rows and (n := rows[0]["told"]):
        counts = "1 count of few people" if n == 1 else f"{n} counts of few people"
        out.append(f"{counts} would follow from this run beside {runs}, which is published: more is withheld for that")
    if rows and (n := rows[0]["closed"]):
        out.append(f"counts of few people that follow from this run beside {runs}, withheld or not: {n}; merge groups")
    return out


def counted(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many populations are withheld, in words, from the rows of the publication."""
    every = {tuple(row[name] for name in _WHOSE) for row in rows if not row.get("groups")}
    gone = {tuple(row[name] for name in _WHOSE) for row in rows if row["fate"] in GONE}
    return f"{len(gone)} of {len(every)} populations withheld"


def remarks(rows: Sequence[Mapping[str, Any]], verdicts: Sequence[Mapping[str, Any]], profile: str) -> list[str]:
    """Notes for the publisher on the disclosure pass, without names of groups: they would reveal secondary suppression.

    Args:
        rows: of the publication.
        verdicts: rows of the published verdicts.
        profile: of disclosure control.
    """
    judged_groups = {(verdict["protected_attribute"], verdict["group"]) for verdict in verdicts if verdict["withheld"]}
    lost = {
        (row["protected_attribute"], row["group"])
        for row in rows
        if row["fate"] == "withheld_with" and not row["reason"] and (row["least"] or 0) >= POLICIES[profile].smallest
    }
    target_width = POLICIES[profile].wanted
    narrow_rows = [
        r for r in rows if r["fate"] == "withheld_small" and (w := _width(r)) is not None and w < target_width
    ]
    out = []
    if n := len(lost & judged_groups):
        groups = "1 group with a verdict is" if n == 1 else f"{n} groups with a verdict are"
        out.append(f"{groups} withheld, since smaller counts would follow; evenhand disclose has them")
    if narrow_rows:
        out.append(f"withheld counts that follow from what is published: {len(narrow_rows)}; merge groups")
    return out


def withheld_groups(rows: Sequence[Mapping[str, Any]], profile: str) -> list[str]:
    """A sentence that names the groups that are withheld as a whole, and a way on; none where none is.

    The sentence hides which of them is small, and which one is withheld to protect the small one.
    """
    whole_rows = (row for row in rows if row["fate"] in GONE and row["part"] == 0 and row["base"] in _WHOLE)
    groups = list(dict.fromkeys(row["group"] for row in whole_rows if row["group"] != EVERYBODY))
    if not groups:
        return []
    named = ", ".join(groups[:_NAMED]) + (f" and {len(groups) - _NAMED} more" if len(groups) > _NAMED else "")
    why = f"the profile `{profile}` withholds groups of few people, or few denied, and who would tell them"
    return [f"Withheld: {named}: {why}. For your own eyes: --set disclosure.profile=internal"]


def read_rows(lake: Lake, partitions: Sequence[Partition], name: str) -> list[dict[str, Any]] | None:
    """The rows of a table; None where the run has none of that name."""
    for artifact in (artifact for partition in partitions for artifact in partition.tables):
        if artifact.table == name:
            return list(lake.read(artifact).to_pylist())
    return None


def _width(row: Mapping[str, Any]) -> int | None:
    return None if row["least"] is None else row["largest"] - row["least"]


def flags_of(spec: Mapping[str, Any], findings: pa.Table) -> list[dict[str, Any]]:
    """The flag of each method for each applicant of a compared group, as ``flags`` makes them; restricted.

    Args:
        spec: of the run, as it is recorded.
        findings: its table of findings.
    """
    from tasks.metrics.publish.facts import flags  # loads statistics

    rows: list[dict[str, Any]] = flags(findings, {p["name"]: p["reference"] for p in spec["protected"]}).to_pylist()
    return rows
