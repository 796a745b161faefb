"""Measures of a run as rows, with the points of its curves among them."""

from collections.abc import Mapping

import pandas as pd
import pyarrow as pa

from schemas.tables.findings import CURVES
from tasks.metrics.curves import rows_of


def every_measure(tables: Mapping[str, pa.Table], reference: str = "white") -> pd.DataFrame:
    """The table of measures and all points of curves; every attribute has the same reference group."""
    attributes = set(tables["measures"]["protected_attribute"].to_pylist())
    curves = [row for declared in CURVES for row in tables[declared.name].to_pylist()]
    points = pd.DataFrame(list(rows_of(curves, dict.fromkeys(attributes, reference))))
    return pd.concat([tables["measures"].to_pandas(), points], ignore_index=True)
