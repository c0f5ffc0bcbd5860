"""Constants of the timing model from measurements: fitted, accepted, watched, and with their origin."""
