"""The second driver of ``Path``: a virtual clock, simulated engines and named scenarios.

Reading order: visit, clock, clients, front (who talks to whom), native and driver (the two fronts),
scenario and scenarios/ (the traffic), run (one scenario under one policy), report (the figures).
"""
