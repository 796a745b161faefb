"""Applications of the Boston study for the ladder, read as the source ``boston1990`` reads them."""

import numpy as np

from schemas.audit.source import Source
from tasks.ingest.sources import boston
from tasks.methods.adjusted.algorithm.design import Applications, Block, Control

GROUPS = ("white", "black", "hispanic")
BLOCKS = {
    "terms": ("loanamt", "loanprc", "term", "multi", "cosign"),
    "finances": ("appinc", "hrat", "obrat", "unem", "dep", "self", "sch"),
    "history": ("chist", "pubrec", "mortno", "mortlat1", "mortlat2"),
}


def boston_applications() -> Applications:
    """All 1,989 rows; every control is a number."""
    columns = [name for block in BLOCKS.values() for name in block]
    table = boston.read(Source(kind="boston1990"), ["approve", "race", *columns]).table

    def numbers(name: str) -> np.ndarray:
        return np.array([float(each) if each not in (None, "") else np.nan for each in table[name].to_pylist()])

    return Applications(
        denied=numbers("approve") == 0,
        group=np.array([GROUPS.index(each) for each in table["race"].to_pylist()], np.int32),
        groups=GROUPS,
        reference=0,
        blocks=tuple(
            Block(name, tuple(Control(each, "number", numbers(each)) for each in names))
            for name, names in BLOCKS.items()
        ),
    )
