"""What the audit cannot tell: the first thing that a reader meets, with the limits of these very data.

The general limits are sentences; those of the data are computed from refusals and measures as published; those of a
method stand in its section module.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tasks.metrics.algorithm.disclosure import rounded, small
from tasks.pipeline.registry import METHODS
from tasks.reporting.chapters import missingness
from tasks.reporting.chapters.waterfall import Waterfall
from tasks.reporting.material import Material, Measure, View, listed
from tasks.reporting.methods import MethodSection
from tasks.reporting.numbers import count, percent

_MISSING = {"missing_covariate": "a missing value", "exempt_covariate": "a value exempt from reporting"}
_SCORES = ("credit_score", "creditscore", "fico", "bureau_score")
_APART = 0.02
"""Approval rates further apart than this are called related to missingness."""
_RELATED = (
    "Missingness is related to the decision: leaving these rows out selects on it, and filling them in would leak it."
)
_UNRELATED = "That gives no sign that missingness is related to the decision, and does not rule it out."


@dataclass(frozen=True)
class Limits:
    """What one source of limits cannot show."""

    title: str
    points: tuple[str, ...]


def limits(
    material: Material, falls: tuple[Waterfall, ...], modules: Mapping[str, MethodSection]
) -> tuple[Limits, ...]:
    """Those of these data first, then what each method that ran brings, then what no audit shows."""
    of_the_rows = (*_of_the_year(material), *_of_the_rows(material, falls))
    of_the_groups = (*_of_the_groups(material), *_of_the_reference(material))
    of_the_data = (*of_the_rows, *of_the_groups, *_of_the_run(material))
    of_methods = ((METHODS[n].title, tuple(module.limits(material))) for n, module in modules.items() if n in METHODS)
    found = (("These data", of_the_data), *of_methods, ("Any audit of this kind", tuple(_always(material))))
    return tuple(Limits(title, points) for title, points in found if points)


def _of_the_reference(material: Material) -> Iterator[str]:
    """A reference group that fares worst of all with the lender: a plain fact that readers may not expect."""
    for view in material.views("outcomes", "lender"):
        rates = _rates(view)
        own = rates.pop(view.reference, None)
        if own is not None and rates and all(own < other for other in rates.values()):
            yield (
                f"The reference group {view.reference} ({view.attribute}) has the lowest approval rate of all groups: "
                f"{percent(own)}."
            )


def _rates(view: View) -> dict[str, float]:
    found = {group: view.get(group, "approval_rate") for group in view.groups}
    return {group: m.value for group, m in found.items() if m and m.value is not None}


def _of_the_year(material: Material) -> Iterator[str]:
    """What the audit was asked for and this year does not have: columns, and groups of an attribute."""
    year, lacking = material.settings.year, material.settings.source.lacking
    columns = [name for name in lacking if ": " not in name]
    if columns:
        yield (
            f"The data of {year} do not have {listed(columns)}, which the audit asks for. They are left out of model, "
            "distances, causal graph and methods: a result of this year says less than one of a year that has them, "
            "and the two are not alike."
        )
    groups = [name for name in lacking if ": " in name]
    if groups:
        yield f"In the data of {year} nobody belongs to {listed(groups)}: nothing is said of them."


def _of_the_rows(material: Material, falls: tuple[Waterfall, ...]) -> Iterator[str]:
    if not falls:
        return
    fall, policy = falls[0], material.policy
    source, refused = int(fall.source.sum()), int(fall.refused.sum())
    said = f"of {count(rounded(policy, source))} rows of the source"
    if 0 < refused < policy.smallest:
        yield f"Fewer than {policy.smallest} {said} could not be used; the reasons are listed under Exclusions."
    elif refused:
        share = percent(rounded(policy, refused) / max(1, rounded(policy, source)))
        yield (
            f"{count(rounded(policy, refused))} {said} ({share}) could not be used. All results but the lender's "
            "approval rates speak of the others only; the reasons are listed under Exclusions."
        )
    yield from _of_missingness(material, fall)
    yield from missingness.limits(material, falls)


def _of_missingness(material: Material, fall: Waterfall) -> Iterator[str]:
    complete = _complete(material, fall)
    said, gaps = [], []
    for reason, words in _MISSING.items():
        mine = [i for i, line in enumerate(fall.lines) if line[1] == reason]
        n, events = int(fall.readable[mine].sum()), int(fall.favourable[mine].sum())
        if n and complete is not None and not small(material.policy, n, events):
            rate = rounded(material.policy, events) / rounded(material.policy, n)
            said.append(f"{percent(rate)} of the rows refused for {words}")
            gaps.append(abs(rate - complete))
    if said and complete is not None:
        verdict = _RELATED if max(gaps) >= _APART else _UNRELATED
        yield f"The lender approved {listed([*said, f'{percent(complete)} of the rows used'])}. {verdict}"


def _complete(material: Material, fall: Waterfall) -> float | None:
    """The lender's approval rate on the rows used: its rate on all applications, less those refused after ingest."""
    found = [m for view in material.views("outcomes", "lender")[:1] for m in view.all("approval_rate")]
    known = [(m.n, m.value) for m in found if m.n and m.value is not None]
    later = [i for i, (stage, _, _) in enumerate(fall.lines) if stage != "ingest"]
    n = sum(a for a, _ in known) - int(fall.readable[later].sum())
    events = sum(a * share for a, share in known) - int(fall.favourable[later].sum())
    return min(1.0, max(0.0, events / n)) if n > 0 else None


