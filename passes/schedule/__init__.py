"""Transforms of a kernel's schedule, and the schedules of contractions that are made of them."""
