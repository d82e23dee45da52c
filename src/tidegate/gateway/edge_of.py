"""What the edge knows of a request that is over, for its record."""

from __future__ import annotations

from tidegate.gateway.attempt import Attempt
from tidegate.gateway.call import Call
from tidegate.lens.edge import Edge


def edge_of(call: Call, status: int, code: str, attempt: Attempt | None, problem: str) -> Edge:
    """``attempt``: the last one; ``problem``: what is wrong with the answer, "" for nothing."""
    gap_s = 0.0
    if attempt is not None and attempt.relay is not None and attempt.has_token:
        gap_s = attempt.relay.worst_gap_s
    edge = Edge(call.request_id.decode("latin-1"), call.route.path, status, code, code != "" and status == 200, gap_s)
    edge.output_problem, edge.input_problem = problem, call.input_problem
    kept = call.continuation
    if kept is not None and kept.joined:
        edge.continuations, edge.continued_from = kept.joined, kept.first_replica
    return edge
