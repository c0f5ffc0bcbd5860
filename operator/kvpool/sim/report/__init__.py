"""What a simulation says: figures by class and by tier, links, a timeline, and where inputs are from."""
