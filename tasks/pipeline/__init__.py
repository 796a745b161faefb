"""What a stage and a method are: the contract, its validation, the lineage of its results, and the registry of methods.

The order of the stages is in ``tasks.plan``. Files are in ``tasks.lake``.
"""
