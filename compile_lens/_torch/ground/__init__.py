"""The base of every part of a capture: hooks, the recorder, and what leaves torch and the program as they were."""
