"""The problem of the CST authors, our results, balances, the printed tables and reference outputs."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from research.figures import Cell, Drawing, Figure, Value, curves, place, tables
from schemas.audit.causal import CausalGraph
from schemas.audit.spec import AuditSpec
from tasks.counterfactuals.algorithm import causal_model
from tasks.counterfactuals.generators import World
from tasks.detection import stage as detect
from tasks.detection.problems import cases
from tasks.in_memory import tables_through
from tasks.methods.cst.algorithm import situations
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Counterfactuals, Problem
from tasks.pipeline.method import ProblemTables
from tasks.scoring.decider import Decide, decider

# --------------------------------------------------------------------------------------------------------------------
# Reads the tables of the CST paper: by variant and number of neighbours k, or as rows of named quantities.


VARIANTS = (situations.CST, situations.ST, situations.CENTRED)
"""Variants that count neighbours; counterfactual fairness (CF) knows no k."""


def figures(publication: Mapping[str, Any], dataset: str) -> Iterator[Figure]:
    """Yields the figures of the tables of a data set."""
    for table in tables(publication, dataset):
        values: list[tuple[Cell, Value]] = []
        if "quantities" in table:
            for at, row in zip(table.get("at", [()]), table["rows"], strict=True):
                for quantity, value in zip(table["quantities"], row, strict=True):
                    values.append((Cell(quantity, table["group"], place(at)), value))
        else:
            for variant in VARIANTS:
                for k, value in zip(table["ks"], table.get(variant, ()), strict=variant in table):
                    values.append((Cell(table["quantity"], table["group"], (variant, float(k))), value))
            if situations.CF in table:
                values.append((Cell(table["quantity"], table["group"], (situations.CF,)), table[situations.CF]))
        for cell, value in values:
            least = cell.quantity in table.get("at_least", ())
            number = value if isinstance(value, str) else float(value)
            yield Figure(table["source"], False, cell, number, table.get("tolerance", 0.0), at_least=least)


# --------------------------------------------------------------------------------------------------------------------
# Builds the CST authors' problem from an audit spec, by the stages and the causal model of an audit.
#
# Scope: the two differences from an audit. The authors generate counterfactuals of all rows, not of complainants alone,
# because the z-scores of the counterfactual data depend on it. And they merge all other groups into one reference
# group.


Coefficients = Mapping[tuple[str, str], float]
"""By column, and by its cause or 'intercept'."""


@dataclass(frozen=True)
class Scene:
    """One protected attribute of an audit, before counterfactuals are generated."""

    problem: Problem
    world: World
    decide: Decide | None

    def imagined(self, attribute: str, rows: Longs) -> Counterfactuals:
        """Generates the counterfactuals of rows ``(r,)`` as members of the reference group, with decisions on them."""
        return self.world.imagine(attribute, self.decide)(rows, self.problem.group, None)

    def against(self, attribute: str, group: int) -> "Scene":
        """Merges all other groups into the reference group, for the causal mechanisms as well."""
        labels = np.where(self.problem.group == group, group, self.problem.reference).astype(np.int32)
        groups = {**self.world.groups, attribute: replace(self.world.groups[attribute], group=labels)}
        return Scene(replace(self.problem, group=labels), replace(self.world, groups=groups), self.decide)


@dataclass(frozen=True)
class Prepared:
    """The problem of one protected attribute and one group of complainants."""

    problem: Problem
    """It has two groups: the complainants', and everybody else under the name of the reference group."""
    group: int
    """Number of the complainants' group."""
    coefficients: Coefficients
    settings: CstSettings


