"""ACTS on engines: what starts, calls, reads and simulates inference servers."""
