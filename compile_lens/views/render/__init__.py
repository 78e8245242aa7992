"""A Document in, text or bytes out: each format exists once."""
