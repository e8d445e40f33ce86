"""Editing a picture by its words: what the words change, what they hold, and the rule per cell."""
