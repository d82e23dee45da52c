"""The data plane as a whole: what comes in on a client's connection is started here."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.errors import ConfigError
from tidegate.gateway.access import Access
from tidegate.gateway.answer_key import answer_key
from tidegate.gateway.call import Call
from tidegate.gateway.client_connection import ClientConnection
from tidegate.gateway.continuation import Terms, terms_of
from tidegate.gateway.counting import Ratios
from tidegate.gateway.driver import Driver
from tidegate.gateway.exchange import Exchange
from tidegate.gateway.intake import Intake, RejectedError
from tidegate.gateway.job_answers import JobAnswers, TellUrl
from tidegate.gateway.jobs import Jobs
from tidegate.gateway.journal import Journal
from tidegate.gateway.keyed_calls import KeyedCalls
from tidegate.gateway.local_answers import LocalAnswers, of_mistake, path_of
from tidegate.gateway.overlength import Overlengths
from tidegate.gateway.pool import Dial, Pool
from tidegate.gateway.reply import Reply
from tidegate.gateway.routes import PASSED_METHODS, ROUTES, Route, passed_through
from tidegate.gateway.screening import Screening
from tidegate.gateway.settings import Settings
from tidegate.gateway.shared import Shared
from tidegate.gateway.tally import Counting, Tallied, Tally
from tidegate.gateway.watching import Outputs
from tidegate.gateway.weighing import Holder, Weighing
from tidegate.policy.decisions import Reason
from tidegate.policy.request import Request
from tidegate.wire.errors import Mistake
from tidegate.wire.header_names import ASYNC, CALLBACK, IDEMPOTENCY_KEY, PREFER
from tidegate.wire.requests import Incoming

LOCAL_PREFIXES = (b"/v1/models", b"/v1/health")
"""Under these no engine is asked."""
WORTH_TOKENS = 1024
"""Shorter prompts are tokenized within about 2 ms, by whomever, and an estimate of them cannot be far off."""


def _tell_nobody(url: str, message_id: str, body: bytes) -> None:
    """Where nothing carries callbacks out."""


@dataclass(slots=True)
class Surroundings:
    """What the gateway needs from outside; tests bring their own."""

    loop: asyncio.AbstractEventLoop
    driver: Driver
    journal: Journal
    dial: Dial
    draws: Callable[[], int]
    """64 random bits."""
    poll_soon: Callable[[str], None]
    tally: Tally = field(default_factory=Tally)
    call_back: TellUrl = _tell_nobody
    """Tells a URL that a job has ended."""


class Gateway:
    """Starts exchanges, answers what needs no engine, and keeps what all of them share."""

    def __init__(self, settings: Settings, around: Surroundings) -> None:
        self._around = around
        self.now = around.loop.time
        self.connections: set[ClientConnection] = set()
        models = _models(settings)
        self._shared = Shared(
            around.driver,
            around.journal,
            Ratios(settings.counting, models),
            settings.timers,
            around.tally,
            around.poll_soon,
        )
        self._answers = LocalAnswers(self._shared)
        self.access = Access(settings.api_keys, settings.trusted_proxies)
        self._jobs = JobAnswers(self._shared, self._answers, self._start, around.call_back)
        self._keyed = KeyedCalls(self._shared, settings.idempotency)
        self._intake = Intake(self.access, self._shared.ratios, models, around.draws, settings.asks_usage)
        self._take(settings)

    # ---- settings ---------------------------------------------------------------------------

    def reconfigure(self, settings: Settings) -> None:
        """Swap in ``settings``; running exchanges go on as they began. ``Path`` is told by the caller.

        Raises ``ValueError`` before anything has changed.
        """
        self.access = Access(settings.api_keys, settings.trusted_proxies)
        self._intake.access = self.access
        self._intake.models = _models(settings)
        self._intake.asks_usage = settings.asks_usage
        self._shared.ratios.serve(settings.counting, self._intake.models)
        self._shared.timers = settings.timers
        self._shared.journal.metrics.serve(self._intake.models, settings.path.classes.classes)
        self._take(settings)

    def _take(self, settings: Settings) -> None:
        self.limits = settings.limits
        self.timers = settings.timers
        self._are_paths_strict = settings.are_paths_strict
        self._intake.images_to = settings.images_to
        self._intake.ask_for(settings.path.classes.headers)
        self._intake.balanced = _balanced(settings)
        self._keeps_answers, self._normalises_answers = settings.is_cache_enabled, settings.normalises_answers
        self._intake.screening = Screening(settings.input)
        self._shared.overlengths = None
        if settings.overlength:
            self._shared.overlengths = Overlengths(settings.overlength, self._around.driver, self._shared.ratios)
        self._shared.outputs = Outputs(settings.output, settings.outputs)
        self._shared.continued = _continued(settings)
        self._shared.journal.are_rows_sent = settings.are_rows_sent
        self._answers.serve(self.access, self._intake.models)
        self._jobs.serve(self.access, settings.jobs, settings.callbacks.origins)
        self._keyed.answers.reconfigure(settings.idempotency)
        self._around.tally.serve(settings.endpoints, settings.path.replicas)
        old = self._shared.pools
        self._shared.pools = {}
        for endpoint in settings.endpoints:
            kept = old.pop(endpoint.name, None)
            if kept is None or kept.endpoint != endpoint:
                if kept is not None:
                    kept.retire()
                kept = Pool(endpoint, settings.timers, self._around.loop, self._around.dial)
            self._shared.pools[endpoint.name] = kept
        for gone in old.values():
            gone.retire()

    # ---- requests ---------------------------------------------------------------------------

    def begin(self, connection: ClientConnection, incoming: Incoming, now: float) -> None:
        """Start what ``incoming`` asks for; it may be over when this returns."""
        route = ROUTES.get(incoming.target)
        try:
            if route is None or incoming.method != b"POST" or self._shared.is_draining:
                route = self._route(connection, incoming)
            if route is not None:
                self._begin_exchange(connection, incoming, route, now)
        except RejectedError as rejected:
            self._answers.rejected(connection, incoming, rejected)

    def _route(self, connection: ClientConnection, incoming: Incoming) -> Route | None:
        """Where the call goes; None when it was answered here."""
        path = path_of(incoming.target)
        route = ROUTES.get(path)
        if route is None and self._jobs.owns(path):
            self._jobs.take(connection, incoming, path)
            return None
        if route is None and (not path.startswith(b"/v1/") or path.startswith(LOCAL_PREFIXES)):
            self._answers.take(connection, incoming, path)
            return None
        if self._shared.is_draining:
            self._answers.refuse(connection, incoming, Reason.SHUTTING_DOWN)
            return None
        if route is None:
            route = self._passed_through(incoming, path)
        elif incoming.method != b"POST":
            raise RejectedError(Mistake.WRONG_METHOD, "use POST")
        return route

    def _passed_through(self, incoming: Incoming, path: bytes) -> Route:
        if self._are_paths_strict:
            raise RejectedError(Mistake.NO_ROUTE, "and paths are strict here")
        if incoming.method not in PASSED_METHODS:
            raise RejectedError(Mistake.WRONG_METHOD)
        return passed_through(path)

    def _begin_exchange(self, connection: ClientConnection, incoming: Incoming, route: Route, now: float) -> None:
        number, request_id = self._answers.number(incoming)
        request, call = self._intake.read(incoming, route, request_id, connection.source, number, now)
        if self._keeps_answers:
            request.cache_key = answer_key(request, call, normalises=self._normalises_answers)
        reply = self._answers.reply(connection, incoming)
        fields = incoming.fields
        # Four look-ups cost half as much as asking whether two sets have anything in common.
        if IDEMPOTENCY_KEY in fields or PREFER in fields or ASYNC in fields or CALLBACK in fields:
            self._begin_keyed_or_later(connection, call, request, reply)
        else:
            self._start(connection, call, request, reply)

    def _begin_keyed_or_later(self, connection: ClientConnection, call: Call, request: Request, reply: Reply) -> None:
        """The call has a key, or its client takes a job for an answer. With both, the key stands for the job."""
        incoming, audience = call.incoming, None
        wanted = self._jobs.wanted(incoming) if call.route.is_known else None
        if IDEMPOTENCY_KEY in incoming.fields and self._keyed.takes(incoming):
            audience = self._keyed.take(connection, call, request, reply)
            if audience is None:
                return
        holder, reply = audience or connection, audience or reply
        if wanted is None:
            self._start(holder, call, request, reply)
            return
        try:
            self._jobs.accept(holder, reply, call, request, wanted)
        except RejectedError as rejected:
            if audience is None:
                raise
            answer = of_mistake(rejected)
            audience.whole(answer.status, answer.header_lines(call.request_id), answer.body)
            audience.exchange_over(True, self.now())

    def _start(self, holder: Holder, call: Call, request: Request, reply: Reply) -> None:
        """``holder`` hears of the end, ``reply`` takes the answer."""
        counting = self._count(request, call)
        if counting is not None:
            Weighing(self._shared, holder, call, request, reply).start(counting)
            return
        if self._shared.overlengths is not None:
            self._shared.overlengths.fit(request, call)
        exchange = Exchange(self._shared, holder, call, request, reply)
        holder.attach(exchange)
        exchange.start()
        if exchange.ticket is not None and request.prompt_tokens >= WORTH_TOKENS:
            self._count_waiting(request, call, exchange.ticket)

    def _count(self, request: Request, call: Call) -> Counting | None:
        """A task that counts the prompt where that may decide, or where its ids are wanted; None: decide with what
        is known."""
        if not _is_countable(call):
            return None
        tally, upstream, path = self._around.tally, request.upstream, call.route.path
        wants_ids = request.prompt_tokens >= WORTH_TOKENS and tally.sends_ids(upstream) and call.has_text_prompt
        if wants_ids:
            call.ids_go_to = tally.exactness.id_exact
        elif not self._shared.driver.hinges_on_count(request, is_cheap=tally.has_tokenizer(upstream, path)):
            return None
        return tally.begin(upstream, path, call.incoming.body, wants_ids=wants_ids)

    def _count_waiting(self, request: Request, call: Call, ticket: int) -> None:
        """It stands in the queue on its estimate: count it meanwhile, unless that would bother an engine."""
        if request.prompt_exact or not _is_countable(call):
            return
        counting = self._around.tally.begin_tokenizing(request.upstream, call.route.path, call.incoming.body)
        if counting is not None:
            counting.add_done_callback(lambda task: self._counted(request, ticket, task.result()))

    def _counted(self, request: Request, ticket: int, tallied: Tallied | None) -> None:
        if tallied is not None:
            self._shared.driver.amend(request, ticket, max(tallied.tokens), tallied.source)

    # ---- answers of our own -----------------------------------------------------------------

    @property
    def not_ready_because(self) -> str:
        """Why a balancer should send new requests elsewhere; "" when they are welcome."""
        return self._answers.not_ready_because

    def note_reading(self, replica: str, *, is_ready: bool) -> None:
        """What the last look at a replica showed; one that was never looked at counts as ready."""
        self._answers.note_reading(replica, is_ready=is_ready)

    def view(self) -> dict[str, object]:
        """What ``Path`` knows nothing of, in figures."""
        return {"keyed": self._keyed.answers.view(), "jobs": self._jobs.jobs.view()}

    @property
    def watched_jobs(self) -> int:
        """Clients that wait for the end of a job."""
        return len(self._jobs.watched)

    @property
    def jobs(self) -> Jobs:
        """Those that were accepted."""
        return self._jobs.jobs

    @property
    def is_draining(self) -> bool:
        return self._shared.is_draining

    def reject(self, connection: ClientConnection, mistake: Mistake, detail: str, status: int) -> None:
        """Answer bytes that are no request; the connection can carry nothing more."""
        self._answers.unreadable(connection, mistake, detail, status)

    # ---- the clock and the end --------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Every timeout of running exchanges."""
        for pool in self._shared.pools.values():
            pool.now = now
        for exchange in tuple(self._shared.live):
            exchange.tick(now)
        if self._keyed.orphans:
            self._keyed.tick(now)
        if self._jobs.jobs.is_busy:
            self._jobs.jobs.tick(now)
        if self._jobs.watched:
            self._jobs.tick(now)

    def sweep(self, now: float) -> None:
        """Idle connections on both sides; about once a second."""
        for connection in tuple(self.connections):
            connection.sweep(now)
        for pool in self._shared.pools.values():
            pool.sweep()
        self._keyed.answers.expire(now)
        self._jobs.jobs.sweep(now)

    @property
    def open_requests(self) -> int:
        return len(self._shared.live)

    async def emptied(self) -> None:
        """Wait, after ``drain``, until nothing runs any more."""
        if self._shared.live:
            await self._shared.emptied.wait()

    def drain(self) -> None:
        """Take nothing more; refuse what stands in the queue; let the rest run."""
        self._shared.is_draining = True
        for exchange in tuple(self._shared.live):
            exchange.refuse_waiting()
        self._jobs.jobs.drain(self.now())
        self.sweep(self.now())

    def stop(self) -> None:
        """Cut what still runs and close every connection."""
        self._shared.is_draining = True
        for exchange in tuple(self._shared.live):
            exchange.stop()
        for connection in tuple(self.connections):
            if connection.transport is not None:
                connection.transport.close()
        for pool in self._shared.pools.values():
            pool.close()
        self._around.tally.close()


