"""The language server: `.mlc` and `.mlir` files in an editor (README.md)."""
