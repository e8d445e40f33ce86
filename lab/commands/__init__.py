"""The laboratory's commands, which the command line of ssd_core imports when they are given."""
