"""Which replicas have lately read the beginning of a prompt, and so need not read it again.

An engine with a prefix cache computes only what of a prompt it does not hold. No engine says what it holds, so this is
our own account of it: of each prompt's beginnings, and of its session, who was given them when. A replica is taken to
hold a beginning until it has read as many new tokens since as its KV pool has, because the pool is the cache and the
least recently used goes first (SGLang's approximate tree and llm-d's approximate scorer rest on the same).

The account is wrong where an engine caches nothing; ``CacheAccount`` finds that out where the engine tells. Where
it does not, the choice among equally cold replicas is moved, within the bound on load that ``Balancer`` keeps.
"""

from __future__ import annotations

from collections import OrderedDict

from tidegate.policy.replica import Replica
from tidegate.policy.request import Request

MOST_PREFIXES = 32_768
"""Beginnings remembered per upstream, 16 MB: five each of the latest 6 500 prompts."""


class Prefixes:
    __slots__ = ("_held", "_most")

    def __init__(self, most: int = MOST_PREFIXES) -> None:
        self._most = most
        # A plain dict would walk over all that was deleted before it finds its oldest entry.
        self._held: OrderedDict[int, dict[Replica, tuple[int, int]]] = OrderedDict()
        """By digest, the least recently used first: who read it, how many tokens that were, and when
        (on the replica's own count of tokens read)."""

    def __len__(self) -> int:
        return len(self._held)

    def cached_tokens(self, request: Request) -> dict[Replica, int]:
        """Tokens of the prompt that each replica is expected to hold; those that hold none are left out."""
        found: dict[Replica, int] = {}
        held = self._held
        for digest, _ in request.prefixes:
            holders = held.get(digest)
            if holders is not None:
                for replica, (tokens, read_at) in holders.items():
                    if replica not in found and replica.cache.holds(read_at, replica.config.capacity.kv_tokens):
                        found[replica] = _believed(replica, tokens, request.prompt_tokens)
        return found

    def note(self, request: Request, replica: Replica) -> int:
        """The request goes to ``replica``; returns the tokens of it that need not be counted as work.

        Who finds the longest beginning again is taken to find all of this prompt: it has no longer one in common
        with it, so it is most likely the next turn of the same conversation.
        """
        held, prompt_tokens, cache = self._held, request.prompt_tokens, replica.cache
        cached = self._held_by(replica, request)
        believed = _believed(replica, cached, prompt_tokens)
        cache.read(prompt_tokens, cached, believed)
        longest = True
        for digest, share in request.prefixes:
            when = (prompt_tokens if longest else int(share * prompt_tokens), cache.read_tokens)
            holders = held.get(digest)
            if holders is None:
                held[digest] = {replica: when}
            else:
                holders[replica] = when
                held.move_to_end(digest)
            longest = False
        while len(held) > self._most:
            held.popitem(last=False)
        return believed if cache.is_told else 0

    def keep(self, replicas: list[Replica]) -> None:
        """Forget everybody else: they are gone, and their KV with them."""
        here = set(replicas)
        for digest, holders in [*self._held.items()]:
            left = {replica: when for replica, when in holders.items() if replica in here}
            if left:
                self._held[digest] = left
            else:
                del self._held[digest]

    def _held_by(self, replica: Replica, request: Request) -> int:
        for digest, _ in request.prefixes:
            holders = self._held.get(digest)
            if holders is not None and replica in holders:
                tokens, read_at = holders[replica]
                if replica.cache.holds(read_at, replica.config.capacity.kv_tokens):
                    return tokens if tokens < request.prompt_tokens else request.prompt_tokens
        return 0


def _believed(replica: Replica, tokens: int, prompt_tokens: int) -> int:
    """Of so many tokens in our account; one token of a prompt is computed in any case."""
    believed = int(tokens * replica.cache.trust)
    return believed if believed < prompt_tokens else prompt_tokens - 1
