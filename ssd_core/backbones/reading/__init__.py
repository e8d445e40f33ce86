"""Reading tensors from files and filling modules with them."""
