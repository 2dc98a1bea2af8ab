"""Running on the CPU: threads, the call contract, vector mathematics."""
