"""Pages about the lake: audits, runs, years and trends, search, definitions."""
