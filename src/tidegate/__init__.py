"""Tidegate: the stability layer for LLM inference."""
