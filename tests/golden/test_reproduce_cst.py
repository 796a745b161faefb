"""``evenhand reproduce cst``: the counts and intervals of the paper, and the reference outputs in full."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from conftest import REPOSITORY, SHARED

from research import figures as research_figures
from research.cst import problem
from research.cst.experiments import EXPERIMENTS
from research.cst.problem import Golden, against_reference
from research.figures import Cell, Verdict, paper_spec
from research.reproduction import Asked, reproduce, summary, tables
from schemas.errors import InfrastructureError
from tasks.methods.cst.settings import CstSettings
from tasks.plan import plan

SPECS = ("loan", "law-school-race", "law-school-gender", "law-school-intersectional")

needs_reference = pytest.mark.data("golden/cst")


@pytest.fixture(scope="module")
def lines():
    return [line for each in reproduce(Asked("cst"), SHARED).values() for line in each.lines]


@pytest.fixture(scope="module")
def loan():
    """The complainants of the loans, tested."""
    (grid,) = EXPERIMENTS["loan"].grids
    return problem.tested(EXPERIMENTS["loan"].prepared(grid, SHARED))


def test_a_table_by_variant_and_k():
    table = {"group": "g", "quantity": "detected", "ks": [15, 30], "st": [3, 4], "cf": 5}
    said = {"table": [{"datasets": ["d"], "source": "Table 1", **table}, {"datasets": ["other"]}]}
    found = {figure.cell: (figure.source, figure.value) for figure in problem.figures(said, "d")}
    assert found == {
        Cell("detected", "g", ("st", 15.0)): ("Table 1", 3.0),
        Cell("detected", "g", ("st", 30.0)): ("Table 1", 4.0),
        Cell("detected", "g", ("cf",)): ("Table 1", 5.0),
    }


def test_a_table_of_rows():
    table = {"group": "g", "quantities": ["low", "high"], "at": [[44], ["x", "y"]], "rows": [[0, 1], [2, 3]]}
    said = {"table": [{"datasets": ["d"], "source": "Table 2", "tolerance": 0.01, **table}]}
    found = {(figure.cell.quantity, figure.cell.at): figure.value for figure in problem.figures(said, "d")}
    words = ("x", "y")
    assert found == {("low", (44.0,)): 0, ("high", (44.0,)): 1, ("low", words): 2, ("high", words): 3}
    assert {figure.tolerance for figure in problem.figures(said, "d")} == {0.01}


def test_words_and_bounds_of_a_table():
    table = {"group": "g", "quantities": ["edges", "nearer"], "at_least": ["nearer"], "rows": [["a > b", 5]]}
    edges, nearer = problem.figures({"table": [{"datasets": ["d"], "source": "Figure 1", **table}]}, "d")
    assert (edges.value, edges.at_least) == ("a > b", False)
    assert (nearer.value, nearer.at_least) == (5.0, True)


def test_a_table_shorter_than_its_ks_is_an_error():
    said = {"table": [{"datasets": ["d"], "source": "s", "group": "g", "quantity": "q", "ks": [15, 30], "st": [3]}]}
    with pytest.raises(ValueError, match="shorter"):
        list(problem.figures(said, "d"))


def test_published_tables_are_whole():
    """Every cell once for each source, all 52 counts, and remarks that are about something."""
    said = research_figures.read("cst")
    counts = 0
    for name in EXPERIMENTS:
        figures = list(problem.figures(said, name))
        assert len(figures) == len({(f.source, f.cell) for f in figures})
        tabled = {grid.name for grid in EXPERIMENTS[name].grids if grid.tabled}
        counts += sum(f.cell.quantity == "detected" and f.cell.group in tabled for f in figures)
        for remark in research_figures.published_remarks(said, name):
            told_beside = remark.sources == {research_figures.BESIDE}
            assert told_beside or any(
                f.source in remark.sources and f.cell.quantity in remark.quantities for f in figures
            ), remark
    assert counts == 52


def test_coefficients_are_told_against_the_reference_group():
    """y = 10 + 3 [male] + 2 x is y = 13 - 3 [not male] + 2 x."""
    terms = {"y": {"intercept": 10.0, "sex=male": 3.0, "x": 2.0}}
    found = against_reference(terms, {"sex": "male"})
    assert found == {("y", "intercept"): 13.0, ("y", "sex"): -3.0, ("y", "x"): 2.0}


@pytest.mark.parametrize("name", SPECS)
@needs_reference
def test_paper_specs_are_audits(name):
    source = EXPERIMENTS["loan" if name == "loan" else "law"].sources[0]
    spec = paper_spec(f"{name}.yaml", {"source.path": str(SHARED / source)})
    assert [step.name for step in plan(spec).steps if step.stage.name == "detect"] == ["detect cst"]
    cst = spec.methods.of(CstSettings)
    assert cst is not None
    assert (cst.k, cst.ks, cst.scaling) == (
        15,
        (15, 30, 50, 100),
        "z_scores",
    )


def test_every_paper_spec_of_cst_is_used():
    used = {grid.spec for experiment in EXPERIMENTS.values() for grid in experiment.grids}
    held = {file.name for file in (REPOSITORY / "data" / "audits" / "paper").iterdir() if "cst: {" in file.read_text()}
    assert used == held == {f"{name}.yaml" for name in SPECS}


def test_a_spec_that_was_not_installed_is_named():
    with pytest.raises(InfrastructureError, match=r"loans\.yaml"):
        paper_spec("loans.yaml", {})


@needs_reference
def test_all_figures(lines):
    verdicts = Counter(line.verdict for line in lines)
    assert verdicts == {Verdict.AGREES: 613, Verdict.OTHERWISE: 3, Verdict.INFORMATION: 18}
    assert "against the paper's printed figures, 159: differs 0, paper prints otherwise 3, agrees 156" in summary(lines)
    assert "against the reference, 457: differs 0, agrees 457" in summary(lines)
    assert "The reference has what we have" not in summary(lines)
    counts = [
        line for line in lines if line.figure.cell.quantity == "detected" and "alone" not in line.figure.cell.group
    ]
    assert len(counts) == 52
    assert all(line.difference == 0 for line in counts)


@needs_reference
def test_what_the_paper_prints_otherwise_is_explained(lines):
    said = {line.figure.cell.quantity: line for line in lines if line.verdict is Verdict.OTHERWISE}
    assert set(said) == {"rows", "percent_of_rows", "refused_percent"}
    refused = said["refused_percent"]
    assert (refused.figure.value, round(refused.obtained, 1)) == (60.9, 60.6)
    assert all(line.why for line in said.values())


def words_of(lines, *, every_cell):
    """The words of each row of the tables."""
    rows = (row for _, rows in tables(lines, every_cell=every_cell) for row in rows)
    return [" ".join(map(str, row.values())).split() for row in rows]


@needs_reference
def test_every_cell_names_what_it_is_at(lines):
    said = " ".join(word for row in words_of(lines, every_cell=True) for word in row)
    for what in (
        "detected, variant = cst_with_centres, k = 15 female 420 420",
        "detected, variant = cf female 376 376",
        "low, complainant = 55 female 0.65 0.652",
        "imagined, complainant = 0, column = AnnualSalary female 50,796 50,796.35",
        "coefficient, column = AccountBalance, cause = gender female -1,182.8 -1,182.8233",
        "counterfactual values differing, column = AccountBalance female 0 0",
        "control groups differing, variant = st female 0 0",
    ):
        assert what in said, what


@needs_reference
def test_cells_that_agree_tell_how_far_they_are_apart(lines):
    rows = words_of([line for line in lines if line.figure.source == "Table 2"], every_cell=False)
    (low,) = (row for row in rows if "low" in row)
    assert low == ["Table", "2", "low", "female", "<=", "0.003", "5", "of", "5", "cells", "agree"]


@needs_reference
def test_intervals_agree_to_a_hundredth(lines):
    tables = [line for line in lines if line.figure.source in ("Table 2", "Table 3")]
    ends = [line for line in tables if line.figure.cell.quantity in ("low", "high")]
    assert len(ends) == 20
    assert all(abs(line.difference) <= 0.01 and line.verdict is Verdict.AGREES for line in ends)


@needs_reference
def test_complainants_agree_to_the_twelfth_digit(lines):
    shares = [line for line in lines if line.figure.cell.quantity in ("p_c_furthest_apart", "p_t_furthest_apart")]
    assert len(shares) == 2 * 2 * 12
    assert all(line.figure.tolerance == 1e-12 and line.obtained <= 1e-12 for line in shares)


@needs_reference
def test_multiple_discrimination_is_the_intersection_of_the_single_attributes(loan):
    """Detected alone twice is detected once; a part that detects nobody leaves nobody."""
    twice = problem.multiple(loan, [loan, loan], "g")
    assert twice[Cell("detected_by_both_alone", "g", ("cst", 15.0))] == 288
    assert twice[Cell("detected_by_both_alone", "g", ("cf",))] == 376


def altered(tmp_path, file, change):
    """The reference outputs of the loans in a directory of their own, one of them changed."""
    golden = Golden(SHARED / "golden" / "cst", "loan", "female")
    for path in golden.files:
        (tmp_path / path.name).symlink_to(path)
    frame = pd.read_csv(tmp_path / file)
    (tmp_path / file).unlink()
    change(frame).to_csv(tmp_path / file, index=False)
    return Golden(tmp_path, "loan", "female")


def off(golden, loan):
    """What differs, by quantity and place."""
    told = golden.differences(loan)
    return {(f.cell.quantity, f.cell.at): ours for f, ours in told if not abs(ours - f.value) <= f.tolerance}


@needs_reference
def test_a_changed_share_is_seen(tmp_path, loan):
    changed = altered(tmp_path, "loan_ST_k30.csv.gz", lambda f: f.assign(p_c=f["p_c"] + 1e-9 * (f["individual"] == 4)))
    assert off(changed, loan) == {("p_c_furthest_apart", ("st", 30.0)): pytest.approx(1e-9)}


@needs_reference
def test_a_missing_complainant_is_seen(tmp_path, loan):
    found = off(altered(tmp_path, "loan_CSTwi_k15.csv.gz", lambda frame: frame.iloc[1:]), loan)
    assert found["complainants_differing", ("cst_with_centres", 15.0)] == 1
    assert np.isnan(found["p_c_furthest_apart", ("cst_with_centres", 15.0)])


@needs_reference
def test_a_cent_of_an_imagined_value_is_seen(tmp_path, loan):
    changed = altered(
        tmp_path,
        "loan_counterfactual.csv.gz",
        lambda frame: frame.assign(AccountBalance=frame["AccountBalance"] + 0.01 * (frame.index == 7)),
    )
    assert off(changed, loan) == {("counterfactual_values_differing", ("AccountBalance",)): 1}


@needs_reference
def test_a_frame_with_fewer_rows_is_seen(tmp_path, loan):
    changed = altered(tmp_path, "loan_factual.csv.gz", lambda frame: frame.iloc[:-2])
    assert off(changed, loan) == {("factual_rows_missing", ()): 2}


@needs_reference
def test_figure_2_shows_what_the_counterfactual_adds(loan):
    """The test group of CST lies around the imagined woman, that of ST around the woman herself."""
    shown = problem.Balances(loan, "AccountBalance", "female")
    assert shown.counterfactual.mean() > shown.factual.mean()
    around = shown.around
    assert {name: len(means) for name, means in around.items()} == dict.fromkeys(around, problem.SHOWN)
    gain = around[problem.COUNTERFACTUAL] - around[problem.CONTROL]
    assert (np.abs(around[problem.SITUATION] - around[problem.CONTROL]) < gain).all()
    assert [drawn.figure for drawn in problem.drawings(shown)] == ["Figure 2", "Figure 2"]
