"""Part of GCFN's section on predictors that are trained to be fair.

The audited decisions come first, in the folder above.
"""
