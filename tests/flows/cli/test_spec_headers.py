"""The commands at the head of every example spec: each is accepted, finds its file and reads it.

They are run as they stand, up to where the source has become applications: what comes after takes minutes, and does
not depend on what the command says. One is run to its end.
"""

import gzip
import json
import re
import shlex
from datetime import date

import pytest
import typer
from conftest import REPOSITORY, SHARED, evenhand

from flows.cli.main import app
from flows.cli.options import load_spec, overrides
from flows.partitions.years import parse_years, spec_as_held, spec_of_year
from flows.runs.index import runs_of
from flows.runs.record import source_read
from tasks.ingest.registry import check_columns
from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write
from tasks.ingest.vintages.store import add
from tasks.lake.store import Lake
from tasks.metrics.limits import check_limits
from tasks.plan import plan

pytestmark = pytest.mark.slow

AUDITS = REPOSITORY / "data" / "audits"
SPECS = {str(file.relative_to(REPOSITORY)): file for file in sorted(AUDITS.rglob("*.yaml"))}
HEADS = {name: file.read_text(encoding="utf-8").partition("\nname:")[0] for name, file in SPECS.items()}
COMMANDS = [
    line for head in HEADS.values() for line in re.findall(r"^#\s+(evenhand (?!reproduce).+)$", head, re.MULTILINE)
]
DELIVERED = {
    "adult.data": "adult/adult.data.gz",
    "adult.test": "adult/adult.test.gz",
    "adult.csv": "fgce/adult_integer_coded.csv.gz",
    "FILE": "hmda_lar_2024_travis_cu/travis_cu_2024_hmda.csv",
    "compas-scores-two-years.csv": "compas/compas_two_years_no_names.csv.gz",
    "credit-card-clients.csv": "default_credit_card/credit-card-clients.csv.gz",
    "german.data": "german_credit/german.data.gz",
    "hmda_tx_2022_sample.csv.gz": "hmda_2022_tx_50k/hmda_tx_2022_sample.csv.gz",
    "loan_factual.csv.gz": "../golden/cst/loan_factual.csv.gz",
    "lsac_law_data_21791.csv.gz": "law_school/lsac_law_data_21791.csv.gz",
}
"""Name of a file in a command -> where it lies under shared/data."""
HISTORIC = "hmda_lar_2010_2017_labels/hmda_lar_{year}_raw_rand_lm100.csv"
YEAR = 2022  # of lar_{year}.csv in the head of hmda.yaml


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory as a user has it, with the specs under data/audits and a file of HMDA of the year."""
    path = tmp_path_factory.mktemp("heads")
    (path / "data").mkdir()
    (path / "data" / "audits").symlink_to(AUDITS)
    twin = TwinSettings(rows=1000, year=YEAR, discrimination="direct")
    write(path, twin, 482).rows.rename(path / f"lar_{YEAR}.csv")
    return path


@pytest.fixture(scope="module")
def lake(place):
    """A lake that holds vintages of some years."""
    lake = Lake(place / "lake")
    add(lake, place / f"lar_{YEAR}.csv", year=YEAR, dataset="twin", geography="nationwide", frozen=date(YEAR + 1, 5, 1))
    for year in range(2012, 2018):
        file = SHARED / "data" / HISTORIC.format(year=year)
        if file.is_file():
            add(lake, file, year=year, dataset="historic", geography="nationwide", frozen=date(2019, 1, 1))
    return lake


def put_in(command, place):
    """Lay the files that a command names into the directory, as they are called there."""
    for name, source in DELIVERED.items():
        if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", command) and not (place / name).exists():
            content = (SHARED / "data" / source).read_bytes()
            (place / name).write_bytes(
                content if not source.endswith(".gz") or name.endswith(".gz") else gzip.decompress(content)
            )


def parsed(command):
    """The command's name and its parameters, as the command line takes them."""
    _, name, *words = shlex.split(command)
    return name, typer.main.get_command(app).commands[name].make_context(name, words).params


def rows_of(spec, lake):
    """What an audit of the spec reads, by its own first stage."""
    check_columns(spec)
    check_limits(spec)
    first = plan(spec).steps[0]
    partition = first.stage.run(lake, {}, first.settings, first.modules)
    return source_read(lake, [partition]), partition.table("applications").rows


@pytest.mark.parametrize("name", HEADS)
def test_every_example_spec_says_how_it_is_run(name):
    commands = re.findall(r"^#\s+(evenhand \w+ \S+) *(\S*)", HEADS[name], re.MULTILINE)
    assert commands, "no command in the comment at its head"
    given = "evenhand reproduce fgce", f"--{name.rsplit('/', 1)[1].removesuffix('.yaml')}"  # a file that users give
    assert all(words == given or words[0].split()[2] == name for words in commands)


@pytest.mark.data("data", "golden/cst")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_a_head_reads_what_it_names(command, place, lake, monkeypatch):
    put_in(command, place)
    monkeypatch.chdir(place)
    kind, said = parsed(command)
    if kind == "backfill":
        read_years(load_spec(said["spec"], {}).spec, parse_years(said["years"]), lake)
        return
    assert kind == "audit"
    spec = load_spec(said["spec"], overrides(said["year"], said["profile"], said["set_"] or [])).spec
    held = spec_as_held(spec, lake)
    read, applications = rows_of(held, lake)
    assert 0 < applications <= read["rows"]
    assert read["source"] == held.source.words
    assert read["year"] == (spec.year if "hmda" in (spec.source.kind, spec.name.partition("-twin")[0]) else None)


def read_years(spec, years, lake):
    """The years that the lake holds are read, each as that year."""
    held = {int(path.split("/")[1]) for path in lake.storage.glob("vintages/*/*/*/*/*/partition.json")}
    assert held & set(years)
    for year in held & set(years):
        read, applications = rows_of(spec_of_year(spec, year, lake), lake)
        assert read["year"] == year
        assert 0 < applications <= read["rows"]


def test_what_the_heads_mention_is_a_command():
    for name, head in HEADS.items():
        for words in re.findall(r"`evenhand ([a-z ]+)`", head):
            command = typer.main.get_command(app)
            for word in words.split():
                if hasattr(command, "commands"):
                    assert word in command.commands, f"{name}: evenhand {words}"
                    command = command.commands[word]


def test_a_file_of_ones_own_is_audited_and_not_the_vintage(place, lake, server):
    (command,) = [c for c in COMMANDS if "source.path=lar_" in c]
    cheap = shlex.split("--method cst --set methods.cst.null_permutations=3 --set bootstrap.draws=100")
    words = [*shlex.split(command)[1:], "--lake", "own", "--verbose", *cheap]
    done = evenhand(*words, server=server, cwd=place)
    assert done.returncode in (0, 1, 3), done.stderr
    said = re.search(r"^read +(.*)$", done.stdout, re.MULTILINE)[1]
    assert re.fullmatch(rf"lar_{YEAR}.csv, sha256 [0-9a-f]{{12}}, 1,000 rows, year by the rows {YEAR}", said)
    (run,) = runs_of(Lake(place / "own"))
    manifest = json.loads((place / "own" / "runs" / run.run / "manifest.json").read_text())
    digest = run.source_sha256[:12]
    assert manifest["read"] == {"source": f"lar_{YEAR}.csv", "sha256": digest, "rows": 1000, "year": YEAR}