def scene(spec: AuditSpec, attribute: str) -> Scene:
    """Runs the stages of an audit up to the model's decisions, and fits the world of its causal graph."""
    tables = ProblemTables.of(tables_through(spec, "score"))
    # without a causal graph the cases do not look for the counterfactuals that an audit would have made by now
    everybody = {"causal_graph": CausalGraph(), "sampling": None}
    nothing_assumed = detect.detect_settings(spec.model_copy(update=everybody), "cst")
    problem = next(case.problem for case in cases(tables, nothing_assumed) if case.attribute == attribute)
    columns = situations.applicants_of(problem).columns
    world = World.of(columns, tables.memberships, tables.ids, detect.detect_settings(spec, "cst"))
    decide = decider(spec.model, tables.models, tables.encodings, tables.decisions)
    return Scene(problem, world, decide)


def prepared(spec: AuditSpec, attribute: str, group: str) -> Prepared:
    """Builds the authors' problem: one group against everybody else, with a counterfactual for every row."""
    settings = spec.methods.of(CstSettings)
    if settings is None:
        raise ValueError(f"{spec.name} does not ask for CST")
    everybody = scene(spec, attribute)
    group_number = everybody.problem.groups.index(group)
    of = everybody.against(attribute, group_number)
    imagined = of.imagined(attribute, np.arange(len(of.problem.group)))
    alone = replace(situations.applicants_of(of.problem), counterfactuals=imagined, crossed=False, singles=())
    fitted, roots = of.world.fit(attribute, of.problem.group)
    references = {name: of.world.groups[name].groups[of.world.groups[name].reference] for name in roots.names}
    return Prepared(
        problem=replace(of.problem, applicants=alone),
        group=group_number,
        coefficients=against_reference(causal_model.terms(fitted), references),
        settings=settings,
    )


def against_reference(
    terms: Mapping[str, Mapping[str, float]], references: Mapping[str, str]
) -> dict[tuple[str, str], float]:
    """Converts coefficients to the paper's form: the effect of not belonging to the reference group.

    A fit leaves out the group that comes first by name, and in all data sets of the paper that is not the reference.

    Args:
        terms: Column -> 'intercept', a cause, or 'attribute=group' -> coefficient.
        references: Protected attribute -> its reference group.
    """
    coefficients: dict[tuple[str, str], float] = {}
    for column, of_column in terms.items():
        numbers = {term: value for term, value in of_column.items() if "=" not in term}
        effects = {name: -of_column[f"{name}={group}"] for name, group in references.items()}
        coefficients |= {(column, term): value for term, value in (numbers | effects).items()}
        coefficients[column, "intercept"] -= sum(effects.values())
    return coefficients


# --------------------------------------------------------------------------------------------------------------------
# Compares and tests every complainant of the CST paper's problems, and converts the results to cells.
#
# Scope: counts, shares, coefficients and single complainants. Comparison with the reference outputs: ``golden``.


@dataclass(frozen=True)
class Tested:
    """The complainants of one problem, ``c`` of them."""

    prepared: Prepared
    ground: situations.SearchSpace
    compared: situations.Comparison
    tests: Mapping[str, situations.Tests]
    """By variant."""

    @property
    def row(self) -> Longs:
        """``(c,)`` rows of the complainants, ascending."""
        return self.compared.row

    @property
    def unfair(self) -> Floats:
        """``(c,)`` 1 where refused but for the group, -1 the other way round, else 0."""
        assert self.compared.unfair is not None, "a rule decides on the imagined, too"  # noqa: S101 for mypy
        return self.compared.unfair

    def detected(self, variant: str) -> Floats:
        """``(len(ks), c)`` 1 where detected; ``(1, c)`` by counterfactual fairness."""
        return (
            (self.unfair > 0).astype(np.float64)[None]
            if variant == situations.CF
            else self.tests[variant].detected(0.0)
        )

    @property
    def variants(self) -> tuple[str, ...]:
        """All variants, counterfactual fairness last."""
        return (*self.tests, situations.CF)

    def at(self, variant: str) -> list[tuple[Value, ...]]:
        """Returns what the cells of a variant are at, in the order of its rows."""
        return (
            [(situations.CF,)] if variant == situations.CF else [(variant, float(k)) for k in self.prepared.settings.ks]
        )


