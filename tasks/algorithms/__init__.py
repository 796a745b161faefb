"""Pure numerical code: arrays and a seeded Generator in, arrays or a frozen dataclass out."""
