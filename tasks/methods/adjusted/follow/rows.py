"""From followed rows to tables: flow, reasons, prices, plain comparisons, places."""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.source import Source
from schemas.audit.spec import Protected
from schemas.terms import DecisionMaker
from tasks.ingest.vintages.peers import beside_peers, kept_by_own_column
from tasks.methods.adjusted.adjust.rows import control, table_of
from tasks.methods.adjusted.algorithm import practice
from tasks.methods.adjusted.algorithm import pricing as prices
from tasks.methods.adjusted.algorithm.design import Block, Control
from tasks.methods.adjusted.follow.settings import FollowSettings
from tasks.methods.adjusted.tables import (
    DENIAL_REASONS,
    DISPARITIES,
    FELL_OUT,
    FLOW,
    FLOW_OUTCOMES,
    PLACES,
    PRICE_FLAGS,
    PRICE_UNITS,
    PRICES,
    PRICING,
)
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.preprocessing.columns import Grouped, groups_of

LENDERS_DECISIONS = str(DecisionMaker.LENDER)
NO_APPLICATION: Final = ("purchased", "left_out", "copied")
"""Ends of rows that are no applications."""
REASONS: Final = {
    **{"1": "debt-to-income ratio", "2": "employment history", "3": "credit history", "4": "collateral"},
    **{"5": "insufficient cash", "6": "unverifiable information", "7": "application incomplete"},
    **{"8": "mortgage insurance denied", "9": "other", "1111": "exempt from reporting", "none": "no reason given"},
}
PURPOSES: Final = {
    **{"1": "purchase", "2": "improvement", "3": "refinancing", "31": "refinancing", "32": "cash-out refinancing"},
    **{"4": "other purpose", "5": "no purpose"},
}
LIENS: Final = {"1": "first lien", "2": "subordinate lien", "3": "no lien"}
PRODUCT_COLUMNS: Final = ("loan_purpose_raw", "loan_purpose", "lien_status", "loan_type", "open_end_line_of_credit")
MIDDLES: Final = {"<20%": 10.0, "20%-<30%": 25.0, "30%-<36%": 33.0, "50%-60%": 55.0, ">60%": 65.0}
"""Percent that stands for a band of the debt ratio; the last one is open."""
MONTH: Final = re.compile(r"(\d{4})-(0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?", re.ASCII)
NOT_KNOWN: Final = "not known"
"""The product of a loan without purpose, lien and line: an empty name is that of all products."""
BY_SCORE: Final = "approval by score"


@dataclass(frozen=True)
class Followed:
    """What tables are made of."""

    settings: FollowSettings
    applications: pa.Table
    memberships: pa.Table
    decisions: pa.Table
    flows: pa.Table
    whys: pa.Table
    loans: pa.Table
    """That were made, of the applications or not."""
    copied: tuple[int, ...]
    """Places in the source of rows that are copies of others."""
    rng: np.random.Generator

    @cached_property
    def made(self) -> pa.Table:
        """Loans with an application, in the order of ``controls``."""
        ids = self.applications["row_id"].combine_chunks()
        return self.loans.filter(pc.is_in(self.loans["row_id"], value_set=ids))

    @cached_property
    def controls(self) -> pa.Table:
        """Their applications."""
        at = pc.index_in(self.made["row_id"].combine_chunks(), self.applications["row_id"].combine_chunks())
        return self.applications.take(at)

    @cached_property
    def groups(self) -> Mapping[str, Grouped]:
        """Of the loans."""
        return groups_of(self.memberships, self.made["row_id"].to_numpy(zero_copy_only=False), self.settings.protected)

    def number(self, name: str) -> Floats:
        """``(loans,)`` a column of numbers; NaN where it is missing, exempt, or not in the source."""
        if name not in self.made.column_names:
            return np.full(self.made.num_rows, math.nan)
        numbers: Floats = self.made[name].to_numpy(zero_copy_only=False).astype(np.float64)
        return numbers

    def coded(self, name: str) -> "tuple[Ints, np.ndarray[Any, Any]]":
        """``(loans,)`` number of each loan's text in a column of codes, and these texts; empty where it is missing."""
        if name not in self.made.column_names:
            return np.zeros(self.made.num_rows, np.int32), np.array([""], dtype=object)
        cells = self.made[name].fill_null("").combine_chunks().dictionary_encode()
        codes: Ints = cells.indices.to_numpy(zero_copy_only=False)
        return codes, cells.dictionary.to_numpy(zero_copy_only=False)

    def text(self, name: str) -> "np.ndarray[Any, Any]":
        """``(loans,)`` a column of codes; empty where it is missing."""
        codes, texts = self.coded(name)
        return texts[codes]

    def listed(self, name: str, column: str) -> Bools:
        """``(loans,)`` whether a cell lists a column, with commas between."""
        codes, texts = self.coded(name)
        return np.array([column in text.split(",") for text in texts], np.bool_)[codes]


