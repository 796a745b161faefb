"""Commands that read finished runs: lists, first page, measures, findings, verdicts, queries, files of a report."""
