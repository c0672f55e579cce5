"""The algorithms of `headway.torch` in Triton, for GPUs without CUDA kernels: one program a sentence."""
