"""Two published runs of one file, the second with a ``keep`` more: who of few is in one of them alone is not told.

The attacker has the published tables of both, the rules, and integer programmes of its own.
"""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from test_exported import Person, Tables, published

from schemas.tables.verdicts import (
    PUBLICATION,
    PUBLICATION_KINDS,
    PUBLICATION_ROWS,
    PUBLISHED_MEASURES,
    PUBLISHED_WATERFALL,
)
from tasks.metrics.publish.algorithm.profiles import POLICIES, learned, rounded
from tasks.metrics.publish.measures import Fates

SIZES = {
    **{("white", False, "home"): 60, ("white", True, "home"): 240, ("Black", False, "home"): 51},
    **{("Black", True, "home"): 60, ("white", False, "repair"): 9, ("white", True, "repair"): 31},
    **{("Black", False, "repair"): 1, ("Black", True, "repair"): 1, ("white", False, "other"): 12},
    **{("white", True, "other"): 40, ("Black", False, "other"): 8, ("Black", True, "other"): 14},
}
"""People by race, approval and kind of loan."""
CELLS = list(SIZES)
KEPT = {"first": ("home",), "second": ("home", "repair")}


def run_of(name: str, profile: str, before: dict[str, Tables] | None = None) -> tuple[Tables, Fates]:
    """A run that leaves out all but some loans."""
    people = [
        Person(race, "no", approved, loan not in KEPT[name])
        for (race, approved, loan), n in SIZES.items()
        for _ in range(n)
    ]
    return published(people, profile, before=before or {})


@cache
def first_of(profile: str) -> tuple[Tables, Fates]:
    """The first run."""
    return run_of("first", profile)


def seen(name: str, tables: Tables) -> Iterator[tuple[list[bool], int]]:
    """Every printed number of people of a race or of all, with the cells that it counts."""
    for row in tables[PUBLISHED_WATERFALL.name].to_pylist():
        if row["protected_attribute"] == "race" and row["n"] is not None and row["kind"] != "left":
            yield [_is(row, race) and _there(row["kind"], loan, name) for race, _, loan in CELLS], row["n"]
    for row in tables[PUBLISHED_MEASURES.name].to_pylist():
        if row["protected_attribute"] == "race" and row["measure"] == "denial_rate" and row["n"] is not None:
            yield [_is(row, race) for race, *_ in CELLS], row["n"]
            if row["events"] is not None:
                yield [_is(row, race) and not approved for race, approved, _ in CELLS], row["events"]


def _is(row: dict[str, object], race: str) -> bool:
    return row["group"] in ("All", race)


def _there(kind: str, loan: str, name: str) -> bool:
    return kind == "source" or (kind == "used") == (loan in KEPT[name])


def told(runs: Sequence[tuple[str, Tables, Fates]], profile: str, target: list[bool]) -> tuple[float, float]:
    """Least and largest size of a set of cells that fits all that the runs have printed."""
    rows, ends = [], []
    for name, tables, fates in runs:
        bases = set(fates.outcome.bases.values())
        for inside, number in seen(name, tables):
            true = sum(n for counted, n in zip(inside, SIZES.values(), strict=True) if counted)
            known = min((base for base in bases if rounded(POLICIES[profile], true, base) == number), default=0)
            rows.append(inside)
            ends.append(learned(POLICIES[profile], number, known, never_small=False))
    low, high = np.array(ends, dtype=float).T
    found = []
    for sign in (1, -1):
        aim = np.array(target, dtype=float)
        constraint = LinearConstraint(np.array(rows, dtype=float), low, high)
        answer = milp(sign * aim, constraints=constraint, integrality=np.ones(len(CELLS)), bounds=Bounds(0, 10_000))
        assert answer.status == 0, "what is published does not hold of any people"
        found.append(float(aim @ np.rint(answer.x)))
    return found[0], found[1]


BLACK_REPAIRS = [race == "Black" and loan == "repair" for race, _, loan in CELLS]


@pytest.mark.parametrize("profile", ["public", "strict"])
def test_a_small_count_that_follows_by_subtraction_is_not_told_beside_the_earlier_run(profile: str) -> None:
    first = first_of(profile)
    alone, beside = run_of("second", profile), run_of("second", profile, {"first": first[0]})
    before = ("first", *first)
    if profile == "public":
        assert told([before, ("second", *alone)], profile, BLACK_REPAIRS) == (2, 2), "without the pass it is told"
    least, largest = told([before, ("second", *beside)], profile, BLACK_REPAIRS)
    assert largest - least >= POLICIES[profile].wanted
    assert beside[1].outcome.closed == ()


