"""What a reader of the published tables can tell: parsed from the tables, not from what made them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.artifact import Artifact
from schemas.audit.limits import Bootstrap, Disclosure, Earlier, Limits, Verdicts
from schemas.audit.spec import Protected
from schemas.tables.applications import APPLICATIONS, DECISIONS, MEMBERSHIPS, MISSINGNESS, REFUSALS
from schemas.tables.verdicts import (
    EARLIER,
    HANDED_ON,
    PUBLICATION,
    PUBLISHED_MEASURES,
    PUBLISHED_MISSINGNESS,
    PUBLISHED_VERDICTS,
    PUBLISHED_WATERFALL,
)
from tasks.metrics import stage as measuring
from tasks.metrics.publish import stage as publishing
from tasks.metrics.publish.algorithm.audit import Auditor, cells_of
from tasks.metrics.publish.algorithm.populations import ALL, Base, Count, Place
from tasks.metrics.publish.algorithm.primary import Fate, subjects_of, targets_of
from tasks.metrics.publish.algorithm.profiles import POLICIES, learned
from tasks.metrics.publish.measures import Fates
from tasks.metrics.publish.people import APPLIED, DENIED, counts_of, lacking_place, line_place, whole_of
from tasks.pipeline.stage import counted

Tables = dict[str, pa.Table]
PROTECTED = (
    Protected(name="race", columns=("race",), reference="white"),
    Protected(name="both", columns=("race", "ethnicity"), reference="white and no"),
)
BOOTSTRAP = Bootstrap(draws=100)
NOTHING: Mapping[str, Tables] = MappingProxyType({})
NO_LIMIT = Verdicts(
    limits=Limits(similar_applicants=None, causal_model=None, approval_rates=None, path_to_approval=None)
)


class Person(NamedTuple):
    """One applicant."""

    race: str
    ethnicity: str
    approved: bool
    lacks: bool
    """Whether the income is missing, so that the record is refused."""
    row: str = ""
    """Its id; its number if empty."""


def raw(people: Sequence[Person]) -> Tables:
    """The tables of a run of the lender's decisions alone."""
    rows = range(len(people))
    ids, used = [people[i].row or str(i) for i in rows], [i for i in rows if not people[i].lacks]
    out = {t.name: t.empty() for t in (*publishing.READ, *measuring.measure.reads)}
    favourable = [p.approved for p in people]
    applications = {c.name: [None] * len(people) for c in APPLICATIONS.columns}
    applications |= {"row_id": ids, "source_row": list(rows), "favourable": favourable, "outcome": favourable}
    out["applications"] = APPLICATIONS.build(**applications).append_column(
        "income", pa.array([None if p.lacks else 1.0 for p in people], pa.float64())
    )
    groups = [*(p.race for p in people), *(f"{p.race} and {p.ethnicity}" for p in people)]
    names = ["race"] * len(people) + ["both"] * len(people)
    out["memberships"] = MEMBERSHIPS.build(row_id=ids * 2, protected_attribute=names, group=groups)
    refused = [i for i in rows if people[i].lacks]
    out["refusals"] = REFUSALS.build(
        row_id=[ids[i] for i in refused], source_row=refused, stage=["preprocess"] * len(refused),
        reason=["missing_covariate"] * len(refused), column=["income"] * len(refused),
        detail=[None] * len(refused), favourable=[favourable[i] for i in refused], weight=[1.0] * len(refused),
    )  # fmt: skip
    out["refusal_counts"] = counted(out["refusals"], out["memberships"])
    decided = {c.name: [None] * len(used) for c in DECISIONS.columns}
    decided |= {"row_id": [ids[i] for i in used], "decision_maker": ["lender"] * len(used)}
    decided |= {"favourable": [favourable[i] for i in used], "outcome": [favourable[i] for i in used]}
    decided |= {"score": [0.5] * len(used), "threshold": [0.5] * len(used), "explained": [True] * len(used)}
    out["decisions"] = DECISIONS.build(**{**decided, "fold": [0] * len(used)})
    approved = [sum(favourable[i] for i in part) for part in (refused, used)]
    out["missingness"] = MISSINGNESS.build(
        feature=["income"], reason=["missing_covariate"], missing=[len(refused)], favourable_missing=approved[:1],
        present=[len(used)], favourable_present=approved[1:], elsewhere=[0], favourable_elsewhere=[0], auc=[None],
    )  # fmt: skip
    return out


