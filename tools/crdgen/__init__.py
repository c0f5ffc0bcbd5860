"""Generates the CustomResourceDefinitions from the pydantic models in `kvpool.api`, and checks them."""
