"""What a run is given and what it leaves behind: spec, record, index, verification, replay, packs.

Tables of results are in ``tasks.lake``.
"""
