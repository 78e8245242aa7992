"""A separate process for code that would change the caller's process, such as captures for absent devices."""
