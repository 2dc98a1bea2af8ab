"""The core IR, independent of any dialect: types, operations, text, verification, rewriting, interpretation."""
