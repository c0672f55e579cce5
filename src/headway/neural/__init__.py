"""A neural parser on the same exact trees: encoders, a biaffine scorer, and the learners as losses."""
