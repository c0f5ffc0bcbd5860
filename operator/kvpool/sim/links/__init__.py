"""How long bytes take on links that several transfers share."""
