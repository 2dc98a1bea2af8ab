"""The text language: `load("net.mlc")` is a program whose functions are compiled and whose models are modules."""

from mlc.frontend.language.diagnostics import ProgramError
from mlc.frontend.language.program import Program, functions_of, load

__all__ = ["Program", "ProgramError", "functions_of", "load"]
