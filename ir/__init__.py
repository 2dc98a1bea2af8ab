"""The IR itself: types, operations, text, verification, rewriting and the interpreter; names no op."""
