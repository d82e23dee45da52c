"""One giant prompt among 99 short ones, on two real engines: what the giant costs the short ones.

The simulated ``giant-and-99`` scaled to the small model: the giant nearly fills its context. Both figures are
printed; the times themselves say more of the machine than of the gateway, so only their ratio is asserted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live import running
from tests.live.running import MODEL, Exchange, Service, long_text, said, until

pytestmark = pytest.mark.live

SHORTS = 99
GIANT_WORDS = 300
"""Some 900 tokens of a context of 2 048, thirty times as many as a short prompt has."""
MOST_SLOWER = 1.25
CONFIG = """
upstreams:
  {model}:
    replicas:
      - {{url: "{first}", api_key_env: FIRST_KEY}}
      - {{url: "{second}", api_key_env: SECOND_KEY}}
shaping: {{long_threshold_tokens: 512, giants: {{least_tokens: 1024}}}}
tail: {{timeouts: {{first_byte: {{floor_s: 170, default_s: 170, ceiling_s: 170}}}}}}
classes: {{interactive: {{max_wait_s: 170}}, long: {{max_wait_s: 170}}}}
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service before two engines."""
    folder: Path = tmp_path_factory.mktemp("pair")
    with ExitStack() as stack:
        first, second = (stack.enter_context(running.engine()) for _ in range(2))
        config = folder / "tidegate.yaml"
        config.write_text(CONFIG.format(model=MODEL, first=first.url, second=second.url))
        env = {"FIRST_KEY": first.options.api_key, "SECOND_KEY": second.options.api_key}
        yield stack.enter_context(running.service(folder / "serve.log", "--config", str(config), env=env))


def is_idle(service: Service) -> bool:
    view = service.view()
    return not view["open_requests"] and not any(each["in_flight"] for each in view["replicas"].values())


def play(service: Service, salt: str, spread_s: float, giant_at_s: float | None) -> tuple[float, float]:
    """P95 of the seconds to the first token of the short ones, and those of the giant (0.0 without)."""
    began = time.monotonic()

    def ask(at_s: float, text: str) -> float:
        time.sleep(max(0.0, began + at_s - time.monotonic()))
        exchange = Exchange(service.url, said(text, max_tokens=4, stream=True, ignore_eos=True))
        with exchange.socket:
            first_s = exchange.read_events(1)
            assert b" 200 " in exchange.seen[:32], exchange.seen
            exchange.read_all()
        return first_s

    with ThreadPoolExecutor(SHORTS + 1) as pool:
        shorts = [
            pool.submit(ask, spread_s * index / SHORTS, f"{salt}, number {index}: say hello.")
            for index in range(SHORTS)
        ]
        giants = [] if giant_at_s is None else [pool.submit(ask, giant_at_s, long_text(GIANT_WORDS, salt))]
        waited = sorted(each.result() for each in shorts)
    until(lambda: is_idle(service), 30)
    return waited[int(0.95 * SHORTS)], giants[0].result() if giants else 0.0


@pytest.mark.parametrize(("spread_s", "giant_at_s"), [(1.0, 0.5), (10.0, 3.0)])
def test_a_giant_costs_the_short_ones_at_most_a_quarter(pair: Service, spread_s: float, giant_at_s: float) -> None:
    play(pair, f"warm {spread_s}", spread_s, None)
    without_s, _ = play(pair, f"without {spread_s}", spread_s, None)
    with_s, giant_s = play(pair, f"with {spread_s}", spread_s, giant_at_s)
    print(  # noqa: T201 - the figures are what somebody runs this for
        f"\n{SHORTS} short prompts within {spread_s:g} s: P95 of the first token {without_s:.2f} s, beside a giant "
        f"{with_s:.2f} s (x {with_s / without_s:.2f}); the giant's own {giant_s:.2f} s"
    )
    assert with_s <= MOST_SLOWER * without_s
