"""A reader with the published tables of parts solves for every small count by sums and shares, and wins none."""

from collections import defaultdict
from collections.abc import Iterator
from math import ceil, floor
from types import SimpleNamespace

import numpy as np
import pytest
from published_rows import Told
from scipy.optimize import linprog

from schemas.tables.verdicts import published
from tasks.methods.adjusted.tables import DENIAL_REASONS, FLOW, PLACES, PRICING, PROXY_MEASURES, PROXY_OUTCOMES
from tasks.metrics.publish import facts
from tasks.metrics.publish.algorithm.profiles import POLICIES, learned

GROUPS = {"race": ("Asian", "Black", "white"), "sex": ("female", "male")}
ENDS = ("originated", "denied", "withdrawn", "incomplete")
ATOMS = ("0", "25", "50", "above 50", "75", "above 80", "not known")
"""Minority shares between which bands can be told apart: 50 itself is in a band, and not above 50 %."""
BANDS = {
    **{"0 to 25 %": ("0",), "25 to 50 %": ("25",), "50 to 75 %": ("50", "above 50"), "75 to 100 %": ATOMS[4:6]},
    **{"above 50 %": ATOMS[3:6], "above 80 %": ("above 80",), "not known": ("not known",)},
}
PRODUCTS = ("purchase", "refinancing", "other")
WAYS = ("probable", "missing_surname", "unknown_surname", "impossible")
WORLDS = 18
Terms = dict[tuple, int]


def fates_of(profile):
    own = Told(POLICIES[profile])
    attributes = [SimpleNamespace(name=name, groups=groups) for name, groups in GROUPS.items()]
    names = ("policy", "is_gone", "is_ranged", "printed", "base", "base_of")
    return SimpleNamespace(
        **{name: getattr(own, name) for name in names},
        people=SimpleNamespace(attributes=attributes, weights=None),
        of_all=lambda count: own.printed("", "", "", count),
    )


def built(declared, rows):
    blank = {c.name: {"string": "", "bool": False, "int32": 0}.get(c.type) for c in declared.columns}
    return declared.build(**{c.name: [(blank | row)[c.name] for row in rows] for c in declared.columns})


