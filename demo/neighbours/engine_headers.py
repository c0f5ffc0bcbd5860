"""The response headers by which an engine says who answered; a gateway's own answers have neither."""

ENGINE_HEADER = "x-engine"
EPOCH_HEADER = "x-seat-epoch"
