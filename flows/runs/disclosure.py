"""What a run withholds, for restricted eyes: each withheld population with why, and what a reader can tell of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.artifact import Partition
from schemas.errors import SpecError
from schemas.tables.publication import GONE, PUBLICATION
from schemas.terms import EVERYBODY
from tasks.lake.store import Lake
from tasks.metrics.publish.algorithm.profiles import POLICIES

RESTRICTED = "restricted: counts of withheld groups can be told from this; it is not to be published or passed on"
_WHOSE = ("protected_attribute", "group", "part", "decision_maker", "base", "reason")
_WHOLE = ("source", "used")
"""Bases of populations that stand for a group as a whole."""
_NAMED = 3
"""Groups that a line names."""


def withheld(lake: Lake, partitions: Sequence[Partition]) -> list[dict[str, Any]]:
    """A row for each withheld count of people: whom, why, least and largest value that can be told, and their width.

    Raises:
        SpecError: the run was made by a version without the disclosure pass.
        IntegrityError: the table is not the one that was written.
    """
    return [
        {**{name: row[name] for name in (*_WHOSE, "event", "fate", "least", "largest")}, "width": _width(row)}
        for row in _rows(lake, partitions)
        if row["fate"] in GONE
    ]


def counted(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many populations are withheld, in words, from the rows of the publication."""
    every = {tuple(row[name] for name in _WHOSE) for row in rows}
    gone = {tuple(row[name] for name in _WHOSE) for row in rows if row["fate"] in GONE}
    return f"{len(gone)} of {len(every)} populations withheld"


def remarks(rows: Sequence[Mapping[str, Any]], verdicts: Sequence[Mapping[str, Any]], profile: str) -> list[str]:
    """What whoever publishes a run is told of the pass, without the groups: which are withheld for others is not told.

    Args:
        rows: of the publication.
        verdicts: rows of the published verdicts.
        profile: of disclosure control.
    """
    judged = {(each["protected_attribute"], each["group"]) for each in verdicts if each["withheld"]}
    lost = {
        (row["protected_attribute"], row["group"])
        for row in rows
        if row["fate"] == "withheld_with" and not row["reason"] and (row["least"] or 0) >= POLICIES[profile].smallest
    }
    wanted = POLICIES[profile].wanted
    told = [r for r in rows if r["fate"] == "withheld_small" and (w := _width(r)) is not None and w < wanted]
    out = []
    if n := len(lost & judged):
        groups = "1 group with a verdict is" if n == 1 else f"{n} groups with a verdict are"
        out.append(f"{groups} withheld, since smaller counts would follow; evenhand disclose has them")
    if told:
        out.append(f"withheld counts that follow from what is published: {len(told)}; merge groups")
    return out


def withheld_groups(rows: Sequence[Mapping[str, Any]], profile: str) -> list[str]:
    """A sentence that names the groups that are withheld as a whole, and a way on; none where none is.

    Which of them is small, and which is withheld because it would tell the small one, is not said.
    """
    whole = (row for row in rows if row["fate"] in GONE and row["part"] == 0 and row["base"] in _WHOLE)
    groups = list(dict.fromkeys(row["group"] for row in whole if row["group"] != EVERYBODY))
    if not groups:
        return []
    named = ", ".join(groups[:_NAMED]) + (f" and {len(groups) - _NAMED} more" if len(groups) > _NAMED else "")
    why = f"the profile `{profile}` withholds groups of few people, or few denied, and who would tell them"
    return [f"Withheld: {named}: {why}. For your own eyes: --set disclosure.profile=internal"]


def _rows(lake: Lake, partitions: Sequence[Partition]) -> list[dict[str, Any]]:
    for partition in partitions:
        for artifact in partition.tables:
            if artifact.table == PUBLICATION.name:
                return list(lake.read(artifact).to_pylist())
    raise SpecError("the run was made before the disclosure pass; audit again to have it")


def _width(row: Mapping[str, Any]) -> int | None:
    return None if row["least"] is None else row["largest"] - row["least"]