def tested(prepared: Prepared) -> Tested:
    """Searches, counts and tests as the method does, and keeps the results of every complainant."""
    problem, settings = prepared.problem, prepared.settings
    ground = situations.lay(problem, settings, problem.group, situations.applicants_of(problem).counterfactuals)
    compared = situations.compare(ground, prepared.group, np.flatnonzero(problem.group == prepared.group))
    tests_of_variant = {variant: situations.judge(pair, settings) for variant, pair in compared.pairs.items()}
    return Tested(prepared, ground, compared, tests_of_variant)


def cells(result: Tested, group: str, complainants: Iterable[int]) -> Mapping[Cell, Value]:
    """Returns the cells of a problem's group as a whole, and of the given complainants."""
    out: dict[Cell, Value] = {Cell(quantity, group, at): value for quantity, at, value in _counts(result)}
    out |= {Cell("coefficient", group, at): value for at, value in result.prepared.coefficients.items()}
    applicants, imagined = result.ground.applicants, result.ground.imagined
    favourable, in_group = applicants.favourable, result.ground.group == result.prepared.group
    out[Cell("rows", group)] = float(len(in_group))
    out[Cell("percent_of_rows", group)] = float(100 * in_group.mean())
    for name, rows in ((group, in_group), (f"not {group}", ~in_group)):
        out[Cell("refused_percent", name)] = float(100 * (~favourable[rows]).mean())
        out[Cell("accepted_percent", name)] = float(100 * favourable[rows].mean())
    if imagined is not None and imagined.refused is not None:
        out[Cell("refused_percent_imagined", group)] = float(100 * imagined.refused[in_group].mean())
    # the test with centres of single complainants, at the settings' k, and their counterfactuals
    tests, at_k = result.tests[situations.CENTRED], result.prepared.settings.ks.index(result.prepared.settings.k)
    for row in complainants:
        i, at = int(np.searchsorted(result.row, row)), (float(row),)
        interval_values = (tests.pair.control_share, tests.pair.test_share, tests.delta, tests.low, tests.high)
        for quantity, values in zip(("p_c", "p_t", "delta", "low", "high"), interval_values, strict=True):
            out[Cell(quantity, group, at)] = float(values[at_k, i])
        out[Cell("unfair", group, at)] = float(result.unfair[i])
        if applicants.counterfactuals is not None:
            for name, value in zip(applicants.columns.names, applicants.counterfactuals.values[row], strict=True):
                out[Cell("imagined", group, (*at, name))] = float(value)
    return out


def multiple(intersection: Tested, parts: Iterable[Tested], group: str) -> Mapping[Cell, Value]:
    """Counts members of a crossed group who are detected by each single attribute."""
    detected_by_both: dict[tuple[Value, ...], Bools] = {}
    for part in parts:
        positions = np.searchsorted(part.row, intersection.row)
        for variant in intersection.variants:
            for at, detected in zip(intersection.at(variant), part.detected(variant)[:, positions] > 0, strict=True):
                detected_by_both[at] = detected_by_both.get(at, np.ones(len(positions), dtype=bool)) & detected
    return {Cell("detected_by_both_alone", group, at): float(yes.sum()) for at, yes in detected_by_both.items()}


def _counts(result: Tested) -> Iterator[tuple[str, tuple[Value, ...], float]]:
    yield "complainants", (), float(len(result.row))
    for variant in result.variants:
        for at, detected in zip(result.at(variant), result.detected(variant), strict=True):
            yield "detected", at, float(detected.sum())
            yield "detected_percent", at, float(100 * detected.mean())
    for variant, tests in result.tests.items():
        significant, positive = (tests.low > 0) & (tests.delta > 0), tests.positive(0.0)
        for i, at in enumerate(result.at(variant)):
            yield "significant", at, float(significant[i].sum())
            yield "positive", at, float(positive[i].sum())
    missed = (result.unfair > 0) & (result.detected(situations.CENTRED) == 0)
    for at, count in zip(result.at(situations.CENTRED), missed.sum(axis=1).tolist(), strict=True):
        yield "unfair_but_not_detected", at, float(count)


