"""Fused kernels for NVIDIA's GPUs: CUDA C++, compiled when first used (`nvrtc`), and who launches it."""
