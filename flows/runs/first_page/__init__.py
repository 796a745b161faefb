"""The first page of a run in the terminal: what report.json says (``content``), laid out as lines (``lines``)."""
