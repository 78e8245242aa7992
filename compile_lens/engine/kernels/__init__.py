"""Triton kernels compiled for a device that need not be there: here, or in a process that may die of it."""
