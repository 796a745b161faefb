"""Summary of a run: the few facts that lists of runs show, at most 8 kB, stored with its manifest of some 75 kB.

It is made of the manifest and of report.json, so that it holds what is published and nothing else. The manifest names
its digest. A run of an earlier version has none, and is summed up from both when it is read.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from flows.runs.index import report_named, spec_of, vintage_words
from schemas.errors import IntegrityError
from schemas.questions import QUESTIONS, QUESTIONS_BEFORE, row_now, state_now
from tasks.lake.storage import mapping_of
from tasks.lake.store import Lake

MOST_BYTES: Final = 8000
_MOST_WORDS: Final = 400
"""Letters of a title and of a headline, so that both fit with the states."""
NAMED: Final = "summary_sha256"
"""Key of the manifest that holds the digest of the summary."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Figure(_Part):
    """One figure of a group, as published: of Decide (all, adjusted, nearest), or of a theory."""

    name: str
    attribute: str
    group: str
    value: float | None = None
    shown: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    state: str = ""

    @model_validator(mode="before")
    @classmethod
    def _with_keys_of_this_version(cls, raw: Any) -> Any:
        """A figure that an earlier version wrote."""
        if not isinstance(raw, dict):
            return raw
        name, state = raw.get("name", ""), raw.get("state", "")
        return {**raw, "name": QUESTIONS_BEFORE.get(name, name), "state": state_now(state)}


class Summary(_Part):
    """What lists show of a run."""

    run: str
    audit: str
    title: str = ""
    year: int
    partition: dict[str, str] | None = None
    state: str
    """The state that decides the exit code."""
    theories: dict[str, str] = {}
    """Theory -> its state, in the order of the questions."""
    headline: str = ""
    figures: tuple[Figure, ...] = ()
    """The three comparisons of Decide, then every group in every theory, as far as 8 kB reach."""
    left: int = 0
    """Figures that found no room."""
    finished: str
    seconds: float = 0.0
    source_sha256: str = ""
    spec_sha256: str = ""
    code: str = ""
    vintage: str = ""
    disclosure: str = ""
    expected: dict[str, Any] | None = None
    """When a run of the audit is due, by its spec."""

    @model_validator(mode="before")
    @classmethod
    def _with_keys_of_this_version(cls, raw: Any) -> Any:
        """A summary that an earlier version wrote."""
        if not isinstance(raw, dict):
            return raw
        named: dict[str, Any] = {"state": state_now(raw["state"])} if isinstance(raw.get("state"), str) else {}
        if isinstance(states := raw.get("theories"), dict):
            named["theories"] = {QUESTIONS_BEFORE.get(key, key): state_now(state) for key, state in states.items()}
        return {**raw, **named}

    @property
    def question_states(self) -> dict[str, str]:
        """The theories in the order of the questions."""
        return {theory.value: self.theories[theory] for theory in QUESTIONS if theory in self.theories}


def summary_path(run: str) -> str:
    """Where the summary of a run lies."""
    return f"runs/{run}/summary.json"


def summary_of(manifest: Mapping[str, Any], report: bytes | None) -> Summary:
    """The summary of a run, by its manifest and the content of its report.json, if there is a published one.

    Raises:
        KeyError: the manifest has not the keys of every version.
    """
    content: dict[str, Any] = {}
    with suppress(ValueError):  # a report of an earlier version may not be readable
        content = mapping_of(report)
    rows: list[dict[str, Any]] = []
    with suppress(KeyError, TypeError, ValueError):
        table = content["theories"]
        rows = [row_now(dict(zip(table["columns"], row, strict=True))) for row in table["rows"]]
    theories = {row["theory"]: row["state"] for row in rows if row.get("role") == "theory"}
    spec = spec_of(manifest)
    return Summary(
        run=manifest["run"],
        audit=manifest["dataset"],
        title=str(spec.get("title") or manifest["dataset"])[:_MOST_WORDS],
        year=manifest["year"],
        partition=manifest.get("partition"),
        state=state_now(manifest["state"]),
        theories={t.value: theories[t] for t in QUESTIONS if t in theories},
        headline=str(content.get("headline", {}).get("words", ""))[:_MOST_WORDS],
        figures=tuple(_figures(content)),
        finished=manifest["finished"],
        seconds=round(sum(float(cost.get("seconds", 0)) for cost in manifest["lineage"]), 1),
        source_sha256=manifest["source_sha256"],
        spec_sha256=manifest.get("spec_sha256", ""),
        code=manifest["code"],
        vintage=vintage_words(spec["source"]) if spec.get("source") else "",
        disclosure=(spec.get("disclosure") or {}).get("profile", ""),
        expected=spec.get("expected"),
    )


def written(summary: Summary) -> bytes:
    """The content of the file: figures that do not fit are counted in ``left``."""
    shortened = summary
    while len(content := shortened.model_dump_json(exclude_defaults=True).encode()) > MOST_BYTES and shortened.figures:
        fewer = shortened.figures[: len(shortened.figures) - max(len(shortened.figures) // 8, 1)]
        shortened = shortened.model_copy(update={"figures": fewer, "left": len(summary.figures) - len(fewer)})
    return content


def write_summary(lake: Lake, manifest: Mapping[str, Any]) -> str:
    """Write the summary of a run, before its manifest; returns the sha256 of the summary."""
    run = manifest["run"]
    content = written(summary_of(manifest, lake.storage.read(f"reports/{run}/report.json")))
    lake.write_file(summary_path(run), content, draft=f"tmp/{run}-summary.json")
    return hashlib.sha256(content).hexdigest()


def read_summary(lake: Lake, run: str) -> Summary:
    """The summary of a run: its file, or of an earlier version its manifest and report.json.

    The file is not held against the manifest here, as a list is no proof: ``evenhand verify`` does that.

    Raises:
        IntegrityError: the file, or the manifest, is none.
    """
    content = lake.storage.read(summary_path(run))
    path = summary_path(run) if content is not None else f"runs/{run}/manifest.json"
    try:
        if content is not None and len(content) > MOST_BYTES:
            raise ValueError("larger than any that is written")
        if content is not None:
            summary = Summary.model_validate_json(content)
        else:
            manifest = mapping_of(lake.storage.read(path))
            storage, folder = report_named(lake, run, manifest)
            summary = summary_of(manifest, storage.read(f"{folder}/report.json"))
        if summary.run != run:
            raise ValueError("of another run")
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        where = lake.storage.where(path)
        raise IntegrityError(f"{where} cannot be read; run that audit again to rewrite it") from error
    return summary


def _figures(report: Mapping[str, Any]) -> Iterator[Figure]:
    """Every figure of report.json that lists show; nothing of a report of an earlier version."""
    try:
        for figure in report.get("figures", ()):
            number, ends = figure["points"], figure["interval"]
            yield Figure(
                **{key: figure[key] for key in ("name", "attribute", "group", "state")},
                **{"value": number["value"], "shown": number["shown"], "low": ends["low"], "high": ends["high"]},
                n=figure["n"]["value"],
            )
        for group in report.get("groups", ()):
            for row in group["verdicts"]:
                yield Figure(
                    **{"name": row["theory"], "attribute": group["attribute"], "group": group["group"]},
                    **{"value": row["effect"]["value"], "shown": row["effect"]["shown"], "state": row["state"]},
                    **{"low": row["interval"]["low"], "high": row["interval"]["high"], "n": group["n"]["value"]},
                )
    except (KeyError, TypeError, ValidationError):
        return
