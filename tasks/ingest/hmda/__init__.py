"""Files of the Home Mortgage Disclosure Act, of any year and layout, as one table of applications."""
