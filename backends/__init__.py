"""From the llvm dialect to something callable."""
