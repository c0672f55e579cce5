"""Features and inference put together: `arc_factored` scores trees, `labeller` labels them, `arc_model` is a trained
parser and its saved form."""
