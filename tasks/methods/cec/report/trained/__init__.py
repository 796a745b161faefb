"""Part of CEC's section on models that are trained for consistency.

The audited model comes first, in the folder above.
"""
