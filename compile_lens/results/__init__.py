"""What users hold: the record with the measures and views of it at hand."""
