"""Reader of torch's compile logs (``TORCH_TRACE``), which turns one into a program record without importing torch."""
