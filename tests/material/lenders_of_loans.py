"""Synthetic loans of one year with a column of lenders, and the audit spec by lender."""

from pathlib import Path

import numpy as np
import pandas as pd
from conftest import loans
from loans_by_year import SPEC

YEAR = 2012
LARGE, MIDDLE, SMALL = "Bank A", "Bank B", "Bank C"
"""With rows enough, with rows enough, and with too few."""


def write_lenders(place: Path) -> Path:
    """The file of the year and the spec, whose path is given back."""
    frame = loans(900, seed=YEAR)
    frame = frame[frame["race"] != ""].reset_index(drop=True)
    at = np.arange(len(frame))
    lender = np.select([at < 440, at < 800], [LARGE, MIDDLE], SMALL)
    pd.DataFrame(frame.assign(lender=lender)).to_csv(place / f"loans_{YEAR}.csv", index=False)
    spec = place / "lenders.yaml"
    text = SPEC.replace("PLACE", str(place)).replace("name: yearly", "name: lenders")
    spec.write_text(text + "by: {column: lender, minimum: 200}\n")
    return spec
