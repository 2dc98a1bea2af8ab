"""The table of error codes."""
def load(): return {}
