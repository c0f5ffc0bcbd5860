"""Where units are bound: one file a medium."""
