"""The mlc command and the developer tools."""
