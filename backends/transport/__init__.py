"""Messages between the ranks of a job, and the collectives built on them."""
