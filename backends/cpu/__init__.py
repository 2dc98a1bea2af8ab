"""CPU backend: targets, the thread pool, and the emitted Python callable."""
