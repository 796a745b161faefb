"""A lake with a finished run of every lender of a year and of all its rows; nothing in it was computed."""

import csv
import json
import math

from publication_rows import publication_rows

from flows.runs.index import digest
from schemas.tables.verdicts import GONE, PUBLICATION, PUBLISHED_MEASURES, PUBLISHED_VERDICTS
from tasks.lake.store import Lake
from tasks.metrics.publish.algorithm.populations import Base
from tasks.metrics.publish.measures import _withheld
from tasks.pipeline.registry import read_spec
from tasks.plan import slug

GROUPS = ("white", "Black", "Asian")
SPEC = """\
name: loans
title: Loans by lender
year: 2024
source: {kind: csv, path: loans.csv}
by: {column: lender, minimum: 100}
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected:
  - {name: race, columns: [race], groups: {white: [white], Black: [Black], Asian: [Asian]}, reference: white}
columns:
  income: {type: continuous}
model: {kind: logistic_regression}
methods: {adjusted: {}}
disclosure: {profile: public}
"""
LENDERS = {
    "LEI0": ((60, 540), (60, 140), (20, 80)),
    "LEI1": ((50, 450), (18, 132), (10, 70)),
    "LEI2": ((55, 445), (20, 130), (1, 2)),
    "LEI3": ((45, 355), (15, 85), (8, 52)),
    "LEI4": ((66, 434), (24, 96), (9, 61)),
}
"""Denied and approved of white, Black and Asian applicants."""
LIMITS = {
    "similar_applicants": ("adjusted", "adjusted_effect", 0.02, "at_most"),
    "approval_rates": ("outcomes", "approval_rate_ratio", 0.8, "at_least"),
}


def people(*numbers):
    """Group -> denied and approved."""
    return dict(zip(GROUPS, numbers, strict=True))


