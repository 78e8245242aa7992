"""A process of our own in which code runs that would change the caller's: captures for devices that are not there."""
