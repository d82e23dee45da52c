"""Which replica gets the next request."""
