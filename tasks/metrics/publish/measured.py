"""The table of measures as it is published: which statistics are withheld, and their numbers by printed counts."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.audit.limits import Bootstrap
from schemas.audit.partition import SAMPLED, as_sampled, asked_and_of
from schemas.tables.applications import MODEL_REFITS
from schemas.tables.findings import FINDINGS
from schemas.tables.measures import MEASURES
from schemas.tables.published import PUBLISHED_MEASURES
from tasks.metrics.algorithm.measures import Family, Given, Plan, Statistic
from tasks.metrics.publish.algorithm import digits, families
from tasks.metrics.publish.algorithm.families import Cell
from tasks.metrics.publish.algorithm.measured import DECISIONS, Publisher
from tasks.metrics.publish.algorithm.spread import Pair, Spread, of_counts, of_decisions, spreads
from tasks.metrics.publish.fates import Fates
from tasks.metrics.tallied import Tallied, of_families, refitted
from tasks.pipeline.registry import covering, partitions

MATCHED = "matched_with"
"""Parameter of measures of pairs: the group that the other one of a pair is of."""
EXPECTED = "_under_relabelling"
"""End of the name of a mean over draws. A share less this mean is printed beside it, so that both tell the share."""


def hidden(tallied: Tallied, fates: Fates) -> set[Cell]:
    """Statistics that are withheld: small ones, those that add up with them, and all of a withheld group.

    What others find beside a withheld group is of its people, too: ``matched_with`` names it. A mean that gives a share
    back, which is withheld or rounded, goes too: 0.0132 more than 0.225 are 5 of 21.
    """
    found: list[Statistic | Given] = [*tallied.statistics, *tallied.given]
    # decisions are counts that the pass itself holds open: what it shows is shown
    gone = families.withheld([s for s in found if s.family.method != DECISIONS], fates.policy, partitions())
    gone |= {(s.family, s.group) for s in found if any(_gone(s, fates))}
    return gone | {(s.family, s.group) for s in tallied.given if _gives_back(s, gone, fates)}


def _gone(s: Statistic | Given, fates: Fates) -> Iterator[bool]:
    """Whether its group is withheld, or the one that its people are matched with."""
    for group in (s.group, json.loads(s.family.parameters or "{}").get(MATCHED)):
        yield group is not None and fates.is_gone(s.family.protected_attribute, group, s.family.decision_maker)


def _gives_back(s: Given, gone: set[Cell], fates: Fates) -> bool:
    """Whether it is the mean that a share is held against which is not printed to the last person."""
    own = s.family.measure.removesuffix(EXPECTED)
    if own == s.family.measure or not fates.policy.protects:
        return False
    hides = (replace(s.family, measure=own), s.group) in gone
    return hides or fates.base_of(s.family.protected_attribute, s.group, s.family.decision_maker, s.n) > 1


def table(
    read: Mapping[str, pa.Table],
    tallied: Tallied,
    gone: set[Cell],
    fates: Fates,
    bootstrap: Bootstrap,
    seed: int,
) -> pa.Table:
    """The published table."""
    rows = read[MEASURES.name].to_pylist()
    every: list[Statistic | Given] = [*tallied.statistics, *tallied.given]
    cells = {(s.family, s.group): s for s in every}
    publisher = Publisher(
        fates.policy, covering(), gone, cells, fates.printed, fates.base_of, fates.decided,
        _spread(read, tallied, fates, rows, bootstrap, seed), _quantiles(read[FINDINGS.name], fates),
        fates.plainly,
    )  # fmt: skip
    out = [_asked(row, fates) for row in publisher.published(rows)]
    return PUBLISHED_MEASURES.build(**{c.name: [row[c.name] for row in out] for c in PUBLISHED_MEASURES.columns})


def _asked(row: Mapping[str, Any], fates: Fates) -> Mapping[str, Any]:
    """The row with how many were asked, of how many, as numbers of people are printed."""
    said = json.loads(row["parameters"])
    if SAMPLED not in said or not fates.policy.protects:
        return row
    whose = row["protected_attribute"], row["group"], row["decision_maker"]
    asked, of = (fates.printed(*whose, number) for number in asked_and_of(said[SAMPLED]))
    said[SAMPLED] = "withheld" if asked is None or of is None else as_sampled(asked, of)
    return {**row, "parameters": json.dumps(said, sort_keys=True)}


def _spread(
    read: Mapping[str, pa.Table],
    tallied: Tallied,
    fates: Fates,
    rows: list[dict[str, str]],
    bootstrap: Bootstrap,
    seed: int,
) -> dict[Cell, Spread]:
    """Intervals and p of shares that cover, of their differences and ratios, over all counts that are printed alike.

    By printed counts alone an interval would cover too seldom: rounding moves a rate as sampling does.
    """
    references = {row["protected_attribute"]: row["reference_group"] for row in rows if row["reference_group"]}
    covered = [s for s in tallied.statistics if s.family.measure in covering()]
    known = [
        s for s in covered if s.family.protected_attribute in references and fates.base(s.family.decision_maker) > 1
    ]
    plan = Plan(references, bootstrap.draws, bootstrap.level, seed)
    return spreads([_extremes(s, fates) for s in known], plan, of_families(refitted(read[MODEL_REFITS.name])))


def _extremes(s: Statistic, fates: Fates) -> Pair:
    """A share at its lowest and its highest, of all counts that are printed as its own are."""
    whose = s.family.protected_attribute, s.group, s.family.decision_maker
    if s.family.method == DECISIONS:
        return of_decisions(s, *fates.alike(*whose))
    return of_counts(s, fates.policy, fates.base_of(*whose, int(s.counts.sum())))


def _quantiles(findings: pa.Table, fates: Fates) -> dict[Cell, float]:
    """What stands for the cost of who is the hardest to reach: the 95 % quantile of the costs of recourse."""
    if not fates.policy.protects or findings.num_rows == 0:
        return {}
    frame = findings.to_pandas()
    out = {}
    of = ["method", "decision_maker", "protected_attribute", "group"]
    for key, rows in frame[(frame["method"] == "fgce") & (frame["subgroup"] == 0)].groupby(of):
        method, maker, attribute, group = (str(part) for part in key)
        costs = rows["statistic"].dropna().to_numpy(dtype=np.float64)
        value = digits.extreme(fates.policy, costs, digits.End.LARGEST)
        if not math.isnan(value):
            out[Family(method, maker, attribute, "d0", "{}"), group] = value
    return out
