"""Four years of synthetic loans with the spec of their back-fill, its cheap audits, and the digests of their tables."""

from pathlib import Path

from conftest import loans
from loans_by_year import SPEC

from flows.partitions.year_audit import audit_year
from flows.runs.index import runs_of
from tasks.lake.store import Lake
from tasks.pipeline.registry import read_spec

YEARS = (2001, 2002, 2003, 2004)
_METHODS = "methods: {adjusted: null, fgce: null}"
_CHEAP = """\
methods:
  adjusted: null
  fgce: null
  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 5, sensitivity: false}
"""


def write_four_years(place: Path, rows: int = 420) -> Path:
    """A file a year, and the spec, whose path is given back."""
    for year in YEARS:
        frame = loans(rows, seed=year)
        frame[frame["race"] != ""].to_csv(place / f"loans_{year}.csv", index=False)
    spec = place / "yearly.yaml"
    spec.write_text(SPEC.replace("PLACE", str(place)).replace(_METHODS, _CHEAP.rstrip()))
    return spec


def left_alone(spec: Path, lake: Path) -> dict[int, dict[str, str]]:
    """The digests of the years when nothing disturbs them."""
    read, quiet = read_spec(spec.read_text(), spec.name).spec, Lake(lake)
    for year in YEARS:
        audit_year(read, year, quiet)
    return digests(quiet)


def digests(lake: Lake) -> dict[int, dict[str, str]]:
    """Year -> stage and table -> sha256 of every table of its run."""
    return {
        run.year: {f"{p.stage} {a.table}": a.sha256 for p in run.partitions for a in p.tables} for run in runs_of(lake)
    }