# --------------------------------------------------------------------------------------------------------------------
# Compares the reference outputs of CST with ours, complainant by complainant.
#
# They are thousands of numbers, of which a line has the largest difference, or how many differ. There are frames of the
# factual and the counterfactual data, a table for each variant and k with a row for each complainant, and the
# neighbours of the first 300 complainants.


FILES = {situations.CST: "CSTwo", situations.ST: "ST", situations.CENTRED: "CSTwi"}
"""What the files call the variants."""

KS = (15, 30, 50, 100)
NEIGHBOURS_OF = 15
"""The k of the listed neighbours."""

TOLERANCE = 1e-12
DECLARED = 3
"""The reference divides distances by the number of declared attributes, the protected one among them."""

DECISIONS = ("LoanApproval", "Y")
"""Names of the column that holds the decision, which is positive where favourable."""

TABLES, LISTS = "*_k*.csv.gz", "*_neighbours.jsonl.gz"
"""What the lines call the files of which there is one for each variant."""

OURS = {"delta_p": "delta", "ci_lo": "low", "ci_hi": "high"}
"""Our names of their columns."""

Differences = Iterator[tuple[Figure, Value]]
"""A figure of the reference, and ours."""


@dataclass(frozen=True)
class Golden:
    """The reference outputs of one problem."""

    place: Path
    name: str
    """Begins the names of its files."""
    group: str
    """Those who complain."""

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        tables = [f"{file}_k{k}.csv.gz" for file in FILES.values() for k in KS]
        lists = [self._neighbours(variant) for variant in FILES]
        return [self._file(name) for name in ("factual.csv.gz", "counterfactual.csv.gz", *tables, *lists)]

    def differences(self, result: Tested) -> Differences:
        """Yields all figures of the files, with ours."""
        yield from self._frames(result)
        for variant in FILES:
            for at, k in enumerate(KS):
                yield from self._table(result, variant, at, k)
            yield from self._lists(result, variant)

    def _file(self, name: str) -> Path:
        return self.place / f"{self.name}_{name}"

    def _neighbours(self, variant: str) -> str:
        return f"{FILES[variant]}_k{NEIGHBOURS_OF}_neighbours.jsonl.gz"

    def _line(self, file: str, quantity: str, at: tuple[Value, ...], ours: float, tolerance: float = 0.0) -> Any:
        """The reference differs from itself by nothing, so that ours is how much we differ from it."""
        return Figure(f"{self.name}_{file}", True, Cell(quantity, self.group, at), 0.0, tolerance), ours

    def _frames(self, result: Tested) -> Differences:
        """Values and decisions of all rows, to the last digit."""
        applicants = result.ground.applicants
        imagined = applicants.counterfactuals
        if imagined is None or imagined.favourable is None:
            raise ValueError("the published tables need a counterfactual and its decision for every row")
        frames = {
            "factual": (applicants.columns.values, applicants.favourable),
            "counterfactual": (imagined.values, imagined.favourable),
        }
        for kind, (values, favourable) in frames.items():
            file = f"{kind}.csv.gz"
            frame = pd.read_csv(self._file(file))
            yield self._line(file, f"{kind}_rows_missing", (), float(abs(len(frame) - len(values))))
            if len(frame) != len(values):
                continue
            (decision,) = (name for name in DECISIONS if name in frame)
            differ = (frame[decision].to_numpy() > 0) != favourable
            yield self._line(file, f"{kind}_values_differing", (decision,), float(differ.sum()))
            for name, column in zip(applicants.columns.names, values.T, strict=True):
                if name in frame:
                    differ = frame[name].to_numpy(dtype=float) != column
                    yield self._line(file, f"{kind}_values_differing", (name,), float(differ.sum()))

    def _table(self, result: Tested, variant: str, at: int, k: int) -> Differences:
        """One variant and k, by complainant."""
        frame = pd.read_csv(self._file(f"{FILES[variant]}_k{k}.csv.gz")).set_index("individual")
        differing_rows = len(frame.index.symmetric_difference(pd.Index(result.row)))
        place, theirs = (variant, float(k)), frame.reindex(result.row)
        yield self._line(TABLES, "complainants_differing", place, float(differing_rows))
        tests = result.tests[variant]
        pair = tests.pair
        reals = {
            "p_c": pair.control_share,
            "p_t": pair.test_share,
            "delta_p": tests.delta,
            "ci_lo": tests.low,
            "ci_hi": tests.high,
        }
        for column, values in reals.items():
            furthest = float(np.abs(theirs[column].to_numpy() - values[at]).max())
            yield self._line(TABLES, f"{OURS.get(column, column)}_furthest_apart", place, furthest, TOLERANCE)
        significant = (tests.low[at] > 0) & (tests.delta[at] > 0)
        wholes = {
            "n_c": pair.control_n[at],
            "n_t": pair.test_n[at],
            "detected": tests.detected(0.0)[at],
            "significant": significant.astype(np.float64),
            "cf_flag": np.where(result.unfair < 0, 2.0, result.unfair),
        }
        for column, values in wholes.items():
            differ = theirs[column].to_numpy(dtype=float) != values
            yield self._line(TABLES, f"{column}_differing", place, float(differ.sum()))

    def _lists(self, result: Tested, variant: str) -> Differences:
        """Complainants with different neighbours, and the largest difference of the listed distances.

        The files list equal distances in another order than that in which they were chosen.
        """
        packed = self._file(self._neighbours(variant)).read_bytes()
        published_lists = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
        compared = result.compared
        if variant == situations.ST:
            compared = situations.compare(replace(result.ground, imagined=None), result.prepared.group, result.row)
        control, test = compared.control.members, compared.test.members
        place = np.searchsorted(result.row, [published_list["id"] for published_list in published_lists])
        for role, near, key in (("control", control, "ctr"), ("test", test, "tst")):
            differ, furthest = 0, 0.0
            for i, published_list in zip(place.tolist(), published_lists, strict=True):
                is_neighbour = near.rows[i] >= 0
                ours = near.distances[i, is_neighbour] * result.ground.space.divisor / DECLARED
                differ += sorted(near.rows[i, is_neighbour].tolist()) != sorted(published_list[key])
                if len(ours) == len(published_list[key]):
                    furthest = max(furthest, float(np.abs(ours - published_list[f"{key}_d"]).max()))
            yield self._line(LISTS, f"{role}_groups_differing", (variant,), float(differ))
            yield self._line(LISTS, f"{role}_distances_furthest_apart", (variant,), furthest, TOLERANCE)


