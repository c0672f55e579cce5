"""Encoders: each word of a batch as a vector, from the inputs that its reader makes. One architecture per file."""
