"""The operator's side of the agent channel: enrolment, mutual TLS, streams, leases, and the newest plans."""