def lake_of_lenders(place, lenders=LENDERS, *, every=True, profile="public", small=30):
    """Make it in a directory, with the table of loans and its spec.

    Args:
        place: the directory.
        lenders: value -> denied and approved of each group.
        every: whether there is a run over all rows.
        profile: of disclosure control of all runs.
        small: rows of a further lender that has too few people.
    """
    text = SPEC.replace("profile: public", f"profile: {profile}")
    (place / "loans.yaml").write_text(text.replace("path: loans.csv", f"path: {place / 'loans.csv'}"))
    others = {"TINY": ((small // 5, small - small // 5), (0, 0), (0, 0))} if small else {}
    _write_rows(place / "loans.csv", {**lenders, **others})
    lake = Lake(place / "lake")
    spec = read_spec((place / "loans.yaml").read_text(), "loans.yaml", {}).spec
    for value, numbers in lenders.items():
        add_run(lake, spec, value, people(*numbers), profile)
    if every:
        totals = [
            tuple(map(sum, zip(*each, strict=True))) for each in zip(*lenders.values(), *others.values(), strict=True)
        ]
        add_run(lake, spec, "all", people(*totals), profile)
    return lake, spec


def _write_rows(file, lenders):
    with file.open("w", newline="") as opened:
        out = csv.writer(opened)
        out.writerow(("lender", "race", "income", "approved"))
        for value, numbers in lenders.items():
            for group, both in zip(GROUPS, numbers, strict=True):
                for said, n in zip(("no", "yes"), both, strict=True):
                    out.writerows((value, group, 50, said) for _ in range(n))


def add_run(lake, spec, value, counts, profile="public", measures=(), finished="2026-01-01T00:00:00Z"):
    """One finished run of a partition."""
    rows = publication_rows(counts, profile, (Base.SOURCE, Base.USED))
    gone = {row["group"] for row in rows if row["fate"] in GONE}
    judged = [row for group in GROUPS[1:] for row in verdicts_of(counts, group, hidden=group in gone)]
    rates = [rate(counts, group, hidden=group in gone) for group in GROUPS]
    tables = {
        table.name: table.build(**{c.name: [row[c.name] for row in of] for c in table.columns})
        for table, of in (
            (PUBLICATION, rows),
            (PUBLISHED_VERDICTS, judged),
            (PUBLISHED_MEASURES, [*rates, *measures]),
        )
    }
    key = digest({"value": value, "counts": counts, "more": len(measures)})[:32]
    made = lake.publish("publish", key, tables, {}, {}).model_dump(mode="json", exclude={"reused"})
    run = f"loans-2024-{slug(value)}-{key[:10]}"
    content = {
        **{"run": run, "dataset": "loans", "year": 2024, "state": "outside", "finished": finished},
        **{"partition": {"column": "lender", "value": value}, "spec": spec.model_dump(mode="json")},
        **{"source_sha256": "ab" * 32, "code": "cd" * 32, "versions": {}, "exported": {}, "records": {}},
        **{"partitions": [made], "lineage": [{"rows": {"in": 1}}]},
    }
    content["spec"]["disclosure"]["profile"] = profile
    lake.write_file(f"runs/{run}/manifest.json", json.dumps({**content, "sha256": digest(content)}, indent=1).encode())
    return run


def verdicts_of(counts, group, *, hidden):
    """A row for each theory: the difference of denial and the ratio of approval, each with its usual error."""
    (d, a), (d0, a0) = counts[group], counts["white"]
    n, n0 = d + a, d0 + a0
    q, q0 = d / n, d0 / n0
    found = {
        "similar_applicants": (q - q0, math.sqrt(q * (1 - q) / n + q0 * (1 - q0) / n0), "linear"),
        "approval_rates": ((1 - q) / (1 - q0), math.sqrt(q / (1 - q) / n + q0 / (1 - q0) / n0), "log"),
    }
    for theory, (value, se, scale) in found.items():
        row = _verdict(theory, group, value, se, scale)
        yield _withheld(row) if hidden else {**row, "n": n, "events": d, "n_reference": n0, "events_reference": d0}


def _verdict(theory, group, value, se, scale):
    method, measure, limit, side = LIMITS[theory]
    ends = [value + z * se if scale == "linear" else value * math.exp(z * se) for z in (-1.96, 1.96, -1.645, 1.645)]
    beyond = ends[2] > limit if side == "at_most" else ends[3] < limit
    apart = (value - limit) / se if scale == "linear" else math.log(limit / value) / se
    p = max(0.5 * math.erfc(apart / math.sqrt(2)), 0.001)
    blank = dict.fromkeys(column.name for column in PUBLISHED_VERDICTS.columns)
    return {
        **blank,
        **{"theory": theory, "protected_attribute": "race", "group": group, "reference_group": "white"},
        **{"decision_maker": "lender", "method": method, "measure": measure, "role": "primary", "value": value},
        **{"plain_low": ends[0], "plain_high": ends[1], "low": ends[2], "high": ends[3], "se": se, "scale": scale},
        **{"bias": 0.0, "limit": limit, "side": side, "p_breach": p, "p_breach_holm": p, "p_within": 1 - p},
        **{"detectable": limit + 2.5 * se if scale == "linear" else limit * math.exp(-2.5 * se)},
        **{
            "robustness": 0.1 if theory == "similar_applicants" else None,
            "state": "outside" if beyond else "inconclusive",
        },
        **{"reason": "planted", "assumption": "none", "withheld": False},
    }


def rate(counts, group, *, hidden):
    """The row of the denial rate."""
    d, a = counts[group]
    n = d + a
    blank = dict.fromkeys(column.name for column in PUBLISHED_MEASURES.columns)
    known = {"value": d / n, "low": d / n - 0.02, "high": d / n + 0.02, "n": n, "events": d, "state": "no_limit"}
    nothing = dict.fromkeys(("value", "low", "high", "n", "events")) | {"state": "inconclusive"}
    return {
        **blank,
        **{"dataset": "loans", "year": 2024, "method": "outcomes", "decision_maker": "lender", "note": ""},
        **{"protected_attribute": "race", "group": group, "subgroup": 0, "measure": "denial_rate"},
        **{"parameters": "{}", "reason": "withheld" if hidden else "", **(nothing if hidden else known)},
    }
