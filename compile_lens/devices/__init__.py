"""Models of devices: those that come with the package, as JSON, and those that users bring."""
