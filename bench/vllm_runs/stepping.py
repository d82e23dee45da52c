"""Drives vLLM's own Scheduler and KV cache with a model that is not there. Runs in vLLM's environment only.

    echo '{"engine": {...}, "load": {"kind": "early", "count": 160, "seed": 1}}' | python bench/vllm_runs/stepping.py

One JSON object in, one out, a line each; as many as come. Steps, preemptions and stalls in steps are those of a real
server (the project's vLLM notes: equal to the count in every case compared); seconds come from a step model.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import vllm
from vllm.config import VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec, SlidingWindowSpec
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from bench.vllm_runs import loads
from bench.vllm_runs.measured import Stream, summary

EOS, WORD = 2, 5
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16", "bos_token_id": 1,
    "eos_token_id": EOS,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The pool and flags of the project's notes, unless said otherwise."""

    scheduler: str | None = None
    """None: vLLM's own."""
    tidegate: dict[str, Any] = field(default_factory=dict)
    blocks: int = 80
    block_tokens: int = 32
    window_tokens: int = 0
    """More than 0: a second group of layers with a sliding window."""
    max_num_seqs: int = 32
    max_num_batched_tokens: int = 512
    max_model_len: int = 1024
    watermark: float = 0.0
    policy: str = "fcfs"
    prefix_caching: bool = True
    asynchronous: bool = False
    draft_tokens: int = 0

    def vllm_config(self, model: str) -> VllmConfig:
        spec = {"method": "ngram", "num_speculative_tokens": self.draft_tokens, "prompt_lookup_max": 4}
        return EngineArgs(
            model=model, skip_tokenizer_init=True, block_size=self.block_tokens, enforce_eager=True,
            max_model_len=self.max_model_len, max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens, watermark=self.watermark,
            scheduling_policy=self.policy, enable_prefix_caching=self.prefix_caching,
            async_scheduling=self.asynchronous, scheduler_cls=self.scheduler,
            speculative_config=spec if self.draft_tokens else None,
            additional_config={"tidegate": self.tidegate} if self.scheduler else {},
        ).create_engine_config()  # fmt: skip

    def kv_cache_config(self) -> KVCacheConfig:
        shape: dict[str, Any] = {
            "block_size": self.block_tokens, "num_kv_heads": 4, "head_size": 16, "dtype": torch.bfloat16
        }  # fmt: skip
        groups = [KVCacheGroupSpec(["full"], FullAttentionSpec(**shape))]
        if self.window_tokens:
            spec = SlidingWindowSpec(**shape, sliding_window=self.window_tokens)
            groups.append(KVCacheGroupSpec(["window"], spec))
        return KVCacheConfig(num_blocks=self.blocks + 1, kv_cache_tensors=[], kv_cache_groups=groups)


