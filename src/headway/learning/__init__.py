"""Learners: they see arrays, never words.

`examples` says what they see; `perceptron`, `log_linear`, `exponentiated_gradient` and others find the weights;
`progress` is what they report after each pass, and `monitor` watches them.
"""