def published(
    people: Sequence[Person], profile: str, verdicts: Verdicts = NO_LIMIT, before: Mapping[str, Tables] = NOTHING
) -> tuple[Tables, Fates]:
    """What the stages measure and publish write, beside earlier runs by id, with what they have published."""
    found = raw(people)
    for mine, theirs in zip(EARLIER, HANDED_ON, strict=True):
        found[mine.name] = pa.concat_tables([mine.empty(), *(tables[theirs.name] for tables in before.values())])
    asked = measuring.MeasureSettings(
        name="t", year=2024, protected=PROTECTED, thresholds=(), bootstrap=BOOTSTRAP, seed=1, verdicts=verdicts,
        running=(), model_is_fitted=False,
    )  # fmt: skip
    found |= measuring.measure.function(*(found[t.name] for t in measuring.measure.reads), settings=asked).tables
    said = publishing.PublishSettings(
        protected=PROTECTED, disclosure=Disclosure(profile=profile, beside=tuple(map(handed_on, before.items()))),
        bootstrap=BOOTSTRAP, seed=1,
    )  # fmt: skip
    decided, decide = list[Fates](), publishing.fates_of

    def kept(*given: Any) -> Fates:
        decided.append(decide(*given))
        return decided[-1]

    with pytest.MonkeyPatch.context() as patch:  # the pass is dear, and the stage does not give its fates back
        patch.setattr(publishing, "fates_of", kept)
        out = publishing.publish.function(*(found[t.name] for t in publishing.READ), settings=said).tables
    return dict(out), decided[0]


def handed_on(run: tuple[str, Tables]) -> Earlier:
    """An earlier run as a spec names it; where its tables lie does not matter here."""
    name, tables = run
    sizes = {mine.name: tables[theirs.name].num_rows for mine, theirs in zip(EARLIER, HANDED_ON, strict=True)}
    return Earlier(run=name, tables=[Artifact(table=t, path="", sha256="", rows=n) for t, n in sizes.items()])


def exported(tables: Tables, fates: Fates) -> Iterator[tuple[Count, int]]:
    """Every count of people in the published tables, with whom it is of."""
    places = {"source": fates.crowd.source, "used": fates.crowd.used}
    for row in tables[PUBLISHED_WATERFALL.name].to_pylist():
        line = row["stage"], row["reason"], row["column"]
        population = whole_of(row["protected_attribute"], row["group"], places.get(row["kind"]) or line_place(line))
        if row["n"] is not None:
            yield Count(population), row["n"]
            if row["approval"] is not None and row["n"]:
                yield Count(population, DENIED), round(row["n"] * (1 - row["approval"]))
    for row in tables[PUBLISHED_MISSINGNESS.name].to_pylist():
        if row["missing"] is not None:
            yield Count(whole_of("race", ALL, lacking_place(row["feature"], row["reason"]))), row["missing"]
    for row in tables[PUBLISHED_MEASURES.name].to_pylist():
        if row["measure"] == "denial_rate" and row["n"]:
            place = APPLIED if row["decision_maker"] == "lender" else Place(Base.USED, row["decision_maker"])
            population = whole_of(row["protected_attribute"], row["group"], place)
            yield Count(population), row["n"]
            if row["events"] is not None:  # of a share that rounding would change too much n alone is told
                yield Count(population, DENIED), row["events"]


def assert_in_publication(tables: Tables, fates: Fates) -> None:
    known = {
        (r["protected_attribute"], r["group"], r["base"], r["reason"], r["event"]): r["number"]
        for r in tables[PUBLICATION.name].to_pylist()
        if r["decision_maker"] in ("", "lender")
    }
    for count, number in exported(tables, fates):
        each = count.population
        if not (count.event and each.base is Base.REFUSED):  # read off a share, to the digits of its n
            assert known[each.attribute, each.group, each.base, each.reason, count.event] == number


def person() -> st.SearchStrategy[Person]:
    races = st.sampled_from(["white"] * 5 + ["Black"] * 3 + ["Asian"])
    return st.builds(
        Person,
        races,
        st.sampled_from(["no"] * 6 + ["yes"]),
        st.booleans(),
        st.integers(0, 9).map(lambda i: not i),
        st.just(""),
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(20))
@given(st.lists(person(), min_size=20, max_size=120), st.sampled_from(["public", "strict", "official"]))
def test_no_small_count_can_be_told_from_what_is_exported(people: list[Person], profile: str) -> None:
    """Neither of linked attributes, nor by the waterfall; and every count that is exported is in the publication."""
    tables, fates = published(people, profile)
    assert_in_publication(tables, fates)
    policy = POLICIES[profile]
    every = counts_of(fates.people)
    subjects = subjects_of(fates.people, policy, every, {DENIED})
    told = dict(exported(tables, fates))
    counts = list(dict.fromkeys([*every, *(count for each in subjects.values() for count in each.counts)]))
    auditor = Auditor(cells_of(fates.people, counts), counts)
    low, high = np.full(auditor.truth.size, -np.inf), np.full(auditor.truth.size, np.inf)
    for count, number in told.items():
        never_small = not count.event or policy.events_too
        span = learned(policy, number, fates.outcome.bases[count], never_small)
        row = auditor.rows[count]
        low[row], high[row] = max(low[row], span.low), min(high[row], span.high)
    closed = {interval.count for interval in fates.outcome.closed}
    shown = {auditor.rows[count] for count in told if count.event}
    for each in subjects.values():
        for target in targets_of(policy, each) if each.small else ():
            if target.count in closed or (not policy.events_too and auditor.rows[target.count] in shown):
                continue
            found = auditor.interval(target.count, low, high)
            assert found.width >= target.least_width, (target.count, found)


