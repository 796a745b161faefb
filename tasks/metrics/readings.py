"""The judged effect as verdicts take it: its evidence from all readings, its parts, and the findings about it.

Scope: rows of the tables that the stage ``adjust`` writes, and of copies, as evidence and as findings. States:
``tasks.metrics.algorithm.verdicts``. Sentences: ``schemas.sentences``.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist, median
from typing import Any

import pyarrow as pa

from schemas.audit.limits import Verdicts
from schemas.sentences import INSIDE, next_step, sentence
from schemas.tables.readings import (
    CARRIERS,
    CHOICES,
    FINDING_KINDS,
    JUDGED_EFFECTS,
    KEY,
    LEFT_OUT,
    NO_DECISION,
    PARTS,
    READINGS,
    READINGS_IN_HULL,
    VERDICT_FINDINGS,
)
from schemas.terms import DecisionMaker, State, Theory
from tasks.metrics.algorithm.verdicts import (
    POWER,
    Case,
    Counts,
    Estimated,
    Evidence,
    Hull,
    Limit,
    Rules,
    bias_of,
    judge,
)

Whose = tuple[str, str, str]
"""Decision maker, protected attribute and group."""
Row = Mapping[str, Any]
MISSING_P, MISSING_POINTS = 0.01, 0.01
"""Missing values are a finding below this p, where the two estimates differ by more than these points."""
PLACE_POINTS, THROUGH_POINTS, BAND_POINTS = 0.02, 0.02, 0.01
"""What goes through places, through branches, and inside bands, beyond which it is a finding."""
TIMES_LIMIT = 2.5
"""The limit of a part is no larger than so many times that of its group."""
OF_FILES_LEFT_OUT = ("weighted", "undecided")
"""Readings of files that the judged effect leaves out."""
MOST_PARTS = 3
"""Parts that are findings; the others stand in the table."""
UNRELIABLE_POINTS = 0.10
"""A hull so much wider than the interval of complete, decided files leaves nothing to rest on."""
NO_CHANCE = "this lender decides without chance, so that neighbours' decisions give no error"
_ONE_SIDED, _TWO_SIDED = 0.05, 0.025


@dataclass(frozen=True)
class Facts:
    """All that is known of the judged effect of one group."""

    row: Row
    """Of ``judged_effects``."""
    readings: Mapping[str, Row] = field(default_factory=dict)
    parts: Sequence[Row] = ()
    left_out: Mapping[str, Row] = field(default_factory=dict)
    carriers: Sequence[Row] = ()
    choices: Sequence[Row] = ()
    """The effect by other choices; none where nobody made them."""

    @property
    def measured(self) -> bool:
        """Whether there is an estimate."""
        return self.row["value"] is not None

    @property
    def no_noise(self) -> bool:
        """Whether the lender decides without chance."""
        return bool(self.row["no_noise"])

    @property
    def of_clusters(self) -> tuple[float, float]:
        """How many times the error by rows that by clusters is, and its degrees of freedom; 1 and infinite without."""
        row = self.row
        if row["cluster"] is None or not row["se"] or not row["se_by_rows"]:
            return 1.0, math.inf
        return max(1.0, row["se"] / row["se_by_rows"]), math.inf if row["df"] is None else row["df"]

    @property
    def missing(self) -> bool:
        """Whether missing values are a finding: they depend on the decision, and move the effect."""
        weighted = self.readings.get("weighted")
        p = min((row["p"] for name, row in self.left_out.items() if name != NO_DECISION), default=1.0)
        shifts = weighted is not None and abs(weighted["difference"]) > MISSING_POINTS
        return shifts and bool(self.row["depends"]) and p < MISSING_P

    def undecided(self, limit: float | None) -> bool:
        """Whether applications without a decision are a finding: the excess of either group is beyond the limit."""
        row = self.left_out.get(NO_DECISION)
        if row is None or limit is None or row["excess"] is None:
            return False
        return bool(abs(row["excess"]) - _error(row["excess_se"], None).bound(_ONE_SIDED, upper=True) > limit)

    def beyond(self, reading: str, points: float) -> bool:
        """Whether a reading is shown to exceed the judged effect by more than some points."""
        row = self.readings.get(reading)
        return row is not None and _difference(row, sign=1).bound(_ONE_SIDED, upper=False) > points

    def misleads(self, limit: float | None) -> bool:
        """Whether files left out may make a part that is none."""
        return self.missing or self.undecided(limit)

    def differs(self, reading: str) -> bool:
        """Whether the effect inside quarters, or branches, is shown to differ by more than two points."""
        row = self.readings.get(reading)
        return row is not None and any(
            _difference(row, sign=sign).bound(_ONE_SIDED, upper=False) > THROUGH_POINTS for sign in (1, -1)
        )

    def shifts(self, reading: str) -> bool:
        """Whether the effect inside quarters, or branches, differs at all, at 5 %: the judged one is biased.

        No number of points is asked for: with few applicants chance hides two points of drift, and harmless lenders
        would be outside in 6 of 100.
        """
        row = self.readings.get(reading)
        return row is not None and any(
            _difference(row, sign=sign).bound(_TWO_SIDED, upper=False) > 0 for sign in (1, -1)
        )

    @property
    def in_hull(self) -> list[Row]:
        """The further readings that the state is read from."""
        undecided = (self.left_out.get(NO_DECISION) or {"p": 1.0})["p"] < _ONE_SIDED
        takes = {
            "weighted": bool(self.row["depends"]),
            "undecided": undecided,
            "undecided_approved": undecided,
            "through": self.beyond("through", THROUGH_POINTS),
            "time": self.shifts("time"),
            "office": self.shifts("office"),
            "bands": True,
        }
        return [self.readings[name] for name in READINGS_IN_HULL if takes[name] and name in self.readings]

    @property
    def depends_on_form(self) -> bool:
        """Whether the targeted estimate differs by more than its error."""
        row = self.readings.get("targeted")
        if row is None or not row["difference_se"]:
            return False
        return bool(abs(row["difference"]) > _error(row["difference_se"], None).bound(_TWO_SIDED, upper=True))


def facts_of(tables: Mapping[str, pa.Table]) -> dict[Whose, Facts]:
    """Facts by decision maker, attribute and group; none where no effect was judged."""
    rows = {table.name: tables[table.name].to_pylist() for table in (READINGS, PARTS, LEFT_OUT, CARRIERS, CHOICES)}
    out = {}
    for row in tables[JUDGED_EFFECTS.name].to_pylist():
        whose: Whose = tuple(row[name] for name in KEY)
        rows_of_group = {
            name: [r for r in of_table if tuple(r[k] for k in KEY) == whose] for name, of_table in rows.items()
        }
        out[whose] = Facts(
            row,
            {reading["reading"]: reading for reading in rows_of_group[READINGS.name]},
            rows_of_group[PARTS.name],
            {left_out["what"]: left_out for left_out in rows_of_group[LEFT_OUT.name]},
            rows_of_group[CARRIERS.name],
            rows_of_group[CHOICES.name],
        )
    return out


def _error(se: float, df: float | None) -> Estimated:
    """An error around 0."""
    return Estimated(0.0, se, df=math.inf if df is None else df)


def _difference(row: Row, sign: int) -> Estimated:
    return Estimated(sign * row["difference"], row["difference_se"] or 1e-12)


# --------------------------------------------------------------------------------------------------------------------
# From facts to the case of a verdict.


def judged_case(case: Case, facts: Facts, bias: float, robustness: float, settings: Verdicts) -> Case:
    """The case of the judged effect, with the evidence of all its readings and what its parts say.

    Args:
        case: as it stands without them.
        facts: of the same group.
        bias: how far columns that the table lacks may move the effect.
        robustness: what an unseen column has to explain.
        settings: of verdicts.
    """
    row = facts.row
    if not facts.measured:
        return case
    estimate = Estimated(
        row["value"],
        row["se_at_limit"],
        df=math.inf if row["df"] is None else row["df"],
        bias=bias,
        robustness=robustness,
        plain=(row["se"], math.inf if row["df"] is None else row["df"]),
    )
    in_hull = [
        Estimated(r["value"], r["se"], df=math.inf if r["df"] is None else r["df"], bias=bias) for r in facts.in_hull
    ]
    evidence: Evidence = Hull((estimate, *in_hull)) if in_hull else estimate
    counts = Counts(*(row[name] for name in ("n", "events", "n_reference", "events_reference")))
    limit = None if case.limit is None else Limit(row["limit"], case.limit.side)
    misleads = facts.misleads(settings.limits.undecided)
    outside = (
        [] if misleads else [part for part in named_parts(facts, row["value"]) if _above(part, bias, settings, row)]
    )
    barring = [part for part in facts.parts if part["bars"]]
    bars = f"a part of the group may lie beyond its limit: {part_words(_strongest(barring)[0])}" if barring else ""
    if not settings.parts.by or settings.limits.part is None:
        bars = "no parts of the group were looked at"
    return replace(
        case,
        value=row["value"],
        evidence=evidence,
        counts=counts,
        limit=limit,
        left_out=0.0,
        part_outside=part_words(outside[0]) if outside else "",
        bars=bars,
        few_denials=True,
        unreliable=_unreliable(estimate, facts),
        sample_settles=not (in_hull or misleads),
    )


def _unreliable(estimate: Estimated, facts: Facts) -> str:
    """Why no state can rest on the files that are left: the hull with the others is 10 points wider; else empty."""
    in_hull = facts.in_hull
    left_out = [row for name, row in facts.readings.items() if name in OF_FILES_LEFT_OUT and row in in_hull]
    if not left_out:
        return ""
    widest = Hull((estimate, *(Estimated(r["value"], r["se"], df=r["df"] or math.inf) for r in left_out)))
    width, of_hull = (e.bound(_TWO_SIDED, upper=True) - e.bound(_TWO_SIDED, upper=False) for e in (estimate, widest))
    if of_hull - width <= UNRELIABLE_POINTS:
        return ""
    return (
        f"files left out, or without a decision, widen the interval by {100 * (of_hull - width):.0f} points: "
        "no state can rest on the others"
    )


def _above(part: Row, bias: float, settings: Verdicts, row: Row) -> bool:
    """Whether a part is outside though an unseen column may move it as far as the whole."""
    if not bias:
        return bool(part["outside"])
    limit = min(settings.limits.part or math.inf, TIMES_LIMIT * row["limit"])
    quantile = (part["value"] - part["low"]) / part["se"] if part["se"] else 0.0
    return bool(part["outside"] and part["value"] - quantile * part["se"] - bias > limit)


def named_parts(facts: Facts, value: float) -> list[Row]:
    """Parts outside, the strongest first; where the whole is outside, those alone that exceed the rest."""
    estimate = Estimated(value, facts.row["se_at_limit"] or 1e-12)
    whole_outside = estimate.bound(_ONE_SIDED, upper=False) > (facts.row["limit"] or 0.0)
    return _strongest([p for p in facts.parts if p["outside"] and (p["exceeds_rest"] or not whole_outside)])


def _strongest(parts: Sequence[Row]) -> list[Row]:
    return sorted(parts, key=lambda part: -part["value"] / part["se"] if part["se"] else 0.0)


def part_words(part: Row) -> str:
    """A part by its column and level."""
    return f"{part['column']}: {part['level']}"


# --------------------------------------------------------------------------------------------------------------------
# How much harm in a part would have been seen, and whether a state depends on how the effect is made.


PART_SIZES = (200, 100, 50)
"""Members of a part for which the smallest harm is told: the first that the group has room for."""
SETTLED = 20
"""Rounds in which the error at harm of a size is settled."""
LARGEST_PART = 0.95
"""Share of a group above which a part is the whole."""


@dataclass(frozen=True)
class Seen:
    """The smallest harm in a part that this audit would have called outside with 80 % power."""

    n: int
    """Members of the part."""
    points: float
    """As a share of them."""


def seen_in_part(facts: Facts, settings: Verdicts) -> Seen | None:
    """From the errors and the critical value of the parts that were looked at; None where none was.

    The error of a part goes with one over the root of its members, by the median of the parts.
    """
    sure = [part for part in facts.parts if part["se"] and part["above"] is not None]
    size = next((n for n in PART_SIZES if n <= LARGEST_PART * facts.row["n"]), None)
    if not sure or size is None or not facts.measured or settings.limits.part is None:
        return None
    limit = min(settings.limits.part, TIMES_LIMIT * facts.row["limit"])
    critical = (sure[0]["value"] - sure[0]["above"]) / sure[0]["se"]
    error = median(part["se"] * math.sqrt(part["n"] / size) for part in sure)
    points = reach = (critical + NormalDist().inv_cdf(POWER)) * error
    expected = min(max(facts.row["expected"], 0.01), 0.5)
    for _ in range(SETTLED):  # with harm the rate of denial, and so the error, is larger than in the parts as they are
        rate = min(expected + limit + points, 0.5)
        points = reach * math.sqrt(rate * (1 - rate) / (expected * (1 - expected)))
    points += limit
    return Seen(size, points) if points < 1 else None


def states_of_choices(
    verdicts: Sequence[Row], choices: Mapping[Whose, Sequence[Row]], rules: Rules
) -> dict[Whose, list[tuple[Row, State]]]:
    """Each choice of every judged group with its state, judged together with the other groups by the same choice.

    Parts, and files that the effect leaves out, are not in it: it is about the effect on the whole group.

    Args:
        verdicts: rows of the table of verdicts.
        choices: rows of the table of choices by decision maker, attribute and group.
        rules: of verdicts.
    """
    cases: dict[Whose, Case] = {}
    for row in verdicts:
        whose = row["decision_maker"], row["protected_attribute"], row["group"]
        if row["role"] == "primary" and row["theory"] == Theory.SIMILAR_APPLICANTS and row["p_breach"] is not None:
            counts = Counts(*(row[name] for name in ("n", "events", "n_reference", "events_reference")))
            about = row["method"], row["measure"], *whose[1:], row["reference_group"], whose[0]
            evidence = Estimated(row["value"], row["se"], df=row["df"] or math.inf, bias=row["bias"])
            limit = Limit(row["limit"], row["side"])
            cases[whose] = Case(Theory.SIMILAR_APPLICANTS, *about, "primary", row["value"], evidence, limit, counts)
    chosen_rows = {whose: rows for whose, rows in choices.items() if whose in cases and rows}
    out: dict[Whose, list[tuple[Row, State]]] = {whose: [] for whose in chosen_rows}
    for numbered in zip(*chosen_rows.values(), strict=True):
        chosen = dict(zip(chosen_rows, numbered, strict=True))
        family = {}
        for whose, case in cases.items():
            choice = chosen.get(whose)
            family[whose] = case
            if choice is not None and choice["value"] is not None:
                df = math.inf if choice["df"] is None else choice["df"]
                estimate = Estimated(choice["value"], choice["se_at_limit"], df=df, bias=bias_of(case))
                family[whose] = replace(case, value=choice["value"], evidence=estimate, limit=Limit(choice["limit"]))
        for whose, verdict in zip(family, judge(list(family.values()), rules), strict=True):
            if whose in chosen:
                out[whose].append((chosen[whose], verdict.state))
    return out


# --------------------------------------------------------------------------------------------------------------------
# Findings: what a mean hides, and what in the file misleads.


def findings_of(facts: Mapping[Whose, Facts], copies: Row | None, settings: Verdicts) -> Iterator[dict[str, Any]]:
    """Rows of the table of findings, without sentences: kind, group and size.

    Args:
        facts: of every group that is estimate.
        copies: the row of the table of copies where it is a finding.
        settings: of verdicts.
    """
    if copies is not None:
        base = {"protected_attribute": "", "group": "", "decision_maker": "", "part": ""}
        share = copies["copied"] / copies["rows"] if copies["rows"] else 0.0
        yield base | {
            "kind": "copies",
            "question": "",
            "value": share,
            "n": copies["copied"],
            "of": copies["rows"],
            "kept": not copies["left_out"],
        }
    for whose, of_group in facts.items():
        if not of_group.measured or whose[0] != DecisionMaker.LENDER:
            continue
        base = dict(zip(KEY, whose, strict=True)) | {"question": "similar_applicants", "part": ""}
        for finding in _of_group(of_group, settings):
            yield base | finding


def _of_group(facts: Facts, settings: Verdicts) -> Iterator[dict[str, Any]]:
    row = facts.row
    estimate = Estimated(row["value"], row["se_at_limit"] or 1e-12, df=row["df"] or math.inf)
    lacking = {name: r for name, r in facts.left_out.items() if name != NO_DECISION}
    if facts.missing:
        most = min(lacking.values(), key=lambda r: (r["p"], -r["n"] - r["n_reference"]))
        weighted = facts.readings["weighted"]
        df = math.inf if weighted["df"] is None else weighted["df"]
        hull = Hull((estimate, Estimated(weighted["value"], weighted["se"], df=df)))
        low, high = (hull.bound(_TWO_SIDED, upper=upper) for upper in (False, True))
        yield {
            **{"kind": "missing", "part": most["what"], "n": most["n"] + most["n_reference"]},
            **{"value": weighted["value"], "low": low, "high": high},
            "shares": [most[f"share_{name}"] for name in ("denied", "approved")],
            "shares_reference": [most[f"share_{name}_reference"] for name in ("denied", "approved")],
        }
    if facts.undecided(settings.limits.undecided):
        ended = facts.left_out[NO_DECISION]
        half = _error(ended["excess_se"], None).bound(_TWO_SIDED, upper=True)
        yield {
            **{"kind": "undecided", "n": ended["n"], "value": ended["excess"]},
            **{"low": ended["excess"] - half, "high": ended["excess"] + half, "estimate": ended["estimate"]},
            **{"shares": [ended["share"]], "shares_reference": [ended["share_reference"]]},
        }
    if not facts.misleads(settings.limits.undecided):
        for part in named_parts(facts, row["value"])[:MOST_PARTS]:
            yield {
                **{"kind": "part", "part": part_words(part), "n": part["n"], "value": part["value"]},
                **{"low": part["low"], "high": part["high"], "estimate": row["value"]},
            }
    yield from _through(facts)
    if row["rare"] and estimate.bound(_ONE_SIDED, upper=False) > row["limit"]:
        yield {
            **{"kind": "ratio", "n": row["events"], "value": row["ratio"]},
            **{"low": row["ratio_low"], "high": row["ratio_high"], "of": row["n"], "estimate": row["expected"]},
        }
    bands = facts.readings.get("bands")
    if bands is not None and abs(bands["difference"]) > BAND_POINTS:
        yield {"kind": "bands", "n": row["n"], "value": -bands["difference"], "estimate": row["value"]}
    if facts.depends_on_form:
        targeted = facts.readings["targeted"]
        yield {"kind": "form", "n": row["n"], "value": targeted["value"], "estimate": row["value"]}
    if facts.no_noise:
        yield {"kind": "no_noise", "n": row["n_reference"], "value": row["explained"]}


def _through(facts: Facts) -> Iterator[dict[str, Any]]:
    """What goes through places, and through branches."""
    place, through = facts.readings.get("place"), facts.readings.get("through")
    if place is not None:
        gap = _difference(place, sign=-1)
        if gap.bound(_ONE_SIDED, upper=False) > PLACE_POINTS:
            ends = {"low": gap.bound(_TWO_SIDED, upper=False), "high": gap.bound(_TWO_SIDED, upper=True)}
            yield {
                **{"kind": "place", "n": facts.row["n"], "value": gap.value, **ends},
                **{"estimate": facts.row["value"], "remaining": place["value"], "remaining_se": place["se"]},
            }
    if through is not None and facts.beyond("through", THROUGH_POINTS):
        gap = _difference(through, sign=1)
        ends = {"low": gap.bound(_TWO_SIDED, upper=False), "high": gap.bound(_TWO_SIDED, upper=True)}
        yield {"kind": "through", "n": facts.row["n"], "value": gap.value, **ends, "estimate": facts.row["value"]}
    for reading in INSIDE:
        if not facts.differs(reading):
            continue
        gap = _difference(facts.readings[reading], sign=-1)
        ends = {"low": gap.bound(_TWO_SIDED, upper=False), "high": gap.bound(_TWO_SIDED, upper=True)}
        yield {
            **{"kind": "through", "part": reading, "n": facts.row["n"], "value": gap.value, **ends},
            **{"estimate": facts.row["value"], "remaining": facts.readings[reading]["value"]},
        }


def findings_table(findings: Iterable[Mapping[str, Any]], references: Mapping[str, str]) -> pa.Table:
    """Findings as a table, with their sentences; those of one kind in the order in which they were found.

    Args:
        findings: as ``findings_of`` gives them.
        references: protected attribute -> its reference group.
    """
    rows = []
    for finding in findings:
        full = {**finding, "reference_group": references.get(finding["protected_attribute"], "")}
        rows.append({**full, "sentence": sentence(full), "next": next_step(full)})
    rows.sort(key=lambda row: FINDING_KINDS.index(row["kind"]))
    return VERDICT_FINDINGS.build(**{c.name: [row.get(c.name) for row in rows] for c in VERDICT_FINDINGS.columns})
