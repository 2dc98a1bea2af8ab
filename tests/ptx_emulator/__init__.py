"""PTX run by an emulator that is not ours: README.md says how it is built."""