def crowd_of(**groups: tuple[int, int, int]) -> list[Person]:
    """People from group=(n, denied, lacking)."""
    return [
        Person(group, "no", i >= denied, i >= n - lacking)
        for group, (n, denied, lacking) in groups.items()
        for i in range(n)
    ]


@pytest.mark.parametrize(("profile", "n"), [("internal", 3), ("public", None), ("strict", None), ("official", None)])
def test_a_small_group_is_withheld_everywhere_but_under_internal(profile: str, n: int | None) -> None:
    tables, _ = published(crowd_of(white=(300, 90, 0), Black=(120, 50, 0), Asian=(3, 1, 0)), profile, Verdicts())
    rows = [*tables[PUBLISHED_WATERFALL.name].to_pylist(), *tables[PUBLISHED_MEASURES.name].to_pylist()]
    mine = [row for row in rows if row["group"].startswith("Asian") and row.get("kind") != "refused"]
    assert mine
    assert {row["n"] for row in mine} == {n}
    if n is None:
        verdicts = [r for r in tables[PUBLISHED_VERDICTS.name].to_pylist() if r["group"].startswith("Asian")]
        assert all(row["withheld"] and row["value"] is None and row["n"] is None for row in verdicts)


def test_counts_under_internal_are_the_people_themselves() -> None:
    tables, _ = published(crowd_of(white=(301, 90, 2), Black=(121, 50, 1)), "internal")
    assert {row["fate"] for row in tables[PUBLICATION.name].to_pylist()} == {"shown"}
    used = {row["group"]: row["n"] for row in tables[PUBLISHED_WATERFALL.name].to_pylist() if row["kind"] == "used"}
    assert (used["white"], used["Black"], used[ALL]) == (299, 120, 419)


def test_official_rounds_counts_to_ten_and_strict_to_five() -> None:
    people = crowd_of(white=(301, 93, 0), Black=(127, 52, 0))
    for profile, base in (("strict", 5), ("official", 10)):
        tables, _ = published(people, profile)
        rows = [row for row in tables[PUBLISHED_MEASURES.name].to_pylist() if row["n"] is not None]
        assert rows
        assert all(row["n"] % base == 0 and (row["events"] or 0) % base == 0 for row in rows)


def test_the_error_that_years_are_pooled_by_is_never_rounded_down() -> None:
    people = crowd_of(white=(3000, 60, 0), Black=(3000, 60, 0))
    found = {profile: published(people, profile, Verdicts())[0] for profile in ("internal", "official")}
    exact, told = (
        next(r["se"] for r in found[profile][PUBLISHED_VERDICTS.name].to_pylist() if r["group"] == "Black")
        for profile in found
    )
    assert 0 < exact < 0.005
    assert told == 0.01


def test_few_who_lack_a_feature_are_told_nowhere() -> None:
    """Lender's n less the n used, and denials less those among the used, would give them back."""
    tables, _ = published(crowd_of(white=(400, 90, 2), Black=(121, 50, 0)), "public")
    (lack,) = tables[PUBLISHED_MISSINGNESS.name].to_pylist()
    assert (lack["missing"], lack["approval_missing"], lack["withheld"]) == (None, None, True)
    rows = tables[PUBLISHED_WATERFALL.name].to_pylist()
    n = {(row["kind"], row["group"]): row["n"] for row in rows if row["protected_attribute"] == "race"}
    assert n["refused", "white"] is None
    assert n["source", "white"] != 400 or n["used", "white"] != 398


def lines(tables: Tables, attribute: str = "race") -> dict[tuple[str, str], tuple[int | None, float | None, bool]]:
    """Kind of line and group -> rows, share approved, and whether a number is withheld."""
    rows = [row for row in tables[PUBLISHED_WATERFALL.name].to_pylist() if row["protected_attribute"] == attribute]
    return {(row["kind"], row["group"]): (row["n"], row["approval"], row["withheld"]) for row in rows}


