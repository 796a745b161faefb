"""What adjusted disparities declare of themselves: the registry reads nothing else of them."""

from schemas.terms import Theory
from tasks.methods.adjusted.tables import ADJUSTED, TABLES
from tasks.pipeline.method import Judged, Method

METHOD = Method(
    "adjusted",
    "Adjusted disparities (denial ladder)",
    (ADJUSTED,),
    ("adjusted_effect", "overlap_effect"),
    {"adjusted_effect": "adjusted difference of denial"},
    of_reference=False,
    shows=TABLES,
    judged=(Judged(Theory.DIRECT, "adjusted_effect"), Judged(Theory.DIRECT, "overlap_effect", "beside")),
    covering=frozenset(("adjusted_effect", "overlap_effect")),
)
