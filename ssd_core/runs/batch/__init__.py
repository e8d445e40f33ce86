"""Many pictures: batches that one process or many workers draw, each file written once."""
