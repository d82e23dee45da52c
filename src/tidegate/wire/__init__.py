"""HTTP/1.1 on llhttp, SSE framing, OpenAI-shaped errors, header names.

Knows bytes, not policies: used by the gateway, the engines and the load generator.
"""
