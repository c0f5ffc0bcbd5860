"""The protobuf messages between agents and operator, and their conversion to model types."""
