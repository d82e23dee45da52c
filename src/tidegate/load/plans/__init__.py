"""The named plans, by what they are like."""
