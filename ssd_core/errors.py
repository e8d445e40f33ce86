"""The one exception that users are meant to read."""


class SSDError(Exception):
    """What the user gave cannot work; the message is one line: what is wrong, where, what to do."""
