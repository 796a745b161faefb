"""Declaration of adjusted disparities, the only part of the method that the registry reads."""

from schemas.terms import DecisionMaker, Theory
from tasks.methods.adjusted.tables import ADJUSTED, ADJUSTED_EXCHANGED, ADJUSTED_ROWS, TABLES
from tasks.pipeline.method import Judged, Method

_LENDER, _MODEL = DecisionMaker.LENDER, DecisionMaker.MODEL
METHOD = Method(
    name="adjusted",
    title="Adjusted disparities (denial ladder)",
    reads=(ADJUSTED, ADJUSTED_EXCHANGED, ADJUSTED_ROWS),
    measures=("adjusted_effect", "overlap_effect", "exchanged_effect"),
    headline={"adjusted_effect": "adjusted difference of approval"},
    of_reference=False,
    shows=TABLES,
    verdict_measures=(
        Judged(Theory.SIMILAR_APPLICANTS, "adjusted_effect", maker=_LENDER),
        Judged(Theory.SIMILAR_APPLICANTS, "exchanged_effect", maker=_MODEL),
        Judged(Theory.SIMILAR_APPLICANTS, "overlap_effect", "beside", maker=_LENDER),
    ),
    covering=frozenset(("adjusted_effect", "overlap_effect", "exchanged_effect")),
    comparable=frozenset(("adjusted_effect", "overlap_effect", "exchanged_effect")),
)
