"""Stage ``refit_generators``: one generator trained anew on each of several resamples of the rows.

Scope: the stage. Training rows and evaluation: ``refits``. Their standard error: ``tasks.methods.gcfn.algorithm``.
"""