class World:
    """Counts of a drawn file, the raw tables of them, and what a reader knows of how the counts add up."""

    def __init__(self, rng, few):
        def drawn(*size):
            counts = rng.integers(40, 400, size)
            return np.where(rng.random(size) < few, rng.integers(0, 9, size), counts)

        self.truth, self.sums, self.raw = {}, [], []
        """Counts by name; combinations of them that are zero."""
        by_race = drawn(len(ENDS), 3)
        if rng.random() < 0.5:  # a file where every count is large, but a few people are of no sex
            by_race = rng.integers(40, 400, by_race.shape)
        female = rng.binomial(by_race.sum(axis=1), 0.4)
        lacking = np.where(rng.random(len(ENDS)) < few, rng.integers(1, 5, len(ENDS)), 0)
        margins = {"race": by_race, "sex": np.column_stack([female, by_race.sum(axis=1) - female - lacking])}
        rows = []
        for attribute, groups in GROUPS.items():
            for k, group in enumerate(groups):
                ends = dict(zip(ENDS, map(int, margins[attribute][:, k]), strict=True))
                n, fallout = sum(ends.values()), ends["withdrawn"] + ends["incomplete"]
                for end, events in (ends | {"fallout": fallout}).items():
                    self.truth |= {("flow", attribute, group, end): events}
                    row = {"protected_attribute": attribute, "group": group, "outcome": end, "n": n, "events": events}
                    rows.append(row | {"value": events / n, "difference": 0.1})
                cell = ("flow", attribute, group)
                self.sums.append({(*cell, "fallout"): -1, (*cell, "withdrawn"): 1, (*cell, "incomplete"): 1})
        for end, number in zip(ENDS, lacking, strict=True):
            self.truth["lacking", end] = int(number)
            sides = {
                a: {("flow", a, group, end): sign for group in GROUPS[a]} for a, sign in (("race", 1), ("sex", -1))
            }
            self.sums.append(sides["race"] | sides["sex"] | {("lacking", end): -1})
        self.raw.append((FLOW, built(FLOW, rows)))
        self._reasons(drawn), self._places(drawn, rng), self._prices(drawn, rng, few), self._proxies(drawn)

    def _reasons(self, drawn):
        rows = []
        for attribute, groups in GROUPS.items():
            for group, firsts in zip(groups, drawn(len(groups), 3), strict=True):
                for code, first in zip("134", map(int, firsts), strict=True):
                    n = int(firsts.sum())
                    self.truth["reasons", attribute, group, code] = first
                    row = {"protected_attribute": attribute, "group": group, "reason_code": code, "n": n}
                    rows.append(row | {"events": first, "named": first, "value": first / max(n, 1)})
        self.raw.append((DENIAL_REASONS, built(DENIAL_REASONS, rows)))

    def _places(self, drawn, rng):
        rows, others = [], drawn(len(ATOMS))
        made = rng.integers(40, 400, len(ATOMS)) if rng.random() < 0.5 else drawn(len(ATOMS))
        for of, counts in (("applications", made + others), ("originations", made)):
            by_atom = dict(zip(ATOMS, map(int, counts), strict=True))
            self.truth |= {("places", of, atom): number for atom, number in by_atom.items()}
            for band, atoms in BANDS.items():
                events = sum(by_atom[atom] for atom in atoms)
                n = sum(by_atom.values()) - (by_atom["not known"] if band != "not known" else 0)
                row = {"of": of, "band": band, "n": n, "events": events, "share": events / max(n, 1), "peers": 9}
                rows.append(row | {"peers_n": 9000, "peers_events": 900, "peers_share": 0.1})
        for atom, number in zip(ATOMS, map(int, others), strict=True):
            self.truth["not made", atom] = number
            terms = {("places", "applications", atom): 1, ("places", "originations", atom): -1}
            self.sums.append(terms | {("not made", atom): -1})
        self.raw.append((PLACES, built(PLACES, rows)))

    def _prices(self, drawn, rng, few):
        """Loans with a price, by product: all loans of a group but a few or many."""
        rows = []
        for group in ("Asian", "Black"):
            made = self.truth["flow", "race", group, "originated"]
            without = min(int(rng.integers(1, 9) if rng.random() < 4 * few else rng.integers(12, 40)), made)
            shares = [0.97, 0.02, 0.01] if rng.random() < 4 * few else [0.5, 0.3, 0.2]
            loans = rng.multinomial(made - without, shares)
            self.truth["unpriced", group] = without
            named = {("flow", "race", group, "originated"): -1, ("unpriced", group): 1}
            self.sums.append(named | {("prices", group, product): 1 for product in PRODUCTS})
            row = {
                "protected_attribute": "race",
                "group": group,
                "outcome": "rate_spread",
                "n_reference": 5000,
                "rung": 1,
            }
            row |= {"estimator": "ols", "unit": "percentage points", "filled": 0.5, "filled_reference": 0.5}
            for product, n in zip(PRODUCTS, map(int, loans), strict=True):
                self.truth["prices", group, product] = n
                rows.append(row | {"product": product, "n": n, "n_reference": 1000, "value": 0.1})
            rows.append(row | {"product": "", "n": int(loans.sum()), "value": 0.1})
            self.truth["all prices", group] = int(loans.sum())
            terms = {("prices", group, product): 1 for product in PRODUCTS}
            self.sums.append(terms | {("all prices", group): -1})
        self.raw.append((PRICING, built(PRICING, rows)))

    def _proxies(self, drawn):
        counts = dict(zip(WAYS, map(int, drawn(4)), strict=True))
        counts["probable"] += 500
        rows = [{"outcome": way, "spelling": "none", "proxy": "bisg", "rows": n} for way, n in counts.items() if n]
        self.truth |= {("proxies", way): n for way, n in counts.items()} | {("known", ""): sum(counts.values())}
        self.sums.append({("proxies", way): 1 for way in WAYS} | {("known", ""): -1})
        row = {"proxy": "bisg", "reference": "white", "estimator": "regression", "n": counts["probable"]}
        gaps = [row | {"race": "black", "value": 0.1, "expected": 60.2}, row | {"race": "other", "expected": 3.2}]
        self.raw += [(PROXY_OUTCOMES, built(PROXY_OUTCOMES, rows)), (PROXY_MEASURES, built(PROXY_MEASURES, gaps))]