def test_what_follows_is_counted_and_an_earlier_run_alike_takes_nothing_more() -> None:
    first = first_of("public")
    assert run_of("second", "public", {"first": first[0]})[1].outcome.beside >= 1
    again, fates = run_of("first", "public", {"before": first[0]})
    assert again[PUBLICATION.name] == first[0][PUBLICATION.name]
    assert fates.outcome.beside == 0


def test_under_internal_nothing_is_withheld_beside_an_earlier_run() -> None:
    first, _ = first_of("public")
    tables, _ = run_of("second", "internal", {"first": first})
    assert {row["fate"] for row in tables[PUBLICATION.name].to_pylist()} == {"shown"}


def test_every_number_handed_on_holds_of_the_rows_handed_on() -> None:
    """A count of the publication lies within its bounds, counted by the rows and their kinds alone."""
    tables, fates = first_of("strict")
    kinds = tables[PUBLICATION_KINDS.name].to_pylist()
    size = dict.fromkeys({row["kind"] for row in kinds}, 0)
    for row in tables[PUBLICATION_ROWS.name].to_pylist():
        size[row["kind"]] += 1
    having = {
        key: {r["kind"] for r in kinds if all(r[name] == value for name, value in key)}
        for key in {tuple(_key(row).items()) for row in kinds}
    }
    numbers = tables[PUBLICATION.name].to_pylist()
    assert len(numbers) > 20
    for row in numbers:
        place = {name: row[name] for name in ("base", "decision_maker", "reason")}
        inside = having.get(tuple({"property": "place", **place}.items()), set())
        if row["group"] != "All":
            group = {"protected_attribute": row["protected_attribute"], "group": row["group"]}
            inside = inside & having[tuple({"property": "group", **group}.items())]
        if row["event"]:
            maker = {"decision_maker": row["decision_maker"]}
            inside = inside & having.get(tuple({"property": "denied", **maker}.items()), set())
        n = sum(size[kind] for kind in inside)
        assert (row["low"] or 0) <= n <= (n if row["high"] is None else row["high"]), row
        assert row["number"] is None or abs(row["number"] - n) <= 10
    assert fates.outcome.closed == ()


def _key(row: dict[str, object]) -> dict[str, object]:
    """What a property of a kind is about."""
    names = {
        "group": ("protected_attribute", "group"),
        "place": ("base", "decision_maker", "reason"),
        "denied": ("decision_maker",),
    }
    return {name: row[name] for name in ("property", *names[str(row["property"])])}


def test_a_row_that_an_edition_lacks_has_the_groups_of_rows_like_it() -> None:
    """A later edition has 20 rows more: they are in no place of the earlier one."""
    people = [Person(race, "no", i % 3 > 0, False) for race, n in (("white", 90), ("Black", 60)) for i in range(n)]
    first, _ = published(people, "public")
    more = [*people, *(Person("white", "no", i % 2 > 0, False) for i in range(17)), *(people[-1:] * 3)]
    alone, beside = published(more, "public"), published(more, "public", before={"first": first})
    black = [r["number"] for r in alone[0][PUBLICATION.name].to_pylist() if r["group"] == "Black" and not r["event"]]
    assert set(black) >= {63}
    now = [r["number"] for r in beside[0][PUBLICATION.name].to_pylist() if r["group"] == "Black" and not r["event"]]
    assert 63 not in now, "63 less 60 tells the three"
    assert beside[1].outcome.beside >= 1
    assert beside[1].outcome.closed == (), "rounded so coarsely that any of the three may have been denied"


def test_three_who_changed_their_group_between_two_runs_are_not_told() -> None:
    """Three denied people whom the second run has in another group: who knows of them does not learn of a denial."""
    sizes = (("white", 90), ("Black", 60))
    people = [Person(race, "no", i % 3 > 0, False, f"{race}{i}") for race, n in sizes for i in range(n)]
    three = [person.row for person in people if person.race == "Black" and not person.approved][:3]
    changed = [person._replace(race="white") if person.row in three else person for person in people]
    first, _ = published(people, "public")
    beside, fates = published(changed, "public", before={"first": first})
    assert fates.outcome.closed == ()
    spans = []
    for tables in (first, beside):
        rows = tables[PUBLICATION.name].to_pylist()
        row = next(r for r in rows if (r["group"], r["event"], r["base"]) == ("Black", "", "source"))
        spans.append((row["low"], 10_000 if row["high"] is None else row["high"]))
    (low, high), (then, last) = spans
    assert high - then - (low - last) >= POLICIES["public"].wanted, "three less is not told"
