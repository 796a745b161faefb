"""Guards cells of CSV against spreadsheets, which run text that begins as a formula does."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet may take for the beginning of a formula."""


def guarded(value: object) -> object:
    """Text like a formula with an apostrophe before it; numbers and all other text as they are."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
