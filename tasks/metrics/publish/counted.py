"""Findings as they are published: counted by group and by what was found."""

import pyarrow as pa

from schemas.tables.publication import PUBLISHED_FINDINGS
from tasks.lake.threads import connected
from tasks.metrics.publish.algorithm import digits
from tasks.metrics.publish.algorithm.profiles import rounded, small
from tasks.metrics.publish.fates import Fates

_COUNTED = """
WITH cells AS (
    SELECT method, decision_maker, protected_attribute, "group", verdict, coalesce(refusal, '') AS refusal,
           count(*) AS findings, avg(statistic) AS mean_statistic
    FROM findings GROUP BY ALL
)
SELECT *, min(findings) OVER whole AS fewest, sum(findings) OVER whole AS units FROM cells
WINDOW whole AS (PARTITION BY method, decision_maker, protected_attribute, "group")
ORDER BY method, decision_maker, protected_attribute, "group", verdict, refusal
"""


def findings(found: pa.Table, fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_FINDINGS``. Counts are rounded like their sum, which they would tell."""
    with connected() as connection:
        connection.register("findings", found)
        rows = connection.sql(_COUNTED).to_arrow_table().to_pylist()
    told: dict[tuple[str, ...], dict[str, object]] = {}
    for row in rows:
        whose = row["protected_attribute"], row["group"], row["decision_maker"]
        gone = fates.is_gone(*whose) or fates.is_ranged(*whose)
        if gone or small(fates.policy, row["fewest"]):
            # which verdicts occur is told of nobody: a group of three that all have one would be told
            row |= {"verdict": "withheld", "refusal": "", "findings": None, "mean_statistic": None}
            told[row["method"], *whose, ""] = row
            continue
        told[row["method"], *whose, row["verdict"], row["refusal"]] = row
        row["findings"] = rounded(fates.policy, row["findings"], fates.base_of(*whose, int(row["units"])))
        if row["mean_statistic"] is not None:
            row["mean_statistic"] = digits.significant(fates.policy, row["mean_statistic"])
    return PUBLISHED_FINDINGS.build(
        **{c.name: [row[c.name] for row in told.values()] for c in PUBLISHED_FINDINGS.columns}
    )
