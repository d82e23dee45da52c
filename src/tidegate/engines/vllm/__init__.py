"""vLLM: what its metrics tell (names as of 0.32, measured on its CPU build)."""
