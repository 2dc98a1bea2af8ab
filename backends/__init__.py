"""Backends: code generation from the llvm dialect, linking, loading and calling."""
