"""Read tensors from files and fill modules with them."""
