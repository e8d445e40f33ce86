"""One run as every host requests it, several side by side, many as a batch, and diagnostics."""
