"""Records: frozen plain data, and their JSON. A record does not know how it was observed, or what is made of it."""
