"""Several captures of one function side by side: what differs, and why."""
