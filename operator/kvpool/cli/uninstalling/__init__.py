"""What `uninstall` finds, in which order it goes, and how it is made to go."""
