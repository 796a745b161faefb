"""What the server knows of every run without opening it: summaries (``runs``) and the lake's log (``entries``)."""
