"""Design matrices: which rows are used, how a control becomes columns, which columns are left.

Scope: one matrix for the whole ladder, of which a rung takes the first columns. Fits of it: one folder up.
"""
