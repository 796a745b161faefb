"""The audit spec of a file of HMDA: the bundled one with path, year and title, without what is not in the file.

Scope: HMDA in a layout of its own. A table with a few names of HMDA is drafted as any other.
"""

import os
import re
import tempfile
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Final

from flows.cli.options import bundled
from schemas.audit.source import ACTION
from schemas.errors import EvenhandError
from tasks.ingest.hmda.canonical import CANONICAL, lacking
from tasks.ingest.hmda.layouts import Outline, Recognised, begins_as_submission, outlined
from tasks.ingest.hmda.rows import open_file
from tasks.ingest.sources.raw import COLUMNS

_PROTECTED: Final = ("derived_race", "derived_ethnicity", "derived_sex")
_LEAST_GROUPS: Final = 2
_MOST_ROWS: Final = 2_000_000
"""Of a file that is converted for its groups."""
_RATIO, _EXACT_RATIO = "debt_to_income_ratio", "debt_to_income_pct"
_SCORE: Final = """\
  applicant_credit_score:
    type: continuous
    role: financial
    block: history
    label: credit score
"""
_EXACT_COLUMN: Final = """\
  debt_to_income_pct:
    type: continuous
    role: [financial, mediator]
    block: finances
    plausible: [0, 100]
    recourse: {weight: 0.6, step: 1}
    label: debt-to-income ratio (percent)
"""
_RECOMMENDATIONS: Final = """\
  # what an underwriting system recommended on this very application is a part of the decision
"""
_RESULT: Final = "  aus_result_{}: {{type: nominal, role: excluded}}\n"
_PUBLIC: Final = "# Public HMDA has no credit score, no reserves and no verification, by which lenders decide as well: columns are not complete,"  # noqa: E501
_OWN: Final = "# A submission has the credit score, but no reserves and no verification, by which lenders decide as well: columns are not complete,"  # noqa: E501


def hmda_spec(path: Path, output: Path | None = None) -> str | None:
    """The spec of a file; None of a file that is not HMDA, or has not what an audit of HMDA compares.

    Args:
        path: of the file.
        output: where the spec will lie: its path of the file is from there.

    Raises:
        DataQualityError: a lender's own submission that cannot be read as one, of which nothing else may be drafted.
    """
    try:
        with tempfile.TemporaryDirectory() as scratch:
            recognised, outline = outlined(path, Path(scratch))
    except EvenhandError:
        if begins_as_submission(path):
            raise
        return None
    bundled_spec = next((spec for spec in bundled() if spec.stem == "hmda"), None)
    absent = set(lacking(recognised))
    required = {ACTION, *_PROTECTED, "loan_amount_usd"}
    if bundled_spec is None or not _is_layout(recognised) or required & absent or not outline.years:
        return None
    text = bundled_spec.read_text(encoding="utf-8")
    if outline.rows <= _MOST_ROWS:  # a file of the whole country has every group, and takes minutes to convert
        text, single = _with_groups(text, _values_found(path))
        absent |= single
    text = _without(text, absent)
    year = max(outline.years)
    return _of_file(_submitted(text) if recognised.restricted else text, path, output, recognised, outline, year)


def _values_found(path: Path) -> dict[str, dict[str, bool]]:
    """Column of a protected attribute -> the values that some row has, and whether one of these rows is audited."""
    audited = f"{ACTION} IN ('1', '2', '3') AND coalesce(property_type, '') IN ('1', '2')"
    group_values: dict[str, dict[str, bool]] = {}
    with open_file(path) as file:
        for name in _PROTECTED:
            query = f"SELECT {name}, bool_or({audited}) FROM {file.table()} WHERE {name} IS NOT NULL GROUP BY ALL"  # noqa: S608 names of ours
            group_values[name] = dict(file.connection.sql(query).fetchall())
    return group_values


def _with_groups(
    text: str, group_values: Mapping[str, Mapping[str, bool]], least: int = _LEAST_GROUPS
) -> tuple[str, set[str]]:
    """The spec with the groups that some row belongs to, and the attributes that are left out.

    An audit stops at a group that nobody is in, and at an attribute with one group.
    """
    start, stop = text.index("protected:\n"), text.index("# financial: ")
    attributes = re.split(r"(?m)^(?=  - name: )", text[start:stop])
    attribute_texts, left_out = [attributes[0]], set()
    for attribute in attributes[1:]:
        values = next(values for name, values in group_values.items() if f"[{name}]" in attribute)
        groups = re.findall(r"([A-Za-z][A-Za-z ]*): \[([A-Z0-9][^\]]*)\]", attribute)
        present = {name: [code for code in listed.split(", ") if code in values] for name, listed in groups}
        if sum(any(values[code] for code in codes) for codes in present.values()) < least:
            left_out.add(re.findall(r"- name: (\w+)", attribute)[0])
            continue
        absent = {name for name, codes in present.items() if not codes}
        for name in absent if len(absent) < len(present) else ():
            attribute = re.sub(rf"(?m)^ +{name}: \[.*\]\n|\b{name}: \[[^\]]*\](, |(?=\}}))", "", attribute)
        attribute_texts.append(attribute.replace(", }", "}"))
    if len(attribute_texts) == 1:  # nobody to compare: the audit says why
        return _with_groups(text, group_values, 0)
    return text[:start] + "".join(attribute_texts) + text[stop:], left_out