def _of_the_groups(material: Material) -> Iterator[str]:
    minimum = material.settings.bootstrap.minimum_n
    for p in material.settings.protected:
        counts = _counts(material, p.name)
        hidden = dict.fromkeys(m.group for m in counts if m.n is None)
        if hidden:
            yield (
                f"Withheld, in at least one measure ({p.name}): {listed(hidden)}. A cell there is small, or would "
                "give a small one away; there is no verdict, and that is not a pass."
            )
        named = [m.group for m in counts if m.n is not None and m.n < minimum]
        if named:
            yield (
                f"Too few to say, in at least one measure ({p.name}): {listed(dict.fromkeys(named))}. Fewer than "
                f"{minimum} units give no verdict; that is not a pass."
            )


def _counts(material: Material, attribute: str) -> list[Measure]:
    plain = [m for m in material.measures if m.reference_group is None and m.subgroup == 0 and m.parameters == "{}"]
    return [m for m in plain if m.protected_attribute == attribute]


def _of_the_run(material: Material) -> Iterator[str]:
    s = material.settings
    features = [name for name, column in s.columns.items() if column.used]
    shown = [s.columns[name].label or name for name in features]
    score = any(word in name.lower() for name in features for word in _SCORES)
    text = f"The audit sees {len(features)} features: {listed(shown)}. What else the lender looked at is unknown to it"
    yield text + ("." if score else "; no credit score is among them by its name.")
    if s.model.kind == "rule":
        yield (
            "The rule that is audited here was given; it was not made from the lender's decisions. Its results "
            "describe the rule, and the lender only where it follows it."
        )
    elif s.model.kind == "file":
        yield (
            "The model that is audited here was given as a file; it was not fitted here. It may have learnt from these "
            "very rows, so that its metrics may flatter it. What counts as favourable is its second class or high "
            "scores; the file cannot say so."
        )
    elif s.model.kind != "none":
        yield (
            "The model that is audited here was fitted to the lender's decisions. It is not the lender's own "
            "model, and its results describe the lender only as far as it follows the lender's decisions."
        )
    if s.missing == "impute":
        yield "Missing values were filled in: this is a sensitivity run, to be read beside one that leaves them out."
    if s.profile == "paper":
        yield (
            "This run uses the `paper` profile, which mimics published code, its errors included. It is no basis for a "
            "verdict."
        )


def _always(material: Material) -> Iterator[str]:
    tests = sum(1 for m in material.measures if m.p is not None)
    if tests:
        yield (
            f"{count(tests)} comparisons carry a p-value. Some are small by chance; q takes their number into account."
        )
    yield (
        "No causal reading is licensed by the data alone: a difference between groups does not say what brought it "
        "about, and the absence of one does not say that individuals were treated alike."
    )
    yield "Whether a difference is lawful is a question for people, with evidence that is not in these data."
