"""Why a figure of a capture is what it is: what was found, why, and what one could try, in plain lines."""
