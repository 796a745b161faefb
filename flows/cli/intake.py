"""The command ``evenhand intake``: applies the recipe of a spec alone, and prints what it reads."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from flows.cli import options
from flows.cli.terminal import console, errors, print_rows
from schemas.errors import InfrastructureError, SpecError

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: evenhand intake loans.yaml --out loans.parquet")
def intake(
    spec: Annotated[Path, typer.Argument(help="Audit spec.", autocompletion=options.complete_specs)],
    set_: options.SetOption = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all counts here (restricted: values occur).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the cells as they are read, as Parquet.")
    ] = None,
) -> None:
    """Read the table of a spec by its recipe and print the counts: rows, decisions, groups, columns, rules."""
    from flows.cli.draft.review import open_questions
    from flows.cli.draft.vocabulary import is_nobody
    from schemas.audit.file import parse, spec_text
    from tasks.ingest import counts

    spec_file = options.load_spec(spec, options.overrides(None, None, set_ or []))
    parsed = parse(spec_text(spec))
    reasons = reasons_of(spec_text(spec).splitlines(), parsed.lines)
    try:
        with TemporaryDirectory(prefix="evenhand-") as folder, counts.opened(spec_file.spec, Path(folder)) as opened:
            document = counts.facts(spec_file.spec, opened, is_nobody, lambda name: reasons.get(name, ""))
            if out is not None:
                counts.write_table(opened, out, Path(folder) / "rows")
    except SpecError as error:
        raise SpecError(spec_file.describe(error)) from error
    document["questions"] = [question.as_json() for question in open_questions(spec)]
    if json_file is not None:
        try:
            json_file.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise InfrastructureError(f"--json {json_file}: cannot be written ({error.strerror})") from error
    _print(document)


def reasons_of(lines: list[str], places: Mapping[tuple[str | int, ...], int]) -> dict[str, str]:
    """The comment behind each column of a spec, with the reason for which it is left out."""
    commented = {
        str(place[1]): lines[line - 1].partition(" # ")[2].strip()
        for place, line in places.items()
        if len(place) == 2 and place[0] == "columns" and line <= len(lines)
    }
    return {name: comment for name, comment in commented.items() if comment}


def _print(document: dict[str, Any]) -> None:
    """Counts for a terminal; values of decisions and groups are named, no cell of a person is."""
    rows, decision = document["rows"], document["decision"]
    refused = "".join(f", {n:,} {reason}" for reason, n in rows["refused"].items())
    console.print(f"rows {rows['in']:,}: applications {rows['applications']:,}{refused}", markup=False)
    if joined := document.get("joined"):
        console.print(", ".join(f"{name} {n:,}" for name, n in joined.items()), markup=False)
    if years := document["years"]:
        console.print("years: " + ", ".join(f"{year} {n:,}" for year, n in years.items()), markup=False)
    sides = []
    for side in ("favourable", "unfavourable", "neither", "unknown"):
        sides += [{"value": value, "is": side, "rows": n} for value, n in decision[side].items()]
    sides.append({"value": "", "is": "missing", "rows": decision["missing"]})
    print_rows(console, f"decision: {decision['column']}", sides)
    groups = []
    for p in document["protected"]:
        for kind in ("groups", "nobody"):
            for value, n in p[kind].items():
                role = "reference" if value == p["reference"] else "no people" if kind == "nobody" else ""
                group = p["names"].get(value, value)
                groups.append({"attribute": p["name"], "group": group, "value": value, "is": role, "rows": n})
        groups.append({"attribute": p["name"], "group": "", "value": "", "is": "missing", "rows": p["missing"]})
    print_rows(console, "protected", groups)
    columns = []
    for name, column in document["columns"].items():
        if "kind" in column:
            values = column["n"] if column["kind"] == "number" else sum(column["counts"].values())
            of = {"column": name, "kind": column["kind"], "unit": column.get("unit") or ""}
            gone = {"missing": column["missing"], "unread": column.get("unread", 0)}
            columns.append(of | {"values": values} | gone | {"zeros": column.get("zeros", "")})
    print_rows(console, "columns", columns)
    out = sum("kind" not in column for column in document["columns"].values())
    if out:
        errors.print(f"{out} columns of the spec are left out", markup=False)
    print_rows(console, "rules of intake", document["rules"])
