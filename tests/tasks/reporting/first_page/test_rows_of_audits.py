"""No row of a first page contradicts the interval beside it: 40 planted lenders, and every example spec of data/audits.

Example specs are audited by the ladder alone, those of public data where EVENHAND_TEST_DATA has their file.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benches.planted import FILE, frame, spec_of
from benches.planted_lenders import Scenario, draw
from benches.verdicts import LENDER, only
from conftest import REPOSITORY, SHARED
from test_page_answers import contradictions

from schemas.audit.spec import AuditSpec
from tasks.in_memory import call_plainly
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.pipeline.registry import read_spec
from tasks.plan import plan
from tasks.reporting.first_page.page import MOST_WORDS, decide, length, run_of
from tasks.reporting.first_page.result import Decision
from tasks.reporting.plain_words import banned_in, longest_sentence
from tasks.reporting.stage import READ, material_of

SCENARIOS = {
    "equal": Scenario("no effect"),
    "mediated": Scenario("finances worse", mediated=only(0.6)),
    "confounded": Scenario("finances worse, not by the group", confounded=only(0.6)),
    "stricter": Scenario("stricter", log_odds=only(0.5)),
    "much stricter": Scenario("much stricter", log_odds=only(0.8)),
    "milder": Scenario("milder", log_odds=only(-0.5)),
    "hidden": Scenario("stricter with the better qualified", log_odds=only(0.8), mediated=only(-0.55)),
    "unseen": Scenario("a column is missing", mediated=only(1.0), without=("score",)),
}
SEEDS = [
    pytest.param(range(2), marks=pytest.mark.slow, id="two"),
    pytest.param(range(2, 5), marks=pytest.mark.long, id="three more"),
]

FILES = {
    "adult.yaml": ["data/adult/adult.data.gz", "data/adult/adult.test.gz"],
    "compas.yaml": ["data/compas/compas_two_years_no_names.csv.gz"],
    "default-credit.yaml": ["data/default_credit_card/credit-card-clients.csv.gz"],
    "german-credit.yaml": ["data/german_credit/german.data.gz"],
    "hmda.yaml": ["data/hmda_lar_2024_travis_cu/travis_cu_2024_hmda.csv"],
    "hmda-tx-2022.yaml": ["data/hmda_2022_tx_50k/hmda_tx_2022_sample.csv.gz"],
    "loan.yaml": ["golden/cst/loan_factual.csv.gz"],
    "law-school.yaml": ["data/law_school/lsac_law_data_21791.csv.gz"],
}
"""Example specs of files, and the public data that each is about."""
ALONE = ("boston1990.yaml", "hmda-twin.yaml", "synthetic-lending.yaml", "synthetic-mediated.yaml")
"""Those that need no file."""


def page_of(spec: AuditSpec) -> Decision:
    """The first page of a spec, of the ladder alone."""
    steps = plan(spec.model_copy(update={"methods": spec.methods.only("adjusted", AdjustedSettings())})).steps
    made = call_plainly(steps[:-1])
    tables = [pa.concat_tables(made.get(table.name) or [table.empty()]) for table in READ]
    return decide(run_of(material_of(tables, steps[-1].settings)))


def hold(page: Decision) -> None:
    """A page says what its intervals show, in few and plain words."""
    assert contradictions(page) == []
    assert length(page) <= MOST_WORDS
    assert set(banned_in(page.texts())) <= set(banned_in([page.about.who])), "a title is the user's own"
    assert longest_sentence(page.texts()) <= 25


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_planted_lenders(name: str, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        applied = draw(LENDER, SCENARIOS[name], 1500, np.random.default_rng(seed))
        frame(applied).to_csv(tmp_path / FILE, index=False)
        hold(page_of(spec_of(applied, tmp_path, seed)))


def spec_file(name: str, **overrides: str) -> AuditSpec:
    """An example spec."""
    text = (REPOSITORY / "data" / "audits" / name).read_text(encoding="utf-8")
    return read_spec(text, name, {key.replace("__", "."): value for key, value in overrides.items()}).spec


def test_every_example_spec_is_audited() -> None:
    names = {path.name for path in (REPOSITORY / "data" / "audits").glob("*.yaml")}
    assert names == {*FILES, *ALONE}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_an_example_spec(name: str) -> None:
    hold(page_of(spec_file(name)))


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.data(*FILES[name])) for name in FILES])
def test_an_example_spec_of_public_data(name: str) -> None:
    paths = [str(SHARED / file) for file in FILES[name]]
    vintage = {"source__vintage": "null"} if name == "hmda.yaml" else {}
    path = paths[0] if len(paths) == 1 else f"[{', '.join(paths)}]"
    hold(page_of(spec_file(name, source__path=path, **vintage)))
