"""Random programs, texts and calls for `mlc fuzz` and for the tests, each generated from its seed alone."""