def told(tables, policy) -> Iterator[tuple[Terms, float, float]]:
    """Combinations of counts between two ends, as the published rows tell."""

    def read(name, number, share, terms, of):
        if row[name] is not None:
            yield terms, *learned(policy, row[name], never_small=False)
        if row["n"] is not None:
            yield of, *learned(policy, row["n"], never_small=False)
            if row[share] is not None:  # of people as printed, to three digits
                half = row["n"] * 0.0005 + policy.round_to / 2 * (policy.round_to > 1)
                yield terms, row["n"] * row[share] - half, row["n"] * row[share] + half

    def total(rows, *place):
        return {(*place, number): 1 for number in rows}

    for row in tables["flow"]:
        if row["outcome"] in (*ENDS, "fallout"):
            place = ("flow", row["protected_attribute"], row["group"])
            yield from read("events", "n", "value", {(*place, row["outcome"]): 1}, total(ENDS, *place))
    for row in tables["denial_reasons"]:
        place = ("reasons", row["protected_attribute"], row["group"])
        if row["reason_code"] in "134":
            yield from read("events", "n", "value", {(*place, row["reason_code"]): 1}, total("134", *place))
    for row in tables["places"]:
        if row["band"] in BANDS:
            known, place = ATOMS if row["band"] == "not known" else ATOMS[:-1], ("places", row["of"])
            yield from read("events", "n", "share", total(BANDS[row["band"]], *place), total(known, *place))
    for row in tables["pricing"]:
        if row["n"] is not None:
            name = ("prices", row["group"], row["product"]) if row["product"] else ("all prices", row["group"])
            yield {name: 1}, *learned(policy, row["n"], never_small=False)
    for row in tables["proxy_outcomes"]:
        if row["rows"] is not None:
            yield {("proxies", row["outcome"]): 1}, *learned(policy, row["rows"], never_small=False)
    for row in tables["proxy_measures"]:
        if row["n"] is not None:
            yield {("proxies", "probable"): 1}, *learned(policy, row["n"], never_small=False)


def solved(world, tables, profile) -> list[tuple]:
    """Small counts that a reader knows to the last person: the least and the largest that fits is one number."""
    policy, names = POLICIES[profile], list(world.truth)
    at = {name: k for k, name in enumerate(names)}

    def line(terms):
        out = np.zeros(len(names))
        for name, factor in terms.items():
            out[at[name]] = factor
        return out

    equal, upper, limits = [line(terms) for terms in world.sums], [], []
    known = [({("known", ""): 1}, world.truth["known", ""], world.truth["known", ""]), *told(tables, policy)]
    for terms, low, high in known:
        assert low <= sum(world.truth[name] * factor for name, factor in terms.items()) <= high, terms
        upper += [line(terms), -line(terms)]
        limits += [high, -low]
    won = []
    for name in names:
        if 0 < world.truth[name] < policy.smallest:
            ends = [
                linprog(sign * line({name: 1}), np.array(upper), limits, np.array(equal), np.zeros(len(equal)))
                for sign in (1, -1)
            ]
            largest = np.inf if ends[1].status == 3 else -ends[1].fun
            if ceil(ends[0].fun - 1e-6) == floor(largest + 1e-6 if np.isfinite(largest) else 10**9):
                won.append(name)
    return won


def attacked(profile, worlds=WORLDS):
    """What a reader wins of drawn files, and how many tables have numbers."""
    won, printed = [], defaultdict(int)
    for seed in range(worlds):
        world = World(np.random.default_rng(seed), few=(0.02, 0.1)[seed % 2])
        made = facts.tables(world.raw, fates_of(profile))
        tables = {declared.name: made[published(declared).name].to_pylist() for declared, _ in world.raw}
        won += solved(world, tables, profile)
        for name, rows in tables.items():
            count = {"proxy_outcomes": "rows"}.get(name, "n")
            printed[name] += any(row[count] is not None for row in rows if row.get("product") != "")
    return won, printed


@pytest.mark.parametrize("profile", ["public", "strict", "official"])
def test_sums_and_shares_of_published_tables_tell_no_small_count(profile):
    won, printed = attacked(profile)
    assert won == []
    assert all(number > 0 for name, number in printed.items() if name in ("flow", "places", "pricing")), printed
    assert any(number < WORLDS for number in printed.values()), "no table of these files is withheld"


def test_the_reader_wins_where_small_cells_alone_are_withheld(monkeypatch):
    """Under a pass that looks at one row at a time, so that the attack is one."""
    monkeypatch.setattr(
        facts, "_parts", lambda declared, rows, fates, _: [facts._row(declared, row, fates) for row in rows]
    )
    assert {name[0] for name in attacked("public")[0]} >= {"flow", "reasons", "places", "prices", "proxies"}


def test_the_reader_wins_where_differences_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(facts, "_disclosed", lambda *_: ())
    assert {name[0] for name in attacked("public")[0]} >= {"lacking", "not made"}


def test_the_reader_wins_where_two_tables_are_not_looked_at_together(monkeypatch):
    monkeypatch.setattr(facts, "_crossed", lambda *_: {})
    assert "unpriced" in {name[0] for name in attacked("public")[0]}