# --------------------------------------------------------------------------------------------------------------------
# Counts: how applications ended, and why they were denied.


def flow(followed: Followed) -> pa.Table:
    """In the shape of ``FLOW``."""
    counts = _counts(followed.flows, "outcome", "n")
    rows = []
    for p in followed.settings.protected:
        applied = {group: _applied(of_group) for group, of_group in counts[p.name].items()}
        ends = {
            group: of_group | {"fallout": sum(of_group.get(outcome, 0) for outcome in FELL_OUT)}
            for group, of_group in sorted(counts[p.name].items())
        }
        for group, of_group in ends.items():
            for outcome in FLOW_OUTCOMES:
                events, theirs = (of.get(outcome, 0) for of in (of_group, ends.get(p.reference, {})))
                identity = _identity(p.name, group) | {"outcome": outcome, "n": applied[group], "events": events}
                if outcome in NO_APPLICATION:
                    rows += [identity] if events else []
                    continue
                if not (events or theirs):
                    continue
                reference = None if group == p.reference else (theirs, applied.get(p.reference, 0))
                rows.append(
                    identity | _share(practice.share_of(events, applied[group], reference, followed.settings.level))
                )
    return table_of(FLOW, rows)


def reasons(followed: Followed) -> pa.Table:
    """In the shape of ``DENIAL_REASONS``."""
    first, named = _counts(followed.whys, "reason", "first"), _counts(followed.whys, "reason", "named")
    rows = []
    for p in followed.settings.protected:
        denied = {group: sum(of_group.values()) for group, of_group in first[p.name].items()}
        reference = {code: n for code, n in first[p.name].get(p.reference, {}).items() if code != "none"}
        tests = {
            group: practice.mix_test({code: n for code, n in of_group.items() if code != "none"}, reference)
            for group, of_group in sorted(first[p.name].items())
            if group != p.reference and p.judges(group)
        }
        adjusted = dict(zip(tests, practice.holm([p_value for p_value, _ in tests.values()]), strict=True))
        for group, of_group in sorted(first[p.name].items()):
            p_value, why = tests.get(group, (math.nan, ""))
            for code in sorted(named[p.name][group], key=lambda code: (not code.isdigit(), code.zfill(4))):
                theirs = first[p.name].get(p.reference, {}).get(code, 0), denied.get(p.reference, 0)
                share = practice.share_of(
                    of_group.get(code, 0),
                    denied[group],
                    None if group == p.reference else theirs,
                    followed.settings.level,
                )
                rows.append(
                    _identity(p.name, group)
                    | {"reason_code": code, "words": REASONS.get(code, code), "named": named[p.name][group][code]}
                    | {"n": denied[group], "events": of_group.get(code, 0), **_share(share)}
                    | {"p": p_value, "p_holm": adjusted.get(group, math.nan), "reason": why}
                )
    return table_of(DENIAL_REASONS, rows)


def _counts(rows: pa.Table, name: str, count: str) -> dict[str, dict[str, dict[str, int]]]:
    """Attribute -> group -> value -> rows."""
    out: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows.to_pylist():
        out[row["attribute"]][row["group"]][row[name]] = row[count]
    return out


def _applied(ends: Mapping[str, int]) -> int:
    return sum(n for outcome, n in ends.items() if outcome not in NO_APPLICATION)