class Stepping:
    """One scheduler and the clients of one load."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(MODEL))
            config = engine.vllm_config(folder)
        # What the CPU platform switches off for want of streams is on wherever this scheduler matters.
        config.scheduler_config.async_scheduling = engine.asynchronous
        config.cache_config.num_gpu_blocks = engine.blocks + 1
        register_all_kvcache_specs(config)
        hash_function = get_hash_fn_by_name("sha256")
        init_none_hash(hash_function)
        self._hasher = get_request_block_hasher(engine.block_tokens, hash_function)
        self.scheduler = config.scheduler_config.get_scheduler_cls()(
            vllm_config=config,
            kv_cache_config=engine.kv_cache_config(),
            structured_output_manager=StructuredOutputManager(config),
            block_size=engine.block_tokens,
            log_stats=True,
        )
        self.step = 0
        self.now_s = 0.0
        self.scheduled_tokens = 0
        self.fullest = self.worst_surplus = 0
        self.schedule_s = 0.0
        self.streams: dict[str, Stream] = {}
        self._lengths: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        self._pending: deque[tuple[SchedulerOutput, ModelRunnerOutput]] = deque()
        self._source = random.Random(0)

    def submit(self, request_id: str, call: loads.Call, priority: int = 0) -> None:
        source = random.Random(f"prompt {request_id}")
        shared = [7 + index % 900 for index in range(call.shared_tokens)]
        prompt = shared + [source.randrange(10, 999) for _ in range(call.prompt_tokens - call.shared_tokens)]
        request = Request(
            request_id,
            prompt,
            SamplingParams(max_tokens=call.declared_tokens, stop_token_ids=[EOS], ignore_eos=True),
            None,
            arrival_time=float(self.step),
            priority=priority,
            block_hasher=self._hasher if self.engine.prefix_caching else None,
        )
        self._lengths[request_id] = call.output_tokens
        self._sent[request_id] = 0
        self.streams[request_id] = Stream(began_step=self.step, began_s=self.now_s, priority=priority)
        self.scheduler.add_request(request)

    def leave(self, request_id: str) -> None:
        """The client hangs up."""
        self.scheduler.finish_requests(request_id, RequestStatus.FINISHED_ABORTED)
        self.streams.pop(request_id, None)

    def advance(self) -> list[str]:
        """One step of the engine; who ended in it. As EngineCore does it, one batch ahead when asynchronous."""
        began = time.perf_counter()
        output = self.scheduler.schedule()
        self.schedule_s += time.perf_counter() - began
        for preempted in output.preempted_req_ids or ():
            if preempted in self.streams:
                self.streams[preempted].preemptions += 1
        self._pending.append((output, self._model(output)))
        if output.total_num_scheduled_tokens:
            self._count(output)
            if self.engine.asynchronous and len(self._pending) < 2:
                return []
        return self._deliver(*self._pending.popleft())

    def _count(self, output: SchedulerOutput) -> None:
        self.step += 1
        tokens, pool = output.total_num_scheduled_tokens, self.scheduler.kv_cache_manager.block_pool
        decodes = sum(count == 1 for count in output.num_scheduled_tokens.values())
        # Step model of the project's notes for this CPU build; only indicative.
        self.now_s += 0.045 + 0.0012 * (tokens - decodes) + 0.004 * decodes
        self.scheduled_tokens += tokens
        taken = self.engine.blocks - pool.get_num_free_blocks()
        self.fullest = max(self.fullest, taken)
        reserver = getattr(self.scheduler, "reserver", None)
        if reserver is not None:
            claimed = sum(reserver.claim(request).held_blocks for request in self.scheduler.running)
            self.worst_surplus = max(self.worst_surplus, taken - claimed)

    def _model(self, output: SchedulerOutput) -> ModelRunnerOutput:
        """What a model would sample: words, and the end at the length that was drawn."""
        names = list(output.num_scheduled_tokens)
        places = {name: at for at, name in enumerate(names)}
        sampled = [self._sample(name, output) for name in names]
        return ModelRunnerOutput(req_ids=names, req_id_to_index=places, sampled_token_ids=sampled)

    def _sample(self, name: str, output: SchedulerOutput) -> list[int]:
        if self.scheduler.requests[name].is_prefill_chunk:
            return []
        drafted = len(output.scheduled_spec_decode_tokens.get(name, ()))
        count = 1 + self._source.randint(0, drafted)
        first = self._sent[name]
        self._sent[name] += count
        return [EOS if at + 1 >= self._lengths[name] else WORD for at in range(first, first + count)]

    def _deliver(self, output: SchedulerOutput, sampled: ModelRunnerOutput) -> list[str]:
        # A request that ended while its next token was computed is gone; what was computed is dropped.
        outputs = self.scheduler.update_from_output(output, sampled)
        ended = []
        for each in (one for batch in outputs.values() for one in batch.outputs):
            stream = self.streams.get(each.request_id)
            if stream is not None and each.new_token_ids:
                stream.token(self.step, self.now_s, len(each.new_token_ids))
            if each.finish_reason is not None:
                ended.append(each.request_id)
        if self.engine.draft_tokens:
            running = [request.request_id for request in self.scheduler.running]
            drafts = [[WORD] * self.engine.draft_tokens for _ in running]
            self.scheduler.update_draft_token_ids(DraftTokenIds(running, drafts))
        return ended

    def run(self, calls: list[loads.Call], clients: int, prefix: str = "", abort_every: int = 0) -> None:
        """A closed loop: whoever has an answer asks again at once, until all calls are made. Every so many steps
        somebody hangs up, running or waiting, and the next one comes."""
        waiting = deque(enumerate(calls))
        for _ in range(min(clients, len(calls))):
            self._next(waiting, prefix)
        while self.scheduler.has_unfinished_requests():
            gone = len(self.advance())
            if abort_every and self.step % abort_every == 0 and self.scheduler.requests:
                self.leave(self._source.choice(sorted(self.scheduler.requests)))
                gone += 1
            for _ in range(min(gone, len(waiting))):
                self._next(waiting, prefix)
        while self._pending:
            self._deliver(*self._pending.popleft())

    def _next(self, waiting: deque[tuple[int, loads.Call]], prefix: str) -> None:
        index, call = waiting.popleft()
        # Where the policy orders by it, every fourth is urgent.
        urgent = self.engine.policy == "priority" and index % 4 == 0
        self.submit(f"{prefix}{index}", call, priority=0 if urgent else 1)

    def report(self) -> dict[str, Any]:
        """Of all that ran since ``forget``."""
        found = summary(list(self.streams.values()), self.now_s)
        found |= {
            "steps": self.step, "scheduled_tokens": self.scheduled_tokens, "fullest_blocks": self.fullest,
            "schedule_ms_per_step": 1e3 * self.schedule_s / max(1, self.step),
            "free_blocks": self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks(),
        }  # fmt: skip
        urgent = [each for each in self.streams.values() if each.priority == 0]
        found["urgent_ttft_steps"] = summary(urgent, self.now_s)["ttft_steps"]
        reserver = getattr(self.scheduler, "reserver", None)
        if reserver is None:
            return found
        return found | {"ledger": asdict(reserver.figures()), "unclaimed_blocks": self.worst_surplus}

    def forget(self) -> None:
        """Count anew; the scheduler keeps what it learned."""
        self.streams = {}
        self.step = self.scheduled_tokens = self.fullest = self.worst_surplus = 0
        self.now_s = self.schedule_s = 0.0


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Run a load, ``warm`` first runs of other seeds uncounted. ``version``: what vLLM is to say that it is."""
    vllm.__version__ = question.get("version", vllm.__version__)
    stepping = Stepping(Engine(**question.get("engine", {})))
    load = question["load"]
    clients = load.get("clients", 32)
    for index in range(question.get("warm", 0)):
        calls = loads.draw(question.get("warm_kind", load["kind"]), load["count"], 9000 + load["seed"] * 10 + index)
        stepping.run(calls, clients, f"warm{index}-")
        stepping.forget()
    calls = loads.draw(load["kind"], load["count"], load["seed"], shared_tokens=load.get("shared_tokens", 0))
    stepping.run(calls, clients, abort_every=load.get("abort_every", 0))
    found = stepping.report()
    stepping.scheduler.shutdown()
    return found


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