# --------------------------------------------------------------------------------------------------------------------
# Figure 2 of the CST paper: account balances of women, factual and counterfactual, and around single complainants.
#
# The left half is the distribution of one column before and after the intervention. The right half has the mean of that
# column in three groups around a complainant: the control group, the test group of situation testing, and that of
# counterfactual situation testing. The paper draws five complainants at random among those whom both methods detect;
# here they are the five with the largest difference of shares.
#
# Scope: figures without printed numbers. Tables: ``obtained``.


BINS = 40
"""Equal-width bins of the distribution."""

SHOWN = 5
"""Complainants of the right half, as in the paper."""

CONTROL, SITUATION, COUNTERFACTUAL = "control group", "test group of ST", "test group of CST"


@dataclass(frozen=True)
class Balances:
    """One column of the complainants of a problem, ``c`` of them."""

    tested: Tested
    column: str
    group: str
    """What the lines call the complainants."""

    @property
    def factual(self) -> Floats:
        """``(c,)`` the column as it is."""
        return self._all[self.tested.row]

    @property
    def counterfactual(self) -> Floats:
        """``(c,)`` the column after the intervention.

        Raises:
            ValueError: The problem has no counterfactuals.
        """
        imagined = situations.applicants_of(self.tested.prepared.problem).counterfactuals
        if imagined is None:
            raise ValueError("Figure 2 compares with counterfactuals, and the problem has none")
        column_values: Floats = imagined.values[np.searchsorted(imagined.row, self.tested.row), self._place]
        return column_values

    @property
    def most_different(self) -> Longs:
        """Positions ``(s,)`` of the complainants with the largest delta of CST among those detected by CST and ST."""
        at = self.tested.prepared.settings.ks.index(self.tested.prepared.settings.k)
        delta = self.tested.tests[situations.CST].delta[at]
        detected_by_both = np.flatnonzero(
            (self.tested.detected(situations.CST)[at] > 0) & (self.tested.detected(situations.ST)[at] > 0)
        )
        return detected_by_both[np.argsort(-delta[detected_by_both], kind="stable")][:SHOWN]

    @property
    def around(self) -> Mapping[str, Floats]:
        """Mean of the column in each of the three groups around those complainants, ``(s,)`` each."""
        compared, some = self.tested.compared, self.most_different
        tested = np.searchsorted(compared.tested, some)
        return {
            CONTROL: self._means(compared.control.members, some),
            SITUATION: self._means(compared.factual.members, some),
            COUNTERFACTUAL: self._means(compared.test.members, tested),
        }

    @property
    def _place(self) -> int:
        return self.tested.ground.applicants.columns.names.index(self.column)

    @property
    def _all(self) -> Floats:
        values: Floats = self.tested.ground.applicants.columns.values[:, self._place]
        return values

    def _means(self, members: situations.Members, some: Longs) -> Floats:
        rows = members.rows[some]
        means: Floats = np.nanmean(np.where(rows == situations.NOBODY, np.nan, self._all[rows]), axis=1)
        return means


