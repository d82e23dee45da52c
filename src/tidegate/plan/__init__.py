"""Arithmetic before anything is started: what fits on a GPU, and which slots suit a traffic.

Reading order: precision, layers, weights, model (what a model is), hf_config and gguf_model (where it is
read from), known_models and gpus (data), paging (how an engine lays KV in blocks), footprint (what one
GPU holds), remedies and memory (``plan memory``), traffic and slot_sizes (``plan slots``).

Nothing here imports an engine, torch or transformers.
"""
