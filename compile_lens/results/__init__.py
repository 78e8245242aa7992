"""Results: records with their measures and views as methods."""