def _identity(attribute: str, group: str) -> dict[str, Any]:
    return {"decision_maker": LENDERS_DECISIONS, "protected_attribute": attribute, "group": group}


def _share(share: practice.Share) -> dict[str, Any]:
    names = ("low", "high", "difference", "difference_low", "difference_high")
    return {"value": share.value, **{name: getattr(share, name) for name in names}}


# --------------------------------------------------------------------------------------------------------------------
# Prices of loans.


def pricing(followed: Followed) -> pa.Table:
    """In the shape of ``PRICING``; without a loan, or a price, a row of each group has the reason."""
    rows: list[dict[str, Any]] = []
    settings = followed.settings
    outcomes = {name: followed.number(name) for name in PRICES} | {"lender_credits": credits_less(followed)}
    amount = followed.number("loan_amount_usd")
    with np.errstate(divide="ignore", invalid="ignore"):
        outcomes |= {name: 100 * outcomes[name] / np.where(amount > 0, amount, np.nan) for name in PRICES[1:]}
    remarks = [
        (remark, {outcome: followed.listed(name, outcome) for outcome in outcomes})
        for remark, name in ((prices.EXEMPT, "exempt"), (prices.UNREADABLE, "unreadable"))
    ]
    blocks, cluster = price_blocks(followed), price_clusters(followed)
    products, names = products_of(followed)
    for p in settings.protected:
        grouped = followed.groups[p.name]
        is_compared = bool(followed.made.num_rows) and grouped.compared
        lent = {grouped.groups[number] for number in np.unique(grouped.group)} if is_compared else set()
        rows += without_loans(p, followed, lent)
        if not is_compared:
            continue
        for outcome, price in outcomes.items():
            if outcome != "rate_spread" and not np.isfinite(price).any():
                continue
            loans = prices.Loans(price, **vars(grouped), blocks=blocks, cluster=cluster)
            form, level, fewest = settings.ladder.form, settings.level, settings.fewest
            of_all = prices.price_ladder(loans, form, level, fewest, quantiles=outcome == "rate_spread")
            for remark, concerned in remarks:
                of_all = [prices.with_remark(effect, loans, remark, concerned[outcome]) for effect in of_all]
            for effect in of_all:
                row = _price_row(p.name, grouped, outcome, effect)
                rows.append(row | {"primary": outcome == "rate_spread" and _is_judged(effect)})
            if outcome == "rate_spread" and len(names) > 1:
                inside = replace(loans, blocks=tuple(b for b in blocks if b.name != prices.PRODUCT))
                for number, effect in prices.by_product(inside, products, form, level, fewest):
                    rows.append(_price_row(p.name, grouped, outcome, effect) | {"product": names[number]})
        rows += flag_rows(followed, p, grouped, outcomes["rate_spread"], blocks, cluster)
    return table_of(PRICING, rows)


def credits_less(followed: Followed) -> Floats:
    """``(loans,)`` lender credits as a price, so below zero: who gets fewer pays more. Blank is no credit."""
    amounts = followed.number("lender_credits")
    if not np.isfinite(amounts).any():
        return amounts
    unknown = followed.listed("exempt", "lender_credits") | followed.listed("unreadable", "lender_credits")
    return np.where(np.isfinite(amounts) | unknown, 0.0 - amounts, 0.0)


def without_loans(p: Protected, followed: Followed, lent: Collection[str]) -> Iterator[dict[str, Any]]:
    """A row for each group without a price: of it, or of the reference group, no loan was made (``lent``: groups)."""
    ended = _counts(followed.flows, "outcome", "n")[p.name]
    for group in sorted(ended):
        if group != p.reference and group not in lent and p.judges(group):
            reason = f"{prices.NO_LOANS}: the file has no loan of the group beside those of the reference group"
            effect = prices.PriceEffect(0, (), 0, "ols", primary=True, reason=reason)
            nobody = Grouped(np.zeros(0, np.int32), (group,), -1)
            yield _price_row(p.name, nobody, "rate_spread", effect) | {"primary": True}


def _is_judged(effect: prices.PriceEffect) -> bool:
    """Whether it is of the judged rung, or the only row of a group that cannot be compared."""
    refused = not math.isfinite(effect.value) and effect.rung == 0 and effect.estimator == "ols" and effect.reason
    return effect.primary or bool(refused)


