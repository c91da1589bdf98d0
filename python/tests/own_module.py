"""A module of an institution's own, whose variables a model changes."""

COUNT = 0
SEEN = []


def count():
    global COUNT
    COUNT += 1
    return COUNT


def again():
    """As it was imported."""
    global COUNT
    COUNT = 0
    SEEN.clear()
    globals().pop("LATE", None)
