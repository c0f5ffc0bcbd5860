"""Router outputs, one module each: they render weights into objects, and say what is in force."""