def _price_row(attribute: str, grouped: Grouped, outcome: str, effect: prices.PriceEffect) -> dict[str, Any]:
    """A row about loans of all products, not judged."""
    names = ("rung", "estimator", "value", "low", "high", "se", "df", "unseen", "rv", "n", "n_reference")
    row = {name: getattr(effect, name) for name in (*names, "filled", "filled_reference", "reason")}
    unit = PRICE_UNITS[outcome != "rate_spread"]
    identity = _identity(attribute, grouped.groups[effect.group]) | {"unit": unit}
    return identity | row | {"outcome": outcome, "product": "", "primary": False, "blocks": " + ".join(effect.blocks)}


def price_blocks(followed: Followed) -> tuple[Block, ...]:
    """The product, the blocks of the ladder with the term of the loan, and last what holds discretion."""
    settings, applications = followed.settings, followed.controls
    product_names = [name for name in PRODUCT_COLUMNS if name in followed.made.column_names]
    if "loan_purpose_raw" in product_names:
        product_names.remove("loan_purpose")
    controls = [_codes(name, *followed.coded(name)) for name in product_names]
    codes, months = followed.coded("application_month")
    if any(months):
        quarters = np.array([quarter_of(month) for month in months], dtype=object)
        of_month, names = pd.factorize(quarters)
        controls.append(_codes("application quarter", of_month[codes], names))
    blocks = [Block(prices.PRODUCT, tuple(c for c in controls if np.isfinite(c.values).any()))]
    in_product = {*product_names, "loan_purpose"}
    with_flag = {name for block in settings.blocks for name in block.columns}
    for block in settings.blocks:
        names = [name for name in block.columns if name not in in_product]
        members = [control(applications, name, settings.columns[name]) for name in names]
        if (
            block is settings.blocks[0]
            and "loan_term" not in with_flag
            and np.isfinite(followed.number("loan_term")).any()
        ):
            members.append(Control("loan_term", "number", followed.number("loan_term")))
        if members := [c for c in members if np.isfinite(c.values).any()]:
            blocks.append(Block(block.name, tuple(members)))
    if settings.through:
        members = [control(applications, name, settings.columns[name]) for name in settings.through]
        blocks.append(Block(prices.DISCRETION, tuple(members)))
    return tuple(blocks)


def quarter_of(month: str) -> str:
    """``2024 quarter 2`` of ``2024-05`` or of a day in it; empty of anything else."""
    if (parts := MONTH.fullmatch(month)) is None:
        return ""
    return f"{parts[1]} quarter {(int(parts[2]) - 1) // 3 + 1}"


def _codes(name: str, codes: Ints, texts: "np.ndarray[Any, Any]") -> Control:
    """A category by the number of each loan's text, which may be empty: these loans have none."""
    is_named = texts != ""
    number = np.where(is_named, np.cumsum(is_named) - 1, np.nan)
    return Control(name, "category", number[codes], tuple(map(str, texts[is_named])))


def price_clusters(followed: Followed) -> Ints | None:
    """``(loans,)`` cluster of each loan, one without a value its own; None where there is a single one."""
    name = followed.settings.cluster
    if name is None or name not in followed.controls.column_names:
        return None
    codes, clusters = pd.factorize(followed.controls[name].to_pandas())
    if len(clusters) < 2:
        return None
    alone = codes < 0
    numbered: Ints = codes.astype(np.int32)
    numbered[alone] = len(clusters) + np.arange(int(alone.sum()), dtype=np.int32)
    return numbered


def products_of(followed: Followed) -> tuple[Ints, list[str]]:
    """``(loans,)`` number of the product, and the names of products."""
    purpose = "loan_purpose_raw" if "loan_purpose_raw" in followed.made.column_names else "loan_purpose"
    coded = [followed.coded(name) for name in (purpose, "lien_status", "open_end_line_of_credit")]
    combined = np.ravel_multi_index([codes for codes, _ in coded], [len(texts) for _, texts in coded])
    kinds, of_loan = np.unique(combined, return_inverse=True)
    places = np.unravel_index(kinds, [len(texts) for _, texts in coded])
    kind_names = [
        product_name(*map(str, kind))
        for kind in zip(*(t[at] for (_, t), at in zip(coded, places, strict=True)), strict=True)
    ]
    distinct, number = np.unique(np.array(kind_names, dtype=object), return_inverse=True)
    return number.astype(np.int32)[of_loan], list(map(str, distinct))


