"""Commands that hold the product against papers and references."""
