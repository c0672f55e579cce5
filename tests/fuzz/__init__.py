"""Random and hostile input for everything that reads: `make fuzz` runs it for long, `make test` for a minute."""