def product_name(purpose: str, lien: str, line: str) -> str:
    """The product of a loan with these codes, in words."""
    parts = PURPOSES.get(purpose, purpose), LIENS.get(lien, lien), "line of credit" if line == "1" else ""
    return ", ".join(filter(None, parts)) or NOT_KNOWN


def flag_rows(
    followed: Followed,
    p: Protected,
    grouped: Grouped,
    spread: Floats,
    blocks: tuple[Block, ...],
    cluster: Ints | None,
) -> Iterator[dict[str, Any]]:
    """Loans that are higher-priced, or high-cost, by a logit, as denials are."""
    settings = followed.settings
    covered = followed.text("open_end_line_of_credit") != "1"
    covered &= followed.text("occupancy") != "2"
    covered &= followed.text("business_or_commercial_purpose") != "1"
    subordinate, jumbo = followed.text("lien_status") == "2", followed.text("conforming_loan_limit") == "NC"
    dear = prices.higher_priced(spread, subordinate, jumbo, covered)
    hoepa = followed.text("hoepa_status")
    cost = np.where(hoepa == "1", 1.0, np.where(hoepa == "2", 0.0, math.nan))
    for name, flag in zip(PRICE_FLAGS, (dear, cost), strict=True):
        if np.isfinite(flag).any():
            loans = prices.Loans(flag, **vars(grouped), blocks=blocks, cluster=cluster)
            sizes = settings.fewest, settings.ladder.minimum_events
            for effect in prices.flag_ladder(loans, settings.ladder.form, settings.level, *sizes):
                yield _price_row(p.name, grouped, name, effect) | {"unit": PRICE_UNITS[2]}


# --------------------------------------------------------------------------------------------------------------------
# Plain comparisons: standardised differences, ratios by quantile of the score, odds of denial.


def disparities(followed: Followed) -> pa.Table:
    """In the shape of ``DISPARITIES``."""
    settings, rows = followed.settings, list[dict[str, Any]]()
    ids = followed.applications["row_id"].to_numpy(zero_copy_only=False)
    groups = groups_of(followed.memberships, ids, settings.protected)
    denied = ~followed.applications["favourable"].to_numpy(zero_copy_only=False)
    score = scores_of(followed)
    scored = np.zeros(len(ids), np.bool_) if score is None else np.isfinite(score)
    approvals = [] if score is None else [practice.approved_by_score(score, share) for share in practice.SHARES]
    numbers = [("score", "better", score), ("debt_to_income_ratio", "worse", debt_ratios(followed))]
    for p in settings.protected:
        grouped = groups[p.name]
        if not grouped.compared:
            continue
        reference = grouped.group == grouped.reference
        for number, group in enumerate(grouped.groups):
            if number == grouped.reference:
                continue
            members = grouped.group == number
            of_group = _identity(p.name, group)
            for name, higher, values in numbers:
                if values is not None:
                    smd = practice.standardised_difference(values, members, reference, settings.level)
                    rows.append(of_group | _standardised(name, higher, smd))
            counts = [practice.counted(approved, members & scored, reference & scored) for approved in approvals]
            for share, ratio in zip(practice.SHARES, practice.impact_ratios(counts, settings.level), strict=False):
                rows.append(of_group | _ratio("adverse_impact_ratio", BY_SCORE, "better", share, ratio))
            odds = practice.odds_ratio(practice.counted(denied, members, reference), settings.level)
            rows.append(of_group | _ratio("odds_ratio", "denial", "worse", None, odds))
        spreads, of_loans = followed.number("rate_spread"), followed.groups[p.name]
        theirs = of_loans.group == of_loans.reference
        for number, group in enumerate(of_loans.groups if np.isfinite(spreads).any() and of_loans.compared else ()):
            if number != of_loans.reference:
                smd = practice.standardised_difference(spreads, of_loans.group == number, theirs, settings.level)
                rows.append(_identity(p.name, group) | _standardised("rate_spread", "worse", smd))
    return table_of(DISPARITIES, rows)


