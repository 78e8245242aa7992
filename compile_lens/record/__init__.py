"""What was seen: frozen plain data, and its JSON. Nothing here knows how it was seen, or what is made of it."""
