"""What every part of a capture stands on: hooks, the recorder, and how torch and the program are left as they were."""
