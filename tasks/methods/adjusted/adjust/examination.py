"""The examination of the judged effect: all applications as arrays, and its results as tables."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.column import ColumnSpec
from schemas.audit.spec import Protected
from schemas.blocks import DATES, is_place, is_through, words_of
from schemas.tables.readings import (
    CARRIERS,
    CHOICES,
    JUDGED_EFFECTS,
    LEFT_OUT,
    NO_DECISION,
    PARTS,
    READINGS,
    WRITTEN_BY_ADJUST,
)
from schemas.terms import Kind
from tasks.methods.adjusted.adjust.rows import Case, control, judged
from tasks.methods.adjusted.adjust.settings import AdjustSettings, Filled, one_sided
from tasks.methods.adjusted.algorithm.choices import Chosen
from tasks.methods.adjusted.algorithm.choices import choices as every_choice
from tasks.methods.adjusted.algorithm.design import Applications, Block, Control
from tasks.methods.adjusted.algorithm.detection import NORMAL_95, telling
from tasks.methods.adjusted.algorithm.estimators import POOR, Effect
from tasks.methods.adjusted.algorithm.examined import Examined, Files, Rules, approval_error, are_codes
from tasks.methods.adjusted.algorithm.expected import LimitRule
from tasks.methods.adjusted.algorithm.ladder import Ladder, primary_rung
from tasks.methods.adjusted.algorithm.parts import Rules as PartRules
from tasks.methods.adjusted.algorithm.parts import Split, split_of_number
from tasks.numerics.arrays import Bools, Ints
from tasks.preprocessing.columns import groups_of, without_copies

FEWEST_VALUES = 6
"""Of a column whose rows may hang together."""
_DAY = re.compile(r"^(\d{4})-(\d{2})(?:-\d{2})?")
MONTHS, QUARTERS, HALVES = 12, 3, 6


# --------------------------------------------------------------------------------------------------------------------
# Input: applications of the lender, with a decision and without, and the ways to part them.


@dataclass(frozen=True)
class Sample:
    """The applications of an audit: those with a decision, without copies, and those without one."""

    applications: pa.Table
    abandoned: pa.Table
    """Without a decision; of the same columns."""
    memberships: pa.Table
    """Groups of all of them."""
    sided: Mapping[str, Filled]
    """Controls that the decision sets, with the share of each side that has a value."""

    @classmethod
    def of(
        cls,
        applications: pa.Table,
        copied_rows: pa.Table,
        memberships: pa.Table,
        abandoned: pa.Table,
        abandoned_memberships: pa.Table,
        settings: AdjustSettings,
    ) -> "Sample":
        """From the tables that the stage reads."""
        applications = without_copies(applications, copied_rows)
        everybody = memberships
        if len(abandoned):  # the groups of refused rows stand in both tables
            decided = pc.is_in(memberships["row_id"], value_set=applications["row_id"].combine_chunks())
            everybody = pa.concat_tables([memberships.filter(decided), abandoned_memberships])
        return cls(applications, abandoned, everybody, one_sided(applications, settings.columns))


@dataclass(frozen=True)
class Examination:
    """What is examined of the lender's decisions and one protected attribute, with the settings for it."""

    case: Case
    settings: AdjustSettings
    """With the name of the primary rung."""
    rung: int
    """The primary one."""
    files: Files
    cluster: str | None
    """Column of the clusters."""
    rules: Rules

    @classmethod
    def of(cls, case: Case, sample: Sample, settings: AdjustSettings) -> "Examination | None":
        """None where the data have no column of the block that was to be judged."""
        of_case = judged(settings, case)
        rung = primary_rung(case.applications, of_case.ladder)
        if rung is None:
            return None
        p = next(p for p in settings.protected if p.name == case.attribute)
        files, cluster = files_of(sample, p, of_case)
        return cls(case, of_case, rung, files, cluster, rules_of(settings))

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks that are adjusted for."""
        return tuple(block.name for block in self.case.applications.blocks[: self.rung])

    @property
    def identity(self) -> dict[str, str]:
        """The decision maker and the protected attribute."""
        return {"decision_maker": self.case.decision_maker, "protected_attribute": self.case.attribute}

    def rng(self) -> np.random.Generator:
        """Draws the critical value of the parts: the same whenever the same attribute is examined."""
        return np.random.default_rng([self.settings.seed, crc32(f"parts|{self.case.attribute}".encode())])


def rules_of(settings: AdjustSettings) -> Rules:
    """The settings of the examination."""
    limits = settings.limits
    parts = PartRules(settings.part_limit or 0.0, settings.minimum_n, settings.draws)
    return Rules(
        LimitRule(limits.points, limits.times, limits.fifth, limits.least),
        None if settings.part_limit is None else parts,
        settings.undecided,
        settings.ladder.minimum_events,
        settings.ladder.terms == "selected" and settings.ladder.form == "squared",
    )


def files_of(sample: Sample, p: Protected, settings: AdjustSettings) -> tuple[Files, str | None]:
    """All applications of the lender with the groups of one attribute, and the column of their clusters."""
    applications, abandoned, memberships = sample.applications, sample.abandoned, sample.memberships
    left_out = {*sample.sided, *one_sided(applications, settings.splits)}
    names = [name for name in applications.column_names if name not in ("source_row", "outcome", "exempt")]
    rows = pa.concat_tables([applications.select(names), abandoned.select(names)]) if len(abandoned) else applications
    undecided = np.arange(rows.num_rows) >= applications.num_rows
    denied = ~rows["favourable"].to_numpy() & ~undecided
    groups = groups_of(memberships, rows["row_id"].to_numpy(), settings.protected)
    grouped = groups[p.name]
    controls = []
    for block in settings.blocks:
        controls += [control(rows, name, settings.columns[name]) for name in block.columns if name not in left_out]
        if block.name == settings.primary:
            break
    if settings.primary not in {block.name for block in settings.blocks}:
        controls = []
    judged = {c.name for c in controls}
    places = [control(rows, n, column) for n, column in settings.places.items() if n not in judged]
    splits: list[Split] = []
    if settings.part_limit is not None:
        by_columns = [_splits(rows, n, c) for n, c in settings.splits.items() if n not in left_out]
        splits = [split for of_column in by_columns for split in of_column]
        splits = _without_telling(splits, denied, undecided)
        for other in settings.protected:
            if other.name != p.name and set(other.columns).isdisjoint(p.columns):
                splits.append(Split(other.name, groups[other.name].groups, groups[other.name].group, attribute=True))
    cluster, column = _clusters(rows, settings)
    splits = [
        replace(split, office=is_through(split.column) and split.column != column and len(split.levels) < FEWEST_VALUES)
        for split in splits
    ]
    files = Files(
        denied,
        undecided,
        grouped.group,
        grouped.groups,
        grouped.reference,
        tuple(controls),
        tuple(places),
        frozenset(settings.through),
        tuple(splits),
        cluster,
    )
    return files, column


def _splits(rows: pa.Table, name: str, column: ColumnSpec) -> list[Split]:
    """The ways in which one column parts the applications: quarters and halves of a date, thirds, levels."""
    if not DATES.isdisjoint(words_of(name)) and (times := _times(rows, name, column)):
        return times
    coded: Control = control(rows, name, column)
    if column.type is Kind.CONTINUOUS and is_place(name) and are_codes(coded.values):
        codes, at = np.unique(np.nan_to_num(coded.values, nan=-1.0), return_inverse=True)
        names = tuple(f"{code:.0f}" for code in codes)
        return [Split(name, names, np.where(np.isfinite(coded.values), at, -1).astype(np.int32))]
    if column.type is Kind.CONTINUOUS:
        finite = coded.values[np.isfinite(coded.values)]
        return [split_of_number(name, coded.values)] if len(np.unique(finite[:1000])) > 1 else []
    if column.type is Kind.BINARY:
        levels = column.order or tuple(sorted(rows[name].to_pandas().dropna().unique()))
    else:
        levels = coded.categories
    code = np.where(np.isfinite(coded.values), coded.values, -1).astype(np.int32)
    return [Split(name, tuple(map(str, levels)), code)]


def _times(rows: pa.Table, name: str, column: ColumnSpec) -> list[Split]:
    """Quarters and half years of a month, 1 to 12, or of a date such as 2025-03-31; none of anything else."""
    if column.type is Kind.CONTINUOUS:
        month = rows[name].to_numpy().astype(np.float64)
        valid = np.isfinite(month)
        if not valid.any() or not np.isin(month[valid], np.arange(1, MONTHS + 1)).all():
            return []
        year = np.full(len(month), "", dtype=object)
    else:
        matched = rows[name].to_pandas().astype("string").str.extract(_DAY)
        valid = matched[0].notna().to_numpy()
        if valid.mean() < 1 / 2:
            return []
        month = pd.to_numeric(matched[1]).to_numpy(dtype=float, na_value=np.nan)
        year = np.where(valid, matched[0].fillna("").to_numpy(dtype=object) + " ", "")
    out = []
    for length, word in ((QUARTERS, "quarter"), (HALVES, "half year")):
        first = (np.nan_to_num(month, nan=1.0) - 1) // length * length + 1
        labels = np.array(
            [f"{y}months {f:.0f} to {f + length - 1:.0f}" for y, f in zip(year, first, strict=True)], dtype=object
        )
        levels, places = np.unique(labels, return_inverse=True)
        code = np.where(valid, places, -1).astype(np.int32)
        out.append(Split(f"{name} ({word})", tuple(levels.tolist()), code, time=length == QUARTERS))
    return out


def _without_telling(splits: list[Split], denied: Bools, undecided: Bools) -> list[Split]:
    """Splits without those that determine the decision, such as a reason of denial."""
    decided = ~undecided
    controls = tuple(
        Control(split.column, "category", np.where(split.code < 0, np.nan, split.code)[decided].astype(np.float64))
        for split in splits
    )
    names = ("every",)
    every = Applications(denied[decided], np.zeros(int(decided.sum()), np.int32), names, 0, (Block("", controls),))
    determine = telling(every)
    return [split for split in splits if split.column not in determine]


def _clusters(rows: pa.Table, settings: AdjustSettings) -> tuple[Ints | None, str | None]:
    """Clusters of the first column with enough values; a row without one is a single cluster."""
    for name in settings.clusters:
        codes, values = pd.factorize(rows[name].to_pandas())
        if len(values) >= FEWEST_VALUES or settings.ladder.cluster == name:
            alone = codes < 0
            numbered = codes.astype(np.int32)
            numbered[alone] = len(values) + np.arange(int(alone.sum()), dtype=np.int32)
            return numbered, name
    return None, None


# --------------------------------------------------------------------------------------------------------------------
# Output: the effect as a row of the ladder, and the tables that states and findings are read from.


def effects_of(of: Examination, results: Iterable[Examined], ladder: Ladder) -> Iterator[Effect]:
    """The judged effects as rows of the ladder; none of a group that only applications without a decision have.

    With those applications there may be more groups than the ladder numbers, so that groups are matched by name.
    """
    numbers = {name: number for number, name in enumerate(of.case.applications.groups)}
    for examined in results:
        number = numbers.get(of.files.groups[examined.group])
        if number is not None:
            yield _effect_of(replace(examined, group=number), of.rung, of.blocks, ladder)


def _effect_of(examined: Examined, rung: int, blocks: tuple[str, ...], ladder: Ladder) -> Effect:
    """The judged effect as a row of the ladder, with the support of its rung."""
    support = {(row.rung, row.group): row.comparable for row in ladder.support}.get((rung, examined.group), math.nan)
    base = Effect(
        *(rung, blocks, examined.group, "expected", "own", math.nan, math.nan, math.nan, math.nan),
        n=examined.n,
        events=examined.events,
        support=support,
    )
    if examined.effect is None or examined.judged is None:
        return replace(base, reason=examined.reason)
    value, error = examined.effect.value, examined.judged.plain
    half = error.quantile(0.025) * error.se
    poor = f"poor_support: {support:.0%} of the group have a propensity in [0.05, 0.95] at equal group sizes"
    notes = [f"terms added: {', '.join(examined.terms)}" if examined.terms else "", poor if support < POOR else ""]
    reason = "; ".join(note for note in notes if note)
    return replace(base, value=value, low=value - half, high=value + half, se=error.se, df=error.df, reason=reason)


def unjudged(ladder: Ladder) -> Iterator[Effect]:
    """Rows of the judged effect where the data have no column of the block that was to be judged."""
    of_groups = {effect.group: effect for effect in ladder.effects if effect.reason.startswith("no_primary")}
    for effect in of_groups.values():
        yield replace(effect, estimator="expected", average_over="own")


def tables_of(
    identity: Mapping[str, str],
    files: Files,
    results: Sequence[Examined],
    cluster: str | None,
    points: float,
    chosen: Sequence[Chosen] = (),
) -> dict[str, list[dict[str, Any]]]:
    """Rows by the name of their table.

    Args:
        identity: decision maker and protected attribute.
        files: what was examined.
        results: of each group.
        cluster: column whose rows hang together.
        points: the limit where denials and approvals are common.
        chosen: the effects by other choices.
    """
    numbers = {choice: number for number, choice in enumerate(every_choice(), 1)}
    out: dict[str, list[dict[str, Any]]] = {table.name: [] for table in WRITTEN_BY_ADJUST}
    for examined in results:
        of_group = {**identity, "group": files.groups[examined.group]}
        out[JUDGED_EFFECTS.name].append(of_group | _judged_row(files, examined, cluster, points))
        for name, reading in examined.readings.items():
            out[READINGS.name].append(
                of_group
                | {"reading": name, "value": reading.value, "se": reading.error.se, "df": reading.error.df}
                | {"difference": reading.difference, "difference_se": reading.of_difference.se}
            )
        for part in examined.parts:
            differs = part.low > 0 or part.high < 0
            out[PARTS.name].append({**vars(part), **of_group, "differs": differs})
        excess = examined.excess
        for left_out in examined.left_out:
            row = {**vars(left_out), **of_group, "excess": None, "excess_se": None}
            if not left_out.what and excess is not None:
                row |= {"what": NO_DECISION, "excess": excess.excess, "excess_se": excess.of_excess.se}
            out[LEFT_OUT.name].append(row)
        for name, carrier in examined.carriers.items():
            out[CARRIERS.name].append({**of_group, "column": name, **vars(carrier)})
    for effect in chosen:
        errors = {"se": effect.plain.se, "df": effect.plain.df, "se_at_limit": effect.at_limit.se}
        out[CHOICES.name].append(
            {**identity, "group": files.groups[effect.group], "number": numbers[effect.choice]}
            | {**vars(effect.choice), "n": effect.n, "value": effect.value, **errors, "limit": effect.limit}
        )
    return out


def _judged_row(files: Files, examined: Examined, cluster: str | None, points: float) -> dict[str, Any]:
    """A row of the table of judged effects."""
    names = ("n", "events", "n_reference", "events_reference", "explained", "no_noise", "depends", "reason")
    row: dict[str, Any] = {name: getattr(examined, name) for name in names} | {"cluster": cluster}
    effect, judged = examined.effect, examined.judged
    if effect is None or judged is None:
        return row
    half = NORMAL_95 * judged.ratio_se
    with np.errstate(over="ignore"):
        ratio_ends = {"ratio_low": judged.ratio * np.exp(-half), "ratio_high": judged.ratio * np.exp(half)}
    approval = approval_error(files, examined.group) if cluster else None
    return row | {
        "value": effect.value,
        "se": judged.plain.se,
        "se_by_rows": judged.se_by_rows,
        "df": judged.plain.df,
        "limit": judged.limit,
        "se_at_limit": judged.at_limit.se,
        "expected": effect.expected,
        "ratio": judged.ratio,
        **ratio_ends,
        "rare": judged.limit < points,
        "approval_se": None if approval is None else approval.se,
        "approval_df": None if approval is None else approval.df,
    }
