"""Trials that run the code: compared with eager PyTorch, timed, and checked on this machine."""
