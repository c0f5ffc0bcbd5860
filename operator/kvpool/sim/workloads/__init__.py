"""What is asked of a pool: traces that people bring, and named generators."""