def test_every_line_of_the_waterfall_has_its_rows_and_the_refused_their_approvals() -> None:
    people = [
        Person("white", "no", i % 4 > 0, i < 80) for i in range(400)
    ] + [Person("Black", "no", i % 2 > 0, i < 40) for i in range(160)]  # fmt: skip
    tables, _ = published(people, "public")
    found = lines(tables)
    assert [found["source", group][0] for group in (ALL, "white", "Black")] == [560, 400, 160]
    assert [found["refused", group] for group in ("white", "Black")] == [(80, 0.75, False), (40, 0.5, False)]
    assert found["refused", ALL] == (120, 0.667, False)
    assert [found["used", group][0] for group in (ALL, "white", "Black")] == [440, 320, 120]
    (lack,) = tables[PUBLISHED_MISSINGNESS.name].to_pylist()
    assert (lack["missing"], lack["approval_missing"], lack["withheld"]) == (120, 0.667, False)
    assert lack["approval_present"] == 0.7, "300 of 440, to as few decimals as hide five people"


def test_groups_of_a_line_are_everybody_first_then_by_falling_size() -> None:
    tables, _ = published(crowd_of(Black=(120, 50, 0), white=(300, 90, 0)), "public")
    first = [r["group"] for r in tables[PUBLISHED_WATERFALL.name].to_pylist() if r["line"] == 0][:3]
    assert first == [ALL, "white", "Black"]


def test_decisions_that_could_not_be_read_make_no_share() -> None:
    people = crowd_of(white=(300, 90, 30), Black=(120, 50, 20))
    found = raw(people)
    refusals = found["refusals"].to_pylist()
    for row in refusals[:10]:
        row["favourable"] = None
    found["refusals"] = pa.Table.from_pylist(refusals, found["refusals"].schema)
    found["refusal_counts"] = counted(found["refusals"], found["memberships"])
    used = {str(i) for i, p in enumerate(people) if not p.lacks}
    found["applications"] = found["applications"].filter(pc.is_in(found["applications"]["row_id"], pa.array(used)))
    said = publishing.PublishSettings(
        protected=PROTECTED, disclosure=Disclosure(profile="public"), bootstrap=BOOTSTRAP, seed=1
    )
    found["missingness"] = MISSINGNESS.empty()
    out = publishing.publish.function(*(found[t.name] for t in publishing.READ), settings=said).tables
    shares = {row[1:] for key, row in lines(dict(out)).items() if key[0] == "refused"}
    assert shares == {(None, False)}


def test_the_order_of_groups_in_the_waterfall_does_not_tell_which_withheld_one_is_larger() -> None:
    sizes = {"white": 90, "Black": 40, "Zulu": 4, "Asian": 3}
    people = [Person(race, "no", bool(i % 2), False) for race, n in sizes.items() for i in range(n)]
    lines = published(people, "public")[0][PUBLISHED_WATERFALL.name].to_pylist()
    shown = [(r["group"], r["n"] is None) for r in lines if (r["protected_attribute"], r["line"]) == ("race", 0)]
    assert [group for group, _ in shown[1:3]] == ["white", "Black"]
    assert shown[3:] == [("Asian", True), ("Zulu", True)]


def test_what_the_pass_shows_of_decisions_is_shown_and_nobody_is_not_said_of_a_few() -> None:
    sizes = {"white": 520, "Black": 130, "Other": 47, "Asian": 3}
    people = [Person(race, "no", i % 4 > 0, race == "white" and i < 2) for race, n in sizes.items() for i in range(n)]
    tables, fates = published(people, "public")
    rates = [r for r in tables[PUBLISHED_MEASURES.name].to_pylist() if r["measure"] == "denial_rate"]
    told = {(r["protected_attribute"], r["group"]): r["n"] for r in rates if r["decision_maker"] == "lender"}
    known = {key: fates.decided(*key, "lender")[0] for key in told}
    assert told == known
    assert told["race", "Other"] is not None
    assert told["race", "Asian"] is None
    denied = Count(whole_of("race", "Other", APPLIED), DENIED)
    entries = [replace(e, number=0, fate=Fate.ROUNDED) if e.count == denied else e for e in fates.outcome.entries]
    for base, said in ((1, 0), (10, None)):
        outcome = replace(fates.outcome, entries=tuple(entries), bases={**fates.outcome.bases, denied: base})
        assert replace(fates, outcome=outcome).decided("race", "Other", "lender")[1] == said
