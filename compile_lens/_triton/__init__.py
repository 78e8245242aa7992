"""Triton's compiler without a device.

Only this folder imports ``triton``, and only on use. A kernel is compiled to Triton's two IRs, LLVM IR, PTX and SASS,
each with its lines linked to those of the kernel's text.
"""
