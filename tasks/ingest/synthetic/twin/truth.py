"""Table of the true counterfactuals of a twin: each person's amounts and decision in another group."""

import numpy as np
import pyarrow as pa

from tasks.ingest.synthetic.twin.algorithm.drawing import Twin
from tasks.ingest.synthetic.twin.algorithm.publishing import DEBT_BANDS
from tasks.ingest.synthetic.twin.algorithm.truth import Otherwise, otherwise

SCHEMA = pa.schema([
    ("source_row", pa.int64()), ("protected_attribute", pa.string()), ("group", pa.string()),
    ("to_group", pa.string()), ("decided", pa.bool_()), ("approved", pa.bool_()),
    ("counterfactual_approved", pa.bool_()), ("flips", pa.bool_()), ("logit", pa.float64()),
    ("counterfactual_logit", pa.float64()), ("counterfactual_income_usd", pa.int64()),
    ("counterfactual_property_value_usd", pa.int64()), ("counterfactual_loan_amount_usd", pa.int64()),
    ("counterfactual_debt_to_income_ratio", pa.string()), ("counterfactual_ltv_ratio", pa.float64()),
])  # fmt: skip
"""One row for each row of the file and attribute. ``group`` is the person's own, which the file need not tell; of rows
that are not ``decided`` the approvals are what would have been. Amounts are rounded as they would be published."""


def table(twin: Twin, first: int) -> pa.Table:
    """The truth about a block whose first row has the number ``first`` in the file, from 1."""
    return pa.concat_tables([_of(twin, found, first) for found in otherwise(twin)])


def _of(twin: Twin, found: Otherwise, first: int) -> pa.Table:
    n, then, names = len(twin.action), found.published, pa.array(found.names)
    columns = {
        "source_row": np.arange(first, first + n),
        "protected_attribute": pa.repeat(found.attribute, n),
        "group": names.take(pa.array(found.group)),
        "to_group": names.take(pa.array(found.to)),
        "decided": twin.decided,
        "approved": twin.world.approved,
        "counterfactual_approved": found.world.approved,
        "flips": found.flips,
        "logit": twin.world.logit,
        "counterfactual_logit": found.world.logit,
        "counterfactual_income_usd": then.income * 1000,
        "counterfactual_property_value_usd": then.property_value,
        "counterfactual_loan_amount_usd": then.loan_amount,
        "counterfactual_debt_to_income_ratio": pa.array(DEBT_BANDS).take(pa.array(then.debt_to_income)),
        "counterfactual_ltv_ratio": then.loan_to_value,
    }
    return pa.table(columns, schema=SCHEMA)
