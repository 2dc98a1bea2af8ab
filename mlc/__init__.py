"""mlc: a machine-learning framework that is a compiler all the way down."""
