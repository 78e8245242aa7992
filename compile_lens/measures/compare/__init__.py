"""Several captures of one function side by side: a row for each Python line, and why its cells differ.

Two captures are matched as ``diff`` matches them (``measures/diff/``); here that is read for several at once.
"""
