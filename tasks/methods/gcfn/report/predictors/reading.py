"""Sentences on fair predictors: what lambda does, what the labels are, and what a small CF does not say.

None of them reads as advice to use a predictor, and none as if generated mediators were the true ones.
"""

from collections.abc import Iterator

from tasks.methods.gcfn.report.predictors.lookups import ACCURACY, MOVED, OTHERWISE, UNFAIRNESS, Fair, Predictor, fair
from tasks.reporting.material import Material, listed
from tasks.reporting.numbers import count, missing_words, value

WORDS = (
    "Could a predictor of the same labels hang less on what the protected attribute did to the mediators, and what "
    "would that cost? Predictors of one kind see covariates and mediators and were trained for prediction plus lambda "
    "times the mean squared difference between an applicant's score and the score on what generators imagine, for the "
    "generator under which that is largest. Lambda 0 leaves the term out (unconstrained); the larger lambda is, the "
    "less scores move with the group, and the less they tell applicants apart at all. Beside them: CFUA sees the "
    "covariates alone, and CFAN the covariates and the noise behind the mediators. Where the causal graph of the audit "
    "spec leads from the protected attribute to a mediator, that is what the causal model abducts; else what is left "
    "of a number after the mean of people alike is taken off. The notes say which it was. None of these predictors is "
    "in use.",
    "The labels are the lender's own decisions, unless the audit spec names another column as the outcome. Accuracy is "
    "agreement with them: a predictor that learns decisions which were unequal is accurate where it repeats them, and "
    "what lambda costs is in part what ought to be given up.",
    "CF, the unfairness, is about generated mediators and never about true ones: of all networks the one counts under "
    "which it is largest over everybody. The inequality that the method's authors print for it (Lemma 2) does not hold "
    "in general, so that the CF of a predictor bounds nothing by itself: how far scores would move between true "
    "counterfactuals may be more.",
    "Every number is of rows that the predictors did not learn from. The generators, and the causal model, had no such "
    "split: they may have learnt from these very rows.",
)
GLOSSARY = {
    "unfairness (CF)": "mean squared change of a score between an applicant and what generators imagine of it in "
    "another group, under the generator for which that is largest",
    "lambda (GCFN)": "the weight of the change of scores between groups in the training of a fair predictor",
    "gamma": "the weight of CF in the utility: accuracy less gamma times CF",
    "CFUA": "a predictor that sees the covariates alone: fair if the attribute moves none of them",
    "CFAN": "a predictor that sees the covariates and the noise behind the mediators: fair if the causal model that "
    "abducted it is right; of a residual about the mean of people alike, if noise adds to the mediator alike in every "
    "group",
    "PPV, FPR, FNR": "share of favourable predictions that are right; of unfavourable labels that are predicted "
    "favourable; of favourable labels that are predicted unfavourable",
}


def readings(f: Fair) -> tuple[str, ...]:
    """For every group what the largest lambda cost and gained, and who would be decided on otherwise."""
    return tuple(_reading(f, group) for group in f.groups)


def _reading(f: Fair, group: str) -> str:
    if group not in f.measured:
        said = next((m.note for m in f.view.all(UNFAIRNESS) if m.group == group and m.note), "the reason is not known")
        return f"{group}: no predictor was trained on it: {said}. Nothing can be said, and that is no pass."
    ends = f.ends()
    if ends is None:
        return f"{group}: trained for one lambda alone, so that there is no curve to read."
    found = {p: f.get(group, p, ACCURACY) for p in ends}
    gone = [m for m in found.values() if m is None or m.value is None]
    if gone:
        words = listed(dict.fromkeys(missing_words(m) for m in gone))
        return f"{group}: accuracy is {words}. Nothing can be said, and that is no pass."
    rows = min(m.n or 0 for m in found.values() if m)
    if rows < f.minimum:
        few = f"{group}: {count(rows)} held-out rows, fewer than the {f.minimum} that a reading needs."
        return f"{few} Too few to say, and that is no pass."
    return f"{group}, on {count(rows)} held-out rows: {_cost(f, group, *ends)}"


def _cost(f: Fair, group: str, bare: Predictor, most: Predictor) -> str:
    moved, before = (value(f.get(group, p, MOVED), "number") for p in (most, bare))
    right, were = (value(f.get(group, p, ACCURACY), "rate") for p in (most, bare))
    otherwise = f.get(group, most, OTHERWISE)
    said = (
        f"with lambda = {most.weight:g} scores move by {moved} instead of {before} (root of CF), and accuracy is "
        f"{right} instead of {were}."
    )
    if otherwise is None or otherwise.value is None:
        return said
    return f"{said} {value(otherwise, 'rate')} would be decided on otherwise than by the audited model."


def limits(material: Material) -> Iterator[str]:
    """What fair predictors cannot show; nothing where none were trained."""
    found = list(fair(material))
    if not found:
        return
    yield (
        "Fair predictors learn the lender's own decision, unless the audit spec names another column, as if it were "
        "right. Their unfairness (CF) is about generated mediators, under the worst of the generators: a small CF does "
        "not bound how far scores would move between true counterfactuals, and shows no predictor to be fair."
    )
    few = [f"{group} ({f.view.attribute})" for f in found for group in f.groups if _few(f, group)]
    if few:
        yield f"Too few held-out rows to read fair predictors by, which is no pass: {listed(few)}."


def _few(f: Fair, group: str) -> bool:
    counts = [m.n for p in f.trained if (m := f.get(group, p, ACCURACY)) and m.n is not None]
    return bool(counts) and min(counts) < f.minimum
