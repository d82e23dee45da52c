"""DECIDES. Pure: standard library only, no I/O, no clock, no randomness, no logging.

Reading order: request, outcomes, permit, decisions, record, reading (the vocabulary), then
path (the one door), then the policies it asks in order.
"""
