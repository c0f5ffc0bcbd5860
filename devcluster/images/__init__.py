"""Container images without a registry: built from the project's own Dockerfile, kept as one archive."""
