"""GCFN's section: whose decision would change, had mediators been those of another group, and who is identified."""

from tasks.sections._material import Material, Shown, View
from tasks.sections._numbers import n_cell, value_cell
from tasks.sections._section import Cell, Row, Section, TableView

QUESTION = (
    "Would the model have decided otherwise, had what it sees of an applicant been what it would have been in "
    "another group?"
)
MEASURES = {
    "decision_flip_share": Shown("decisions that would change, under the worst network", "rate"),
    "flip_direction_share": Shown("decisions that would change, by direction", "rate"),
    "score_change": Shown("mean change of the score", "number"),
    "score_change_absolute": Shown("mean size of the change of the score", "number"),
    "score_change_squared": Shown("mean square of the change of the score", "number"),
    "score_change_quantile": Shown("large change of the score", "number"),
    "not_identified_share": Shown("applicants who are not identified", "rate"),
    "mediator_spread": Shown("mean spread of the networks", "number"),
    "mediator_spread_share": Shown("applicants by spread of the networks", "rate"),
    "unmediated_share": Shown("applicants who could not be imagined", "rate"),
    "fair_accuracy": Shown("accuracy", "rate"),
    "fair_ppv": Shown("positive predictive value", "rate"),
    "fair_fpr": Shown("false positive rate", "rate"),
    "fair_fnr": Shown("false negative rate", "rate"),
    "fair_unfairness": Shown("counterfactual unfairness (CF)", "number"),
    "fair_utility": Shown("utility", "number"),
    "fair_score_share": Shown("applicants by score", "rate"),
    "treated_differently_share": Shown("decided on otherwise than by the audited model", "rate"),
}
GLOSSARY = {
    "mediator": "a feature that a protected attribute may influence, and through it decisions",
    "not identified": "an applicant about whom the networks disagree: whether the decision changes, or by how much "
    "more than the limit on the spread its mediators would move",
}
_HEAD = ("decision_flip_share", "not_identified_share", "score_change", "score_change_absolute", "unmediated_share")


def limits(material: Material) -> tuple[str, ...]:
    """What imagined mediators cannot show."""
    if not any(m.method == "gcfn" and m.decision_maker == "model" for m in material.measures):
        return ("No model was asked about imagined applicants. Nothing can be said of them, and that is no pass.",)
    return (
        "Mediators in another group are never observed. Data alone leave at least two answers open for every "
        "applicant, ranks kept and ranks turned round; networks that agree with each other may agree on the wrong one.",
        "What is a mediator, and that covariates are not influenced by the protected attribute, is assumed.",
        "A lender cannot be asked about imagined applicants, so that nothing is said of its own decisions.",
    )


def chapter(material: Material) -> Section:
    """The question, then a table for each protected attribute."""
    views = material.views("gcfn", "model")
    parts = tuple(Section(f"By {v.attribute}", f"gcfn-{n}", tables=(_table(v),)) for n, v in enumerate(views, 1))
    return Section("Mediators: generative counterfactual fairness (GCFN)", "gcfn", (QUESTION,), parts=parts)


def _table(view: View) -> TableView:
    header = ("Group", "Applicants", *(MEASURES[name].words.capitalize() for name in _HEAD))
    return TableView(f"Decisions in another group, by {view.attribute}", header, tuple(_rows(view)))


def _rows(view: View) -> list[Row]:
    return [
        (
            Cell(group),
            n_cell(view.get(group, _HEAD[0])),
            *(value_cell(view.get(group, name), MEASURES[name].unit) for name in _HEAD),
        )
        for group in view.groups
    ]
