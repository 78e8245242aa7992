"""Records: frozen plain data and their JSON, independent of how they were observed and how they are used."""
