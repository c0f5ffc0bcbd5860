"""Published claims, run again: each with its source, its gate and what came out."""
