"""Dates."""
from datetime import datetime
def parse(text, formats):
    for f in formats:
        try:
            return datetime.strptime(text, f).date().isoformat()
        except ValueError:
            pass
    return None
