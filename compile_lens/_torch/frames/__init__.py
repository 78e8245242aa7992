"""Frames, as Dynamo takes them: whose compile it is, where it ends, and what is left to Python."""
