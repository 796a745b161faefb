"""Pages about one run: its report, measures, findings, data, lineage, files, and its review."""
