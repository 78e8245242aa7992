"""What this torch says of its operators: tables of kernels, the dispatcher, Inductor's registries."""
