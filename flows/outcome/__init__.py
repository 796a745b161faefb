"""Reports how a run ended: the state on the server, its message, the log, artifacts, and alerts.

Scope: words and sending, from published tables alone. Records of runs: ``flows.runs``. Whether a run that was expected
never came: ``flows.operations.overdue``.
"""
