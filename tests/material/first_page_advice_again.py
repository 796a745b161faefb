"""Lines of advice on the first page, computed a second time (``first_page_again``): rule -> words, or nothing."""

import re

from first_page_again import Page
from first_page_lines_again import detectable, left_out, lost, wait

from schemas.tables.verdicts import REPORTED, VERDICTS

HISTORY = ("score", "history", "bankrupt", "delinquen", "fico")
LIMITED = ("outcome", "direct", "total", "recourse")


def percent(share: float) -> str:
    """Percent to a whole number from ten, else to a decimal."""
    return f"{100 * share:.0f}" if 100 * share >= 10 else re.sub(r"\.0$", "", f"{100 * share:.1f}")


def outside(page: Page) -> list[str]:
    """Groups whose adjusted difference is outside, that of the figures first."""
    ordered = sorted(page.enough, key=lambda name: name != page.chosen)
    return [name for name in ordered if page.state("direct", name) == "breach"]


def confounder(page: Page) -> str:
    """How strong an unseen factor would have to be."""
    open_only = [name for name in sorted(page.enough, key=lambda n: n != page.chosen) if page.widened_only(name)]
    for group in (*outside(page), *open_only):
        share = page.row("direct", group).robustness
        if share is None or share != share:
            continue
        words = (
            f"A factor not on file that explains {percent(share)} % of what is left of both {page.attribute} and "
            "approval would remove the adjusted gap."
        )
        rows = [row for row in page.material.tables["published_adjusted_benchmarks"] if row["group"] == group]
        strongest = max((row for row in rows if row["times"] == 1), key=lambda row: row["of_denial"], default=None)
        if strongest is None:
            return words
        column = strongest["column"].replace("_", " ")
        shares = [100 * strongest[name] for name in ("of_group", "of_denial")]
        of_group, of_denial = ("below 1" if 0 < each < 0.5 else f"{each:.0f}" for each in shares)
        return f"{words} {column.capitalize()}, the strongest on file, explains {of_group} % and {of_denial} %."
    return ""


def no_credit_score(page: Page) -> str:
    """That no column is a credit score, where somebody said no word of all columns."""
    row = None if page.chosen is None else page.row("direct", page.chosen)
    named = " ".join(f"{n} {c.label}" for n, c in page.material.settings.columns.items()).replace("_", " ").lower()
    known = any(word in named for word in HISTORY) and page.material.settings.source.kind != "hmda"
    if row is None or row.withheld or row.value != row.value or known:
        return ""
    if page.material.settings.verdicts.columns_complete is True:
        return ""
    return "No column is named as a credit score or payment history: one could raise or lower the adjusted gap."


def year_lacks(page: Page) -> str:
    """Columns that the data of the year do not have."""
    lacking, year = page.material.settings.source.lacking, page.material.settings.year
    if len(lacking) > 3:
        return f"The data of {year} lack columns that the audit asks for."
    named = " and ".join(name.replace("_", " ") for name in lacking)
    return f"The data of {year} do not have {named}, which the audit asks for." if lacking else ""


def without_limit(page: Page) -> bool:
    """Whether a theory was measured without a limit."""
    return any(page.wholes.get(theory, ("",))[0] == "no_limit" for theory in LIMITED)


def change(page: Page) -> dict[str, str]:
    """What would change the findings."""
    found = {
        "confounder": confounder(page),
        "no_credit_score": no_credit_score(page),
        "year_lacks": year_lacks(page),
        "left_out": left_out(page),
        "detectable": detectable(page),
        "missing_limit": "Fix a limit before the next run." if without_limit(page) else "",
    }
    return {rule: words for rule, words in found.items() if words}


def steps(page: Page) -> dict[str, str]:
    """What to do next."""
    source, files = page.material.settings.source, outside(page)
    public = source.kind == "hmda"
    state = page.wholes.get("direct", ("",))[0]
    lender = {True: "", False: "By lender: this file mixes many."}[not public]
    if public and source.vintage_file is None:
        lender = "By lender, where the file mixes several."
    own = bool(files) and not public
    read = ""
    if own:
        row = page.row("direct", files[0], "st_effect")
        read = f"Read the files of denied {files[0]} applicants."
        if row is not None and row.events == row.events:
            read = (
                f"Read the files of the {min(row.events, 20):.0f} denied {files[0]} applicants whose nearest "
                f"{page.reference} applicants were approved most often."
            )
    found = {
        "fix_data": "Correct the data, then run again." if page.decision.headline.rule == "check_data" else "",
        "add_columns": "Repeat with credit score and underwriting result from the lender's files."
        if public and state in ("breach", "insufficient_evidence", "no_limit")
        else "",
        "by_lender": lender,
        "read_later": "Only then read files." if files and public else "",
        "read_files": read,
        "ask_reasons": "Ask underwriting for the reasons on record." if own else "",
        "repeat": "Repeat with what these add." if own else "",
        "wait": wait(page),
        "set_limits": "Set the missing limits, with their source." if without_limit(page) else "",
    }
    return {rule: words for rule, words in found.items() if words}


def cannot(page: Page) -> list[str]:
    """What the page cannot tell."""
    source = page.material.settings.source
    age = page.material.settings.run_year - page.material.settings.year
    second = "What the lender saw beyond these columns."
    if age >= 5:
        second = "How decisions are made today."
    if "sample" in str(source.path):
        second = "What holds beyond this sample."
    if source.kind == "hmda":
        second = "Which lender, where the file mixes several." if source.vintage_file is None else "Which lender."
    drawn = [m.sampled for m in page.material.measures if m.sampled]
    asked = ""
    if drawn:
        few, every = (int(each) for each in drawn[0].split(" of "))
        asked = f"What applicants who were not drawn would show: {few:,} of {every:,} were."
    few = dict.fromkeys(row["group"] for row in page.material.rows(VERDICTS) if row["reason"] == REPORTED)
    words = "Anything about groups below 30 applicants and 1 % of all, which are reported and not judged"
    reported = f"{words}: {', '.join(few)}."
    lines = ["Why decisions differ, or whether that is lawful.", second, asked, lost(page), reported * bool(few)]
    return [*filter(None, lines), "Anything about a single applicant."]
