"""Pages over a lake, ``evenhand serve``: what runs found, how sure that is, and who signed it.

They read what is published, and write nothing but entries of the lake's log. ``guard`` decides who is let in, ``index``
what is known of every run without opening it, ``pages`` has a module for each kind of page. No audit is started here.
"""
