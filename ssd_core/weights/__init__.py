"""Find, load, download, convert, quantise and size weights."""
