"""Logs that torch writes of its compiles (``TORCH_TRACE``), read as a program. Needs no torch."""
