"""From objects to rows, tables and lists; pure: nothing here prints, reads a clock or asks the cluster."""
