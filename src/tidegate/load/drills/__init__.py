"""Drills: something is broken on purpose under a steady load, and put back; what users would have seen is counted."""
