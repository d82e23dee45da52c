"""How many tokens a prompt probably has, before anybody has counted them."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.gateway.settings import Counting
from tidegate.wire.body import Body

LEARNING_RATE = 0.05
"""Some 20 answers forget a first guess that was wrong."""
SMALLEST_SAMPLE_BYTES = 200
"""Below it the chat template outweighs the text."""
BYTES_PER_TOKEN_RANGE = (0.5, 16.0)
"""From escaped CJK text to long runs of spaces; anything outside is a mistake of the engine."""


class Ratios:
    """Bytes per token, learned for each configured upstream from the usage that engines report."""

    def __init__(self, config: Counting, upstreams: Iterable[str]) -> None:
        self._config = config
        self._bytes_per_token = dict.fromkeys(upstreams, config.bytes_per_token)

    def tokens(self, upstream: str, body: Body) -> int:
        """Prompt tokens of one of the body's prompts; at least 1."""
        if body.prompt_tokens is not None:
            tokens = float(body.prompt_tokens)
        else:
            tokens = body.text_bytes / self._bytes_per_token.get(upstream, self._config.bytes_per_token)
            if body.images:
                tokens += body.images * self._config.image_tokens
        return int(tokens / body.prompts) or 1

    def learn(self, upstream: str, body: Body, prompt_tokens: int) -> None:
        """The engine counted ``prompt_tokens`` for all prompts of ``body``."""
        ratio = self._bytes_per_token.get(upstream)
        if ratio is None or body.images or body.text_bytes < SMALLEST_SAMPLE_BYTES or prompt_tokens < 1:
            return
        seen = body.text_bytes / prompt_tokens
        if BYTES_PER_TOKEN_RANGE[0] <= seen <= BYTES_PER_TOKEN_RANGE[1]:
            self._bytes_per_token[upstream] = ratio + LEARNING_RATE * (seen - ratio)

    def serve(self, config: Counting, upstreams: Iterable[str]) -> None:
        """Take a reload in; what was learned stays."""
        self._config = config
        self._bytes_per_token = {name: self._bytes_per_token.get(name, config.bytes_per_token) for name in upstreams}
