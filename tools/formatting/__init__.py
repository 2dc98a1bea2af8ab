"""The layout of `.mlc` and `.mlir` texts: spaces, indentation and empty lines, and nothing else."""
