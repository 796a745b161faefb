"""One data set of one paper, run and kept: what a reproduction of all papers consists of, and resumes from."""

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.reproduce.run import experiments_of
from flows.reproduce.show import as_json
from tasks.pipeline.lineage.digests import code_digest, versions
from tasks.pipeline.registry import METHODS
from tasks.proof.lines import Cell, Figure, Line, Value, Verdict
from tasks.proof.specs import shipped

log = logging.getLogger("evenhand")


@dataclass(frozen=True)
class Part:
    """A data set of a paper."""

    paper: str
    dataset: str
    quick: bool
    data: Path

    @property
    def name(self) -> str:
        """As progress and files have it."""
        return f"{self.paper} {self.dataset}"

    def file(self, kept: Path) -> Path:
        """Where its result is kept."""
        return kept / f"{self.paper}-{self.dataset}{'-quick' if self.quick else ''}.json"

    def key(self) -> str:
        """What its result depends on: code, libraries, published figures, the papers' specs, and its files."""
        specs = sorted(shipped("audits/paper/loan.yaml").parent.glob("*.yaml"))
        digest = code_digest(
            [METHODS[self.paper].path_of("reproduction.experiments")],
            [shipped(f"published/{self.paper}.toml"), *specs],
        )
        files = experiments_of(self.paper, self.quick).experiments[self.dataset].files(self.data)
        seen = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.is_file()]
        return json.dumps([digest, versions(), seen], sort_keys=True)


@dataclass(frozen=True)
class Done:
    """What a part gave."""

    part: Part
    seconds: float
    """Of one core, at the time that it was run."""
    lines: list[Line]
    drawings: list[dict[str, Any]]
    """Plain, as in JSON."""


def done(part: Part, kept: Path | None) -> Done:
    """A part from what is kept, or run now and kept."""
    known = _read(part, kept) if kept else None
    return known or _run(part, kept)


def is_kept(part: Part, kept: Path | None) -> bool:
    """Whether a result of this very code and these files is kept."""
    return kept is not None and _read(part, kept) is not None


def _run(part: Part, kept: Path | None) -> Done:
    began = time.process_time()
    found = experiments_of(part.paper, part.quick).run(part.dataset, part.data)
    said = Done(part, time.process_time() - began, found.lines, [each.plain() for each in found.drawings])
    if kept:
        plain = as_json(said.lines) | {"key": part.key(), "seconds": said.seconds, "drawings": said.drawings}
        draft = part.file(kept).with_suffix(".draft")
        kept.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(plain, indent=1))
        draft.replace(part.file(kept))
    return said


def _read(part: Part, kept: Path) -> Done | None:
    """None where nothing is kept, or of other code, libraries or files."""
    file = part.file(kept)
    if not file.is_file():
        return None
    said = json.loads(file.read_text())
    if said.get("key") != part.key():
        return None
    return Done(part, said["seconds"], [_line(each) for each in said["lines"]], said["drawings"])


def _line(said: Mapping[str, Any]) -> Line:
    """The line that was written; a value that is no number comes back as NaN."""
    figure = Figure(
        said["source"],
        said["reference"],
        Cell(said["what"], said["group"], tuple(said["at"])),
        _value(said["published"]),
        said["tolerance"],
        at_most=said["at_most"],
        at_least=said["at_least"],
    )
    obtained = None if said["unfilled"] else _value(said["obtained"])
    return Line(said["dataset"], figure, obtained, Verdict(said["verdict"]), said["why"])


def _value(said: Value | None) -> Value:
    return float("nan") if said is None else said
