"""The laboratory: postcard's pictures and training, and evaluation. It imports ssd_core."""
