"""The experiments of the GCFN paper (Ma, Melnychuk, Frauen and Feuerriegel)."""
