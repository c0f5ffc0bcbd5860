"""A real store on this machine, to hold the simulator against."""
