"""What the user can put right."""


class Failure(Exception):
    """One sentence: what was wrong, where, and what would be right."""
