"""Quality of the pairs: unmatched applicants, distances and reuse of matches, and errors of the attributions.

Reasons are compared only as well as applicants are. Scope: matches and attributions. Results: the other parts.
"""

from tasks.methods.cec.algorithm.score import INCOMPLETE
from tasks.methods.cec.report.lookups import PAIR, Reasons
from tasks.methods.cec.settings import CecSettings
from tasks.reporting.comparison import capital
from tasks.reporting.material import Material, Shown
from tasks.reporting.section import TableView

MEASURES = {
    "match_distance": Shown("mean distance of matches, in standard deviations", "number"),
    "match_distance_quantile": Shown("quantile of the distances of matches, in standard deviations", "number"),
    "match_reuse": Shown("pairs that a match serves, on average", "number"),
    "match_reuse_largest": Shown("pairs that the match used most serves", "count"),
    "unmatched_share": Shown("share of applicants without a match", "rate"),
    "no_direction_share": Shown("share of matched pairs without a direction", "rate"),
    "incomplete_share": Shown("share of pairs with incomplete attributions", "rate"),
    "completeness_error": Shown("completeness error", "number"),
}
GLOSSARY = {
    "match": "of those of the other group with the same outcome whom the model learnt from, the one whose financial "
    "features are nearest",
    "attribution": "what each input adds to the model's logit on the straight way from the baseline to the applicant",
    "baseline": "the mean input of those with the applicant's own outcome and group; the match is explained from the "
    "same one",
    "without a direction": "an applicant who is the baseline itself has no attributions, and so no reasons to compare",
    "completeness error": "how far attributions are from adding up to the change of the logit from the baseline: in "
    "logits where that change is below 1, else as a share of it",
}
QUANTILES = (0.5, 0.9, 0.99)

EXACT = ("rule", "logistic_regression")
SUBSTITUTED = {"random_forest": "random forest", "gradient_boosting": "model of boosted trees"}
"""Kinds of models by how their attributions are made; those without a gradient in words."""
PIECEWISE, GIVEN = "net", "file"
"""The kind whose attributions are exact piece by piece, and the one that does not tell how they were made."""

_DIFFERENCES = (
    "Of a model without a gradient they are differences of its log odds along the straight way, the substitute that "
    "was chosen for this audit: these always add up, and that says nothing of their quality."
)
_MATCHING = {
    True: "One applicant may be the match of several.",
    False: "No applicant is the match of more than one: later ones are matched with whoever is left.",
}


def attributions(material: Material) -> str:
    """How the attributions of the audited model were made, as far as its kind tells."""
    kind = material.settings.model.kind
    if kind in EXACT:
        return (
            f"The attributions are exact: integrated gradients in closed form, which a {material.model} that is linear "
            "in its inputs allows."
        )
    if kind in SUBSTITUTED:
        return (
            f"The attributions are a substitute: a {SUBSTITUTED[kind]} has no gradient to integrate. Differences "
            "of its log odds along the straight way from the baseline stand in. They always add up, and that says "
            "nothing of their quality."
        )
    if kind == PIECEWISE:
        return (
            "The attributions are exact: integrated gradients of a network of ReLUs, in closed form piece by piece of "
            "the straight way. Such a network is not linear in its inputs, so that what an input adds hangs on the "
            "baseline and on the other inputs."
        )
    chosen = material.asked(CecSettings).substitute
    return (
        "How the attributions were made depends on what the file holds. Those of linear models and of chains of ReLU "
        "layers are integrated gradients in closed form, and so exact; those of other networks are by quadrature, "
        "whose error stands with the attributions below."
    ) + (f" {_DIFFERENCES}" if chosen else "")


def words(s: Reasons) -> tuple[str, ...]:
    """How applicants were matched."""
    settings = s.settings
    limit = "" if settings.maximum_distance is None else f" Nobody further away than {settings.maximum_distance:g} is."
    clipped = "" if settings.winsorise is None else ", clipped at quantiles {:g} and {:g}".format(*settings.winsorise)
    return (
        "Distances are Euclidean, in standard deviations of the financial features among those whom the model learnt "
        f"from{clipped}. {_MATCHING[settings.replacement]}{limit}",
    )


def tables(s: Reasons) -> tuple[TableView, ...]:
    """Matches and attributions of every pair of groups."""
    return _matches(s), _reuse(s), _attributions(s)


def _matches(s: Reasons) -> TableView:
    columns = {
        **PAIR,
        "Applicants": s.n("unmatched_share"),
        "Unmatched": s.events("unmatched_share"),
        "Share unmatched": s.values("unmatched_share", "rate"),
        "Without a direction": s.events("no_direction_share"),
        "Mean distance": s.values("match_distance", "number"),
    }
    note = (
        "Applicants whom no model explains, having learnt from them, are not counted here. Without a direction: "
        "matched, but in no score and no regime. Distances in standard deviations; in brackets: intervals."
    )
    return TableView.of(f"Matches, by {s.view.attribute}", s.pairs, columns, note)


def _reuse(s: Reasons) -> TableView:
    """How far the furthest matches are, and how often one is used: of the headline's pairs only."""
    far = {q: "median" if q == QUANTILES[0] else f"{100 * q:g} % quantile" for q in QUANTILES}
    columns = {
        **PAIR,
        "Matched": s.n("match_reuse"),
        **{f"Distance, {w}": s.values("match_distance_quantile", "number", quantile=q) for q, w in far.items()},
        "Pairs per match": s.values("match_reuse", "number"),
        "Most used match": s.values("match_reuse_largest", "count"),
    }
    note = (
        "Pairs per match: how many applicants one match serves, on average over the matches; at the end the largest "
        "number. Pairs that share a match are not independent. Of pairs in the other direction this is not measured; "
        "there a large group shares the few members of a small one."
    )
    pairs = [pair for pair in s.headline if s.get(pair, "match_reuse")]
    return TableView.of(f"Distances and reuse of matches, by {s.view.attribute}", pairs, columns, note)


def _attributions(s: Reasons) -> TableView:
    columns = {
        **PAIR,
        "Pairs": s.n("completeness_error"),
        "Mean completeness error": s.values("completeness_error", "number"),
        f"Error above {INCOMPLETE:g}": s.values("incomplete_share", "rate"),
    }
    note = f"{capital(GLOSSARY['completeness error'])}. Of the two members of a pair the larger error counts."
    return TableView.of(f"Attributions, by {s.view.attribute}", s.pairs, columns, note)
