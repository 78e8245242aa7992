"""The base of every part of a capture: hooks, the recorder, and the code that leaves torch and the program
unchanged."""
