"""What adjusted disparities declare of themselves: the registry reads nothing else of them."""

from schemas.terms import DecisionMaker, Theory
from tasks.methods.adjusted.tables import ADJUSTED, ADJUSTED_EXCHANGED, ADJUSTED_ROWS, TABLES
from tasks.pipeline.method import Judged, Method

_LENDER, _MODEL = DecisionMaker.LENDER, DecisionMaker.MODEL
METHOD = Method(
    "adjusted",
    "Adjusted disparities (denial ladder)",
    (ADJUSTED, ADJUSTED_EXCHANGED, ADJUSTED_ROWS),
    ("adjusted_effect", "overlap_effect", "exchanged_effect"),
    {"adjusted_effect": "adjusted difference of denial"},
    of_reference=False,
    shows=TABLES,
    judged=(
        Judged(Theory.DIRECT, "adjusted_effect", maker=_LENDER),
        Judged(Theory.DIRECT, "exchanged_effect", maker=_MODEL),
        Judged(Theory.DIRECT, "overlap_effect", "beside", maker=_LENDER),
    ),
    covering=frozenset(("adjusted_effect", "overlap_effect", "exchanged_effect")),
    comparable=frozenset(("adjusted_effect", "overlap_effect", "exchanged_effect")),
)