def _is_countable(call: Call) -> bool:
    # What an image costs, a tokenizer for text does not know.
    return call.body is not None and call.route.generates and not call.body.images


def _balanced(settings: Settings) -> frozenset[str]:
    """Upstreams with several replicas, unless nobody asks which of them has read a prompt."""
    if not settings.path.balance.prefix_affinity:
        return frozenset()
    names = Counter(replica.upstream for replica in settings.path.replicas)
    return frozenset(name for name, count in names.items() if count > 1)


def _models(settings: Settings) -> tuple[str, ...]:
    names_of = {endpoint.name for endpoint in settings.endpoints}
    replicas = settings.path.replicas
    homeless = [replica.name for replica in replicas if replica.name not in names_of]
    if homeless:
        raise ConfigError([f"replica {name} has no endpoint" for name in homeless])
    return tuple(dict.fromkeys([replica.upstream for replica in replicas]))


def _continued(settings: Settings) -> dict[str, Terms]:
    """By upstream: how its streams go on elsewhere; where none can, nothing."""
    kinds = {endpoint.name: endpoint.kind for endpoint in settings.endpoints}
    found = {}
    for upstream, mode in settings.continuation.items():
        replicas = [each for each in settings.path.replicas if each.upstream == upstream]
        contexts = [each.capacity.context_tokens for each in replicas]
        known = [tokens for tokens in contexts if tokens is not None]
        least = min(known) if known and len(known) == len(contexts) else None
        terms = terms_of(mode, {kinds[each.name] for each in replicas if each.name in kinds}, len(replicas), least)
        if terms is not None:
            found[upstream] = terms
    return found
