"""From a program to tensor IR."""
