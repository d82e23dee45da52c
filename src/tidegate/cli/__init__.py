"""A file per command. ``main`` is what the ``tidegate`` script runs; it imports a command only to run it."""
