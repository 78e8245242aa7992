"""The playground: an editor with a live page of its program's capture, served to one browser of this machine."""
