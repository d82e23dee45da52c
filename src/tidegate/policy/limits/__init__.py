"""How much a replica may be given at once: an adaptive number of sequences, and a bound on queued prefill."""
