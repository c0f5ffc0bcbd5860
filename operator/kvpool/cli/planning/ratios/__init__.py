"""What `kvpool ratio` reads and answers."""
