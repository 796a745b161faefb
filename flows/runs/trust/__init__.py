"""Why a run can be trusted: its signature, its entry in the lake's log, what people signed, and the check of it all.

Files and chain of the log, and the arithmetic of signatures, are in ``tasks.lake``.
"""
