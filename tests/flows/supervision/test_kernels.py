"""After the set-up no audit compiles a kernel, and a set-up that cannot keep kernels goes on."""

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest
from conftest import REPOSITORY, environment
from stopping import spec_of_all_methods

from flows.operations import doctor
from flows.supervision import kernels
from schemas.terms import ExitCode

RAN = (ExitCode.WITHIN, ExitCode.OUTSIDE, ExitCode.INCONCLUSIVE)
QUICK = ("--set", "methods.raguel.blocks=4", "--set", "methods.gcfn.epochs=2")
OTHER = (
    *("--set", "model.kind=net", "--set", "methods.fgce.cost=path", "--set", "methods.raguel.reach=any"),
    *(
        "--set",
        "methods.raguel.steps=false",
        "--set",
        "methods.cst.distance=hvdm",
        "--set",
        "methods.cst.generator=gan",
    ),
    *("--set", "methods.cec.training.epochs=1", "--set", "methods.cec.training.folds=2"),
)
"""Settings that call kernels which an audit by default does not."""


def copied(place: Path) -> Path:
    """The code and the bundled data in a folder of their own, with what the set-up compiled and nothing else."""
    for part in ("flows", "tasks", "schemas", "data/audits", "data/published"):
        shutil.copytree(REPOSITORY / part, place / part, ignore=shutil.ignore_patterns("__pycache__"))
    own = REPOSITORY / "flows" / "supervision" / "__pycache__" / "kernels.txt"
    if not own.is_file() or len({*kernels.compiled_kernels()}) > 1:
        assert ran(REPOSITORY, "flows.supervision.prepare").returncode == 0
    for file in REPOSITORY.glob("tasks/**/*.nb[ic]"):
        if file.suffix == ".nbi" or file.stat().st_mtime <= own.stat().st_mtime:  # later ones are of other tests
            (folder := place / file.parent.relative_to(REPOSITORY)).mkdir(exist_ok=True)
            shutil.copy2(file, folder)
    return place


def ran(home: Path, *words: str, **places: str) -> "subprocess.CompletedProcess[str]":
    """A module of the copy as a process; prints the seconds that it took."""
    own = {k: v for k, v in environment(None).items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(home)} | places
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", *words], env=own, cwd=home, capture_output=True, text=True, timeout=1200
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sys.stdout.write(f"\n{words[0]}: {time.monotonic() - began:.0f} s, {cpu:.0f} CPU s\n")
    return done


def kept(home: Path) -> dict[Path, bytes]:
    """What numba keeps: an index file for each kernel, a file of code for each of its signatures."""
    return {file.relative_to(home): file.read_bytes() for file in home.rglob("*.nb[ic]")}


def test_doctor_counts_the_kernels_that_are_compiled_as_their_code_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "RECORD", tmp_path / "kernels.txt")
    mended = {"check": "kernels", "ok": False, "next_step": "evenhand doctor --prepare"}
    assert doctor._kernels() == {**mended, "found": "not compiled by the set-up"}
    files = [(tmp_path / f"{name}.nbi", tmp_path / f"{name}.py") for name in "abc"]
    for index, source in files:
        source.touch()
        index.touch()
    kernels.RECORD.write_text("".join(f"{index}\t{source}\n" for index, source in files))
    assert doctor._kernels() == {"check": "kernels", "found": "3 of 3 compiled", "ok": True, "next_step": ""}
    files[0][0].unlink()
    later = files[1][0].stat().st_mtime + 1
    os.utime(files[1][1], (later, later))  # edited: numba compiles it again
    assert doctor._kernels() == {**mended, "found": "1 of 3 compiled"}


@numba.njit(cache=True)
def doubled(number: float) -> float:
    return 2 * number


def test_the_index_of_a_kernel_is_found_by_its_code() -> None:
    doubled(1.0)
    (found,) = kernels._kept(doubled)
    assert Path(found.index_file).name.startswith("test_kernels.doubled-")
    assert (found.source_file, found.is_compiled()) == (__file__, True)


@pytest.mark.long
def test_an_audit_after_the_set_up_compiles_nothing(tmp_path: Path) -> None:
    home = copied(tmp_path / "code")
    compiled = kept(home)
    indexes = {file for file in compiled if file.suffix == ".nbi"}
    assert len(indexes) > 100
    spec = spec_of_all_methods(tmp_path)
    spec.write_text(spec.read_text().replace("methods:\n", "methods:\n  raguel: {fewest: 5}\n"))
    for settings in ((), OTHER):
        done = ran(home, "flows.cli", "audit", str(spec), "--lake", str(tmp_path / "lake"), *QUICK, *settings)
        assert done.returncode in RAN, done.stderr
        assert sorted(kept(home).keys() - compiled.keys()) == []
    assert kept(home) == compiled
    (no_folder := tmp_path / "file").touch()
    done = ran(home, "flows.supervision.prepare", NUMBA_CACHE_DIR=str(no_folder))
    assert done.returncode == 0
    first, last = done.stderr.splitlines()
    assert first == "compiling numerical kernels: one to two minutes, once"
    assert last.startswith("kernels could not be kept")
