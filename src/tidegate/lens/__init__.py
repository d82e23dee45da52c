"""OBSERVES: what happened to requests, counted and explained. Never decides anything."""
