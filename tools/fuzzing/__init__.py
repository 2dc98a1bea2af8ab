"""Random programs, texts and calls for `mlc fuzz` and for the tests: each follows from its seed alone."""