def scores_of(followed: Followed) -> Floats | None:
    """``(applications,)`` the model's score where it was made on rows that it was not fitted to; None without any."""
    is_model = (pc.field("decision_maker") == str(DecisionMaker.MODEL)) & pc.field("explained")
    model = followed.decisions.filter(is_model)
    if not model.num_rows or not pc.any(pc.is_valid(model["score"])).as_py():
        return None
    at = pc.index_in(followed.applications["row_id"].combine_chunks(), model["row_id"].combine_chunks())
    scores: Floats = model["score"].combine_chunks().take(at).to_numpy(zero_copy_only=False).astype(np.float64)
    return scores


def debt_ratios(followed: Followed) -> Floats | None:
    """``(applications,)`` percent, of a band its middle; None where the spec reads no such column."""
    for name in ("debt_to_income_pct", "debt_to_income_ratio"):
        if name in followed.applications.column_names:
            cells = followed.applications[name].to_pandas().replace(MIDDLES)
            ratios: Floats = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=math.nan)
            return ratios
    return None


def _standardised(name: str, higher: str, smd: practice.Standardised) -> dict[str, Any]:
    row = {"measure": "smd", "of": name, "higher": higher, "share": None}
    counts = {"n": smd.n, "events": None, "n_reference": smd.n_reference, "events_reference": None}
    return row | counts | {"value": smd.value, "low": smd.low, "high": smd.high, "reason": smd.reason}


def _ratio(measure: str, of: str, higher: str, share: float | None, ratio: practice.Ratio) -> dict[str, Any]:
    row = {"measure": measure, "of": of, "higher": higher, "share": share, "n": ratio.n, "events": ratio.events}
    ends = {"value": ratio.value, "low": ratio.low, "high": ratio.high, "reason": ratio.reason}
    return row | ends | {"n_reference": ratio.reference_n, "events_reference": ratio.reference_events}


# --------------------------------------------------------------------------------------------------------------------
# Places, of HMDA alone: other tables name no tracts with their minority share.


def places(followed: Followed) -> pa.Table:
    """In the shape of ``PLACES``; of a lender of a vintage with its peers in that vintage."""
    source = followed.settings.source
    if source.kind != "hmda" or kept_by_own_column(source):
        return PLACES.empty()
    return places_of(source, None, followed.settings.level, followed.rng, followed.copied)


def places_of(
    source: Source, peers_file: Path | None, level: float, rng: np.random.Generator, copied: tuple[int, ...] = ()
) -> pa.Table:
    """The lender of a source with its peers, as the table ``places``; empty where the source has several lenders.

    Args:
        source: of HMDA.
        peers_file: HMDA rows of others, or of all; the vintage that the source is a part of if None.
        level: of the intervals.
        rng: draws tracts.
        copied: as ``beside_peers`` takes them.

    Raises:
        EvenhandError: as ``beside_peers`` says.
    """
    market = beside_peers(source, peers_file, copied)
    if market is None:
        return PLACES.empty()
    reason = practice.NO_PEERS if market.peers is None else "" if market.peers else practice.NO_PEER
    return table_of(PLACES, list(place_rows(market.tracts, market.peers or 0, reason, level, rng)))


def place_rows(
    counts: pa.Table, peers: int, reason: str, level: float, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Rows of ``PLACES`` from counts by tract."""
    numbers = {name: counts[name].to_numpy(zero_copy_only=False) for name in counts.column_names if name != "tract"}
    minority = np.where(counts["tract"].is_valid().to_numpy(zero_copy_only=False), numbers["minority"], np.nan)
    for what in ("applications", "originations"):
        of = practice.Tracts(
            minority.astype(float), numbers["homes"].astype(float), numbers[what], numbers[f"peer_{what}"]
        )
        for share in practice.shares(of, level, rng, reason):
            shares = {"share": share.share, "peers_share": share.peers_share, "state": share.state}
            yield vars(share) | shares | {"of": what, "peers": peers}
