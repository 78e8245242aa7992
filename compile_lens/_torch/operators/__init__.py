"""Torch's operators: tables of kernels, the dispatcher, Inductor's registries, and transfer of a program's own
operators."""
