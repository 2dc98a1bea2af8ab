"""Programs in which seeded faults are looked for."""
