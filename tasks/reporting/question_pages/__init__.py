"""Pages of questions of a report: data, charts, page."""
