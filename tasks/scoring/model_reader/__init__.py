"""The process that reads a stranger's model file and asks it, apart from the audit, with limits: ``python -m``.

``confined`` is the audit's side of it, ``__main__`` the side of the process, ``limits`` what it may use, ``frames``
what the two tell each other. What a file says: ``tasks.scoring.models``.
"""
