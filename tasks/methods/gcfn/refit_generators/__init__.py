"""Stage ``refit_generators``: trains one generator again on each of several resamples of the rows.

Scope: the stage. Training rows and evaluation: ``refits``. Their standard error: ``tasks.methods.gcfn.algorithm``.
"""
