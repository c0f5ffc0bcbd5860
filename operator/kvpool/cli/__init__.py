"""Command lines for people: `kubectl kvpool`. Verbs ask the cluster, views make tables, printing prints."""