def _is_layout(recognised: Recognised) -> bool:
    """Whether a file has most of a layout, or nothing else than a part of it."""
    names = recognised.layout.columns
    has_years = bool(set(COLUMNS) & set(recognised.given))
    foreign = [name for name in recognised.unknown if not name.startswith("unnamed")]
    return has_years and (not foreign or len(recognised.missing) * 2 < len(names))


def _without(text: str, absent: Set[str]) -> str:
    """The spec without columns that are not in a file: their entries, and their names in lists and tiers."""
    lines, left_out, in_entry = [], [], False
    for line in text.splitlines(keepends=True):
        entry = re.match(r"( *)([a-z_0-9]+):", line)
        if entry and entry[2] in absent and len(entry[1]) in (2, 4):
            in_entry = True
            left_out.append(entry[2])
            indent = len(entry[1])
            continue
        if in_entry and (not line.strip() or len(line) - len(line.lstrip()) > indent):
            continue
        in_entry = False
        tier = re.fullmatch(r"( *- \[)([\w, ]+)(\]\n)", line)
        if tier and set(tier[2].split(", ")) & absent:
            if remaining := [name for name in tier[2].split(", ") if name not in absent]:
                lines.append(tier[1] + ", ".join(remaining) + tier[3])
            continue
        listed = re.fullmatch(r"( +\w+: \[)([\w, ]+)(\].*\n)", line)
        if listed and (names := listed[2].split(", ")) and set(names) & absent & set(CANONICAL):
            line = listed[1] + ", ".join(name for name in names if name not in absent) + listed[3]
        lines.append(line)
    note = f"# The file has none of these columns, which other years have: {', '.join(dict.fromkeys(left_out))}.\n"
    return "".join(lines).replace("columns:\n", f"{note}columns:\n", 1) if left_out else "".join(lines)


def _submitted(text: str) -> str:
    """The spec with the columns that only a lender's own file has."""
    start = text.index(f"  {_RATIO}:\n")
    stop = text.index("  ltv_ratio:\n")
    text = text[:start] + _EXACT_COLUMN + _SCORE + text[stop:]
    text = text.replace(f"      - [ltv_ratio, {_RATIO}]\n", f"      - [ltv_ratio, {_EXACT_RATIO}]\n")
    text = text.replace("      - [income_usd]\n", "      - [income_usd, applicant_credit_score]\n")
    text = text.replace(f"finances: [income_usd, {_RATIO}]", f"finances: [income_usd, {_EXACT_RATIO}]")
    text = text.replace(
        "      place: [lender_id] # fixed effects, told by the linear fit; the rung before is judged\n",
        "      history: [applicant_credit_score]\n",
    )
    text = text.replace("  lender_id: {type: nominal, role: excluded, block: place, label: lender}\n", "")
    text = text.replace(
        "  # for the ladder alone: no model sees it. Errors count applications of one lender as dependent\n", ""
    )
    text = text.replace("public HMDA has no score, so history stays out", "history is the credit score")
    results = _RECOMMENDATIONS + "".join(_RESULT.format(i) for i in range(1, 6))
    text = text.replace("  applicant_age:\n", f"{results}  applicant_age:\n", 1)
    text = text.replace(_PUBLIC, _OWN)
    return re.sub(r"disclosure: .*", "disclosure: {profile: strict} # a lender's own file", text)


def _of_file(text: str, path: Path, output: Path | None, recognised: Recognised, outline: Outline, year: int) -> str:
    """The spec with path, year and title of a file, and a head with its origin."""
    lender = f" of {recognised.sheet.lender}" if recognised.sheet else ""
    file_path = os.path.relpath(path, output.parent) if output is not None and not path.is_absolute() else str(path)
    layout = recognised.layout.name.replace("_", " ")
    command = f"evenhand audit {output}" if output else "evenhand audit SPEC"
    head = f"# HMDA, {layout} layout, drafted from {_quoted(path.name)}; run it with: {command}\n"
    body = text[text.index("name: hmda\n") :]
    body = re.sub(r"title: .*\n", lambda _: f"title: {_quoted(f'Loan decisions{lender}, {year}')}\n", body, count=1)
    body = re.sub(r"year: \d+\n", f"year: {year}\n", body, count=1)
    body = re.sub(r"  vintage: .*\n", lambda _: f"  path: {_quoted(file_path)}\n", body, count=1)
    if len(outline.years) > 1:
        keep = f"  keep:\n    activity_year: [{year}] # the file has rows of {', '.join(map(str, outline.years))}\n"
        body = body.replace("  keep:\n", keep, 1)
    return head + body


def _quoted(text: str) -> str:
    """A text as YAML, in one line."""
    return "'" + " ".join(text.split()).replace("'", "''") + "'"
