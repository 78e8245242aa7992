"""Triton's compiler, without a device: the only folder that imports ``triton``, and not before it is used.

A kernel's text becomes Triton's own two forms, LLVM IR, PTX and SASS, each with its lines linked to those of the text.
"""
