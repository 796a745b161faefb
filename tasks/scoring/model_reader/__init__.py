"""The process that reads and queries a foreign model file, apart from the audit, with limits: ``python -m``.

``confined`` is the audit's side of it, ``__main__`` the side of the process, ``limits`` what it may use, ``frames``
what the two tell each other. What a file says: ``tasks.scoring.models``.
"""
