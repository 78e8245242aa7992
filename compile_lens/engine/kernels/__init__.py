"""Compilation of Triton kernels for a device that may be absent, in this process or in one that may crash."""
