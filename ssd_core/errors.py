"""The one exception whose message is written for users."""


class SSDError(Exception):
    """The user's input cannot work. The message is one line: what is wrong, where, what to do."""
