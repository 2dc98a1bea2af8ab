"""Programs that measure; each prints what it compares with."""
