"""Engine instances: prefill queues, decoding batches, and both mixed in one engine."""
