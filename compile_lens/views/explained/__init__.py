"""Explanations of a capture's figures in plain lines: the facts, the reasons, and what to try."""