def balances_cells(balances: Balances) -> Iterator[tuple[Cell, Value]]:
    """Yields the means behind both halves, and how often the test group of ST is nearer to the control group."""
    factual, imagined, at = balances.factual, balances.counterfactual, (balances.column,)
    for quantity, values in (
        ("mean_factual", factual),
        ("mean_counterfactual", imagined),
        ("mean_shift", imagined - factual),
    ):
        yield Cell(quantity, balances.group, at), float(values.mean())
    around = balances.around
    for name, means in around.items():
        for number, mean in enumerate(means.tolist(), start=1):
            yield Cell("mean_around", balances.group, (name, float(number))), mean
    nearer = np.abs(around[SITUATION] - around[CONTROL]) < np.abs(around[COUNTERFACTUAL] - around[CONTROL])
    yield Cell("st_nearer_to_control", balances.group), float(nearer.sum())


def drawings(balances: Balances) -> tuple[Drawing, ...]:
    """Returns both halves of Figure 2."""
    sides = {"factual": balances.factual, "counterfactual": balances.counterfactual}
    edges = np.histogram_bin_edges(np.concatenate(list(sides.values())), BINS)
    shares = {name: np.histogram(values, edges)[0] / len(values) for name, values in sides.items()}
    distributions = Drawing(
        "balances-factual-and-counterfactual",
        "Figure 2",
        f"{balances.column} of complainants: {balances.group}",
        f"{balances.column}, middle of {BINS} bins",
        "share of complainants",
        curves(((edges[1:] + edges[:-1]) / 2).tolist(), {name: y.tolist() for name, y in shares.items()}),
    )
    some = balances.most_different
    most_different = {
        "the complainant": balances.factual[some],
        "its counterfactual": balances.counterfactual[some],
    }
    means = {name: y.tolist() for name, y in {**balances.around, **most_different}.items()}
    around = Drawing(
        "balances-around-complainants",
        "Figure 2",
        f"{balances.column} around the {len(some)} complainants with the largest delta that ST and CST both detect",
        "complainant, by falling delta",
        f"mean {balances.column} of the group",
        curves(range(1, len(some) + 1), means),
    )
    return distributions, around
