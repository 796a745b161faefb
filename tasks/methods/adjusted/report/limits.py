"""What adjusted differences cannot show, in sentences."""

from collections.abc import Iterator

from tasks.methods.adjusted.report.lookups import Ladder
from tasks.reporting.material import Material


def limits(material: Material) -> Iterator[str]:
    """What a reader of the ladder has to know first."""
    yield (
        "An adjusted difference compares applicants who are alike in the columns of its rung, and in nothing else. "
        "What the lender saw and these data lack may explain it, or hide a larger one; the sensitivity analysis says "
        "how strong such a column has to be, not whether there is one."
    )
    yield (
        "A control may itself be the result of unequal treatment (a price, a ratio, a history of credit denied before)."
        " Adjusting for it takes that part out of the difference. A difference of zero is no proof of equal treatment."
    )
    ladders = Ladder.every(material)
    if {rung for found in ladders for rung in found.rungs} == {0}:
        yield "No column of this audit is a control: the ladder has no rung, and its difference is the raw one."
    if any(row["method"] == "firth" for found in ladders for row in found.effects):
        yield (
            "In some fits a coefficient has no finite estimate, or the fit did not converge. These are penalised fits "
            "(Firth 1993), which are pulled towards no difference."
        )
    if "model" in {found.view.maker for found in ladders}:
        yield (
            "A model that decides by the controls themselves leaves nothing to adjust: a difference near zero then "
            "says that the model does not look at the group beside them, and not that its decisions are fair."
        )
