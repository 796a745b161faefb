"""Stage ``connect``: the graph of feasible changes between applicants.

Its use for recourse is FGCE's (``tasks.methods.fgce``).
"""
