"""How the cells of a table are read: spellings, missing words, numbers, dates, bands and codes; plain values alone."""
