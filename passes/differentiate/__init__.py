"""The expansion of derivatives and batches of functions: reverse mode, forward mode and vmap."""
