"""KV stores that mount kvpool's memory."""
