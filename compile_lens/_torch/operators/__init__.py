"""Torch's operators: tables of kernels, the dispatcher, Inductor's registries, and a program's own on their way to the
child."""
