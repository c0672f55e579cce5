"""Learners: they see arrays, never words. `examples` says what they see; `perceptron`, `log_linear` and
`exponentiated_gradient` find the weights; `progress` is what they tell on the way."""
