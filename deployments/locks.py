"""Writes the locks: every library of an installation, with its version and the sha256 of its files (`make lock`).

``requirements.lock`` is what an installation runs on, ``-dask``, ``-dev`` and ``-build`` what comes on top of it, and
``-docs`` what builds the documentation site, in an environment of its own. torch
stands apart: the wheel for processors is version ``2.13.0+cpu`` in an index of PyTorch's own, and the general index has
another file under ``2.13.0`` that brings sixteen packages of CUDA. ``requirements-torch.lock`` takes the files of the
general index, and those for processors that this machine can see; it never drops one.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = "3.11"
TORCH = "torch==2.13.0"
NEEDED_BY_TORCH = ("filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy>=1.13.3", "typing-extensions")
"""What torch requires but for the parts of CUDA; ``pip check`` in the image holds it against the wheel."""
LOCKS = {
    "requirements.lock": [
        word for extra in ("pipeline", "serve", "lake", "pdf", "stats", "proxy") for word in ("--extra", extra)
    ],
    "requirements-dask.lock": ["--extra", "dask"],
    "requirements-dev.lock": ["--extra", "dev"],
}
BUILD = ("hatchling>=1.27", "editables>=0.5")
Block = tuple[str, str]
"""Name of a library, and its lines in a lock."""


def main() -> None:
    """Write all locks beside pyproject.toml; versions stay as they are unless ``--upgrade`` is given."""
    known: dict[str, str] = {}
    upgraded = "--upgrade" in sys.argv[1:]
    pins = [] if upgraded else [line for name in LOCKS for line in _pins(ROOT / name)]
    for name, options in LOCKS.items():
        blocks = [
            each for each in _compiled(["pyproject.toml", *options], [*pins, *known.values()]) if each[0] != "torch"
        ]
        own = {at: text for at, text in blocks if at not in known}
        known |= {at: text.split(" ")[0] for at, text in own.items()}
        _write(ROOT / name, own)
    build = dict(_compiled([], [*pins, *known.values()], BUILD))
    _write(ROOT / "requirements-build.lock", build)
    docs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    pins_of_docs = [] if upgraded else _pins(ROOT / "requirements-docs.lock")
    _write(ROOT / "requirements-docs.lock", dict(_compiled([], pins_of_docs, tuple(docs))))
    _write_torch(ROOT / "requirements-torch.lock")


def _pins(lock: Path) -> list[str]:
    return re.findall(r"^([A-Za-z0-9][\w.-]*==[^\s;\\]+)", lock.read_text(), re.MULTILINE) if lock.is_file() else []


def _compiled(sources: list[str], pins: list[str], wanted: tuple[str, ...] = ()) -> list[Block]:
    """What uv makes of sources: the blocks of libraries with their hashes."""
    with tempfile.TemporaryDirectory() as scratch:
        files = {
            "constraints.txt": [pin for pin in pins if not pin.startswith("torch==")],
            # torch would bring CUDA, and PySensemakr, of which a file of data is read, a hundred packages of Jupyter
            "without.txt": [f'{name} ; sys_platform == "never"' for name in ("torch", "jupyter")],
            "also.in": list(wanted) if wanted else list(NEEDED_BY_TORCH),
        }
        for name, lines in files.items():
            Path(scratch, name).write_text("\n".join(lines) + "\n")
        given = ["-c", f"{scratch}/constraints.txt", "--override", f"{scratch}/without.txt"]
        said = _uv([*given, *sources, f"{scratch}/also.in"])
    found = re.findall(r"^([A-Za-z0-9][\w.-]*)==.*(?:\n    --hash.*)*", said, re.MULTILINE)
    texts = re.findall(r"^[A-Za-z0-9][\w.-]*==.*(?:\n    --hash.*)*", said, re.MULTILINE)
    return list(zip(found, texts, strict=True))


def _uv(words: list[str]) -> str:
    """What `uv pip compile` prints."""
    fixed = ["--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--python-version", PYTHON]
    command = [sys.executable, "-m", "uv", "pip", "compile", *fixed, *words]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def _write(lock: Path, blocks: dict[str, str]) -> None:
    lock.write_text("".join(f"{blocks[name]}\n" for name in sorted(blocks)))
    sys.stdout.write(f"{lock.name}: {len(blocks)} libraries\n")


def _write_torch(lock: Path) -> None:
    """All files of the version that the general index lists, those seen here, and those that the lock has already."""
    before = re.findall(r"sha256:([0-9a-f]{64})", lock.read_text()) if lock.is_file() else []
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "torch.in").write_text(f"{TORCH}\n")
        listed = re.findall(r"^torch==.*(?:\n    --hash.*)*", _uv([f"{scratch}/torch.in"]), re.MULTILINE)
    digests = sorted({*before, *re.findall(r"sha256:([0-9a-f]{64})", listed[0]), *_seen_here()})
    lock.write_text(" \\\n".join([TORCH, *(f"    --hash=sha256:{digest}" for digest in digests)]) + "\n")
    sys.stdout.write(f"{lock.name}: {len(digests)} files\n")


def _seen_here() -> list[str]:
    """The digest of the wheel that pip would take on this machine."""
    with tempfile.TemporaryDirectory() as scratch:
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, TORCH]
        subprocess.run(words, check=True)  # noqa: S603 our own words
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in Path(scratch).glob("*.whl")]


if __name__ == "__main__":
    main()
