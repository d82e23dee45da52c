"""Replicas as processes: started, watched, restarted and stopped."""
