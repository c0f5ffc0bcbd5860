"""Which tier an object of the KV cache belongs in, and which one leaves when room is needed."""
