"""Sentences on trained models: what consistency cost, what has no reasons to compare, and how lambda is to be chosen.

A lower CEC is no success by itself: a model that decides alike for nearly everybody has it too, and so has one that is
no more than its floor. None of the sentences reads as advice to use a model.
"""

from collections.abc import Iterator

from tasks.methods.cec.report.trained.lookups import FULL, UNCONSTRAINED, Comparison, Trained, comparisons
from tasks.methods.cec.report.trained.tables import RULE, front
from tasks.reporting.chapters.missingness import TOO_GOOD
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import count, missing_words, percent, written

WORDS = (
    "Could a model of the same outcomes have the same reasons for comparable applicants, and what would that cost? On "
    "the rows of each group and the reference group nets of one kind were trained anew: for prediction alone "
    "(unconstrained), with a term for equal odds, with one for consistent explanations (CEC), and with both (full). "
    "Beside them stand mitigations by others. None of these models is in use. What they learn is the outcome: the "
    "lender's own decision, unless the audit spec names another column for it.",
    "Every number is of rows that the model did not learn from, as a mean over folds. Read accuracy first: a model "
    "that decides alike for nearly everybody is perfectly consistent and of no use. Such models are called "
    f"collapsed ({RULE}).",
)
CHOOSING = (
    "How to choose lambda: say first how much balanced accuracy may be given up. Start at unconstrained and follow the "
    "dashed frontier to the left, to the last net that keeps to that. Look it up in the tables: its positive rate, its "
    "EO gap and its CEC above floor have to hold as well, and neighbours on the frontier that differ by less than "
    "their standard deviations cannot be told apart.",
    "A net near the left edge of the frontier is close to collapse: there CEC falls because the net stops telling "
    "applicants apart, and a hollow mark beside it is a warning. A lambda of 1 is no default to be trusted.",
    "The figures that a net is chosen by are flattering to it: measure the chosen one on rows that had no part in the "
    "choice.",
)
GLOSSARY = {
    "collapsed model": f"one that decides alike for nearly everybody: {RULE}",
    "EO gap": "the larger of the gaps between two groups in true positive and in false positive rates",
    "SP gap": "the gap between two groups in favourable decisions",
    "lambda": "the weight of a term of the loss that a net is trained with: equal odds (EO) or consistency (CEC)",
    "frontier": "the nets than which no other is both more accurate and more consistent",
    "PFR": "prediction-flip rate: the share of pairs whose two members a model decides on differently",
}
_CITED = {
    "threshold_optimizer": "thresholds by group: Hardt et al. (2016), told the group of whom they decide on",
    "exponentiated_gradient": "exponentiated gradient: reductions of Agarwal et al. (2018)",
    "grid_search": "grid search: over the Lagrange multipliers of the same reductions",
    "adversarial": "adversarial: Zhang et al. (2018)",
    "disparate_impact_remover": "impact remover: Feldman et al. (2015)",
}


def readings(c: Comparison) -> tuple[str, ...]:
    """What the terms did, which models collapsed, and which have no reasons to compare."""
    rows = c.rows
    if rows is None:
        return (f"{c.pair}: withheld. Nothing can be said, and that is no pass.",)
    if rows < c.minimum:
        few = f"{c.pair}: {count(rows)} held-out rows, fewer than the {c.minimum} that a reading needs."
        return (f"{few} Too few to say, and that is no pass.",)
    return tuple(said for said in (*_terms(c), _best(c), _fallen(c), *_without(c), _leaking(c), _cited(c)) if said)


def _terms(c: Comparison) -> Iterator[str]:
    """The full loss against none, in accuracy and in CEC."""
    bare, full = c.get(UNCONSTRAINED), c.get(FULL)
    if bare is None or full is None:
        return
    if None in (m.known(name) for m in (bare, full) for name in ("cec", "balanced_accuracy")):
        yield f"What the terms of the loss did is not known: CEC of {FULL} or {UNCONSTRAINED} is {_gone(bare, full)}."
        return
    said = (
        f"With both terms CEC is {_with_spread(full, 'cec')} instead of {_with_spread(bare, 'cec')}, and balanced "
        f"accuracy {_with_spread(full, 'balanced_accuracy')} instead of {_with_spread(bare, 'balanced_accuracy')}, on "
        f"{count(c.rows or 0)} held-out rows."
    )
    pairs = min((m.n or 0) for m in (bare.mean("cec"), full.mean("cec")) if m)
    if pairs < c.minimum:
        yield f"{said} But fewer than {c.minimum} pairs stand behind CEC: too few to say, and that is no pass."
        return
    if full.collapsed:
        yield f"{said} But full collapsed: its CEC is that of a model that hardly tells applicants apart."
        return
    yield f"{said}{_from_the_floor(full)} What else that cost and gained, the tables say."


