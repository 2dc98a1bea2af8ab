"""Programs of StableHLO on mlc's tensors."""
