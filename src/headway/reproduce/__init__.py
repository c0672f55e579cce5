"""The papers' tables, made again on real data: one module a paper, each with `run`."""