def _from_the_floor(model: Trained) -> str:
    """On which side of its floor a score lies: below it, consistency tells no more than comparable pairs do."""
    m = model.mean("cec_above_floor")
    if m is None or m.value is None:
        return " Its matching floor is not known."
    side = "above" if m.value >= 0 else "below"
    return f" Its CEC lies {written(abs(m.value), 'number')} {side} the matching floor."


def _gone(*models: Trained) -> str:
    return listed(dict.fromkeys(missing_words(m.mean("cec")) for m in models if m.known("cec") is None))


def _with_spread(model: Trained, measure: str) -> str:
    cell = model.cell(measure, "number")
    return f"{cell.text} {cell.detail}".strip()


def _fallen(c: Comparison) -> str:
    fallen = [model for model in c.models if model.collapsed]
    if not fallen:
        return ""
    named = [f"{m.words} in {percent(m.known('collapsed') or 0.0)} of the folds" for m in fallen if m.number]
    grid = sum(not model.number for model in fallen)
    of_grid = [f"{grid} of {sum(not model.number for model in c.models)} nets of the grid in at least one fold"] * bool(
        grid
    )
    return f"Collapsed: {listed([*named, *of_grid])}. Their CEC, gaps and flips are small for that alone."


def _without(c: Comparison) -> Iterator[str]:
    """Models without a score, each reason said once."""
    why: dict[str, list[str]] = {}
    for model in c.models:
        m = model.mean("cec")
        if m is not None and m.value is None and not m.withheld:
            why.setdefault(m.note or "no fold gave a value", []).append(model.words)
    for reason, names in why.items():
        yield f"Without CEC: {listed(names)}. The reason: {reason}."


def _leaking(c: Comparison) -> str:
    """Models that know more than an application tells."""
    names = [model.words for model in c.models if (model.known("auc") or 0.0) >= TOO_GOOD]
    told = f"An AUC of {TOO_GOOD:g} or more is a sign that a feature gives the outcome away: {listed(names)}."
    return f"{told} Look for one that is known only after the decision." if names else ""


def _cited(c: Comparison) -> str:
    said = [_CITED[model.name] for model in c.compared if model.name in _CITED]
    return f"Mitigations by others: {'; '.join(said)}." if said else ""


def _best(c: Comparison) -> str:
    """Which nets are on the frontier, from the most accurate to the most consistent."""
    drawn = [model for model in c.nets if None not in (model.known("cec"), model.known("balanced_accuracy"))]
    names = front(drawn)
    kept = sorted((m for m in drawn if m.name in names), key=lambda m: -(m.known("cec") or 0.0))
    said = listed(f"{m.words} ({m.said('balanced_accuracy', 'number')}; {m.said('cec', 'number')})" for m in kept)
    return f"On the frontier, with balanced accuracy and CEC: {said}." if kept and len(drawn) > 1 else ""


def limits(material: Material) -> Iterator[str]:
    """What trained models cannot show; nothing where none were trained."""
    found = list(comparisons(material))
    if not found:
        return
    yield (
        "Models trained for consistency learn the outcome, the lender's own decision unless the audit spec names "
        "another column, as if it were right, and accuracy is agreement with it. They show what nets of this kind "
        "can do, and nothing of how the lender decides."
    )
    yield (
        "Their numbers are of held-out rows, in few folds: the standard deviation over folds is no interval, folds "
        "share the rows that the models learnt from, and a small group has few pairs in each of them. They too are to "
        "be read above the matching floor."
    )
    few = [c.pair for c in found if c.rows is not None and c.rows < c.minimum]
    if few:
        yield f"Trained on too few rows to say anything, which is no pass: {listed(few)}."
