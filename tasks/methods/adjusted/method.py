"""Declaration of adjusted disparities, the only part of the method that the registry reads."""

from schemas.terms import DecisionMaker, Theory
from tasks.methods.adjusted.tables import ADJUSTED, ADJUSTED_EXCHANGED, ADJUSTED_ROWS, DISPARITIES, PRICING, SHOWN
from tasks.pipeline.method import Judged, Method

_LENDER, _MODEL = DecisionMaker.LENDER, DecisionMaker.MODEL
_WITH_INTERVALS = frozenset(("adjusted_effect", "overlap_effect", "exchanged_effect", "rate_spread_effect", "smd"))
METHOD = Method(
    name="adjusted",
    title="Adjusted disparities (denial ladder)",
    reads=(ADJUSTED, ADJUSTED_EXCHANGED, ADJUSTED_ROWS, PRICING, DISPARITIES),
    measures=(
        *("adjusted_effect", "overlap_effect", "exchanged_effect"),
        *("rate_spread_effect", "smd"),
    ),
    headline={"adjusted_effect": "adjusted difference of approval"},
    of_reference=False,
    shows=SHOWN,
    verdict_measures=(
        Judged(Theory.SIMILAR_APPLICANTS, "adjusted_effect", maker=_LENDER),
        Judged(Theory.SIMILAR_APPLICANTS, "exchanged_effect", maker=_MODEL, optional=True),
        Judged(Theory.SIMILAR_APPLICANTS, "overlap_effect", "beside", maker=_LENDER),
        Judged(
            *(Theory.SIMILAR_APPLICANTS, "rate_spread_effect", "adds"),
            maker=_LENDER,
            optional=True,
            limit="rate_spread",
        ),
    ),
    covering=_WITH_INTERVALS,
    comparable=_WITH_INTERVALS,
)
