"""The capacity-ratio planner: how many sessions tiers of memory hold, and which limit binds."""
