"""kvpool: one planning core for the KV-cache memory of AI supernodes, and its operator."""
