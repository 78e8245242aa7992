"""One capture, in this process or in the child."""
