"""The playground: an editor and the page of a capture that follows it, served to one browser of this machine."""
