"""What ``plan memory`` tells, and the definition of each figure."""

from __future__ import annotations

from typing import Any

from tidegate.plan.footprint import Footprint, recommended_sequences
from tidegate.plan.gpus import MIB
from tidegate.plan.layers import Layers
from tidegate.plan.memory import MemoryPlan
from tidegate.plan.model import LLAMA_CPP, Model
from tidegate.plan.parallel import Choice, advice
from tidegate.plan.remedies import problem, remedies

SCHEMA: dict[str, str] = {
    "model": "name; source, the file or preset its figures come from; parameters and active_parameters (those one "
    "token uses, fewer with experts; null where unknown); weight_format; context_tokens, the longest sequence it was "
    "made for; layers",
    "model.layers[]": "layers of one KV form: count; kv_heads; key_width and value_width, numbers per head and token; "
    "window_tokens, how far they look back (null: to the beginning); latent, whether one compressed vector stands for "
    "all heads (MLA)",
    "gpu": "name and memory_mib, the total that nvidia-smi shows; count, GPUs at hand (null: not told)",
    "serving": "what is planned for: tensor_parallel, pipeline_parallel, utilization, kv_dtype, max_num_batched_tokens "
    "(vLLM's default for the GPU, if not given), block_tokens",
    "memory": "MiB of one GPU, of the fullest pipeline stage",
    "memory.total": "as nvidia-smi shows it",
    "memory.budget": "total × utilization, what the engine may use",
    "memory.weights": "weights on this GPU; exact where files are at hand, else counted from the configuration",
    "memory.activations": "estimate, or as given: the larger of max_num_batched_tokens × (3 × intermediate + "
    "2 × hidden + query, key, value) × 2 bytes and max_num_seqs × vocabulary × 39 bytes (from published start logs)",
    "memory.context": "estimate, or as given: CUDA context 512, CUDA graphs 256, and 256 for NCCL with several GPUs",
    "memory.kv_pool": "budget - weights - activations - context; negative where it does not fit",
    "kv": "KV memory; per GPU, where nothing else is said",
    "kv.bytes_per_token": "of one more token of a short sequence: all layers of the stage, KV heads ÷ TP",
    "kv.bytes_per_token_beyond_windows": "of one more token of a sequence longer than every window",
    "kv.bytes_per_token_all_gpus": "bytes_per_token × GPUs of the fullest stage × stages; of a latent model, copies "
    "included",
    "kv.pool_tokens": "tokens of short sequences that the pool holds",
    "kv.blocks": "blocks of the engine in the pool",
    "kv.block_bytes": "bytes of one block, over the layers of one group",
    "kv.groups": "block tables per sequence: 1, or more where layers look back differently far",
    "slots": "the pool in slots of slot_mib",
    "slots.slot_tokens": "tokens that a slot holds: slot_mib ÷ bytes_per_token, rounded down",
    "slots.slots": "kv_pool ÷ slot_mib, rounded down",
    "slots.recommended_max_num_seqs": "80 % of the slots, rounded down (SPEC S0-15)",
    "slots.asked_max_num_seqs": "as given; null if it was not",
    "slots.max_num_seqs": "what to run: at most one sequence per slot of those asked, else the recommended number",
    "contexts[]": "per sequence length: tokens; sequence_mib and slots of one sequence on this GPU; sequences, how "
    "many the pool holds beside each other; recommended, 80 % of them, rounded down",
    "max_model_len": "the planned longest sequence: as given, else P99 of the traffic × 1.2 (SPEC S3-52), else 8192 or "
    "what the model allows",
    "max_model_len_from": "which of these it is",
    "fits": "whether the pool holds one sequence of max_model_len; vLLM refuses to start otherwise",
    "problems[]": "what does not fit",
    "remedies[]": "changes that would make it fit, each computed",
    "warnings[]": "what works, but perhaps not as meant",
    "advice[]": "what happens at full length; how many GPUs, TP, PP or replicas",
    "parallel[]": "each way to spread the model over GPUs: label, tensor_parallel, pipeline_parallel, gpus, fits, "
    "kv_pool_mib and slots per GPU, sequences of max_model_len, sequences_per_gpu",
    "engine": "vLLM, or llama.cpp for a GGUF file",
    "engine_flags": "that engine's flags for this plan",
    "pinning_flags": "flags that pin vLLM's pool, so that two starts get the same: by bytes (utilization is then not "
    "used), or by blocks; empty for llama.cpp, whose pool follows from its context",
    "replica": "keys of upstreams.<model>.replicas[] in tidegate.yaml for this plan: bytes_per_token and kv_pool_bytes "
    "of one GPU, slot_size_mib, sequences (max_num_seqs), context_tokens (max_model_len)",
    "notes[]": "what the figures do not cover",
}


def report(plan: MemoryPlan) -> dict[str, Any]:
    """One JSON-able object; ``SCHEMA`` defines its fields."""
    footprint, options = plan.footprint, plan.choices()
    found = problem(footprint, plan.max_model_len)
    return {
        "model": _model(footprint.model),
        "gpu": {"name": footprint.gpu.name, "memory_mib": footprint.gpu.memory_bytes // MIB, "count": plan.count},
        "serving": _serving(footprint),
        "memory": _memory(footprint),
        "kv": _kv(footprint),
        "slots": _slots(plan),
        "contexts": [_context(footprint, tokens) for tokens in plan.rows],
        "max_model_len": plan.max_model_len,
        "max_model_len_from": plan.max_model_len_from,
        "fits": plan.fits,
        "problems": [] if found is None else [found],
        "remedies": [] if found is None else remedies(footprint, plan.max_model_len, plan.count, plan.rewritten),
        "warnings": plan.warnings(),
        "advice": [*plan.crowding(), *advice(options, plan.count)],
        "parallel": [_choice(each) for each in options],
        "engine": footprint.model.engine,
        "engine_flags": _engine_flags(plan),
        "pinning_flags": _pinning_flags(footprint),
        "replica": _replica(plan),
        "notes": [*footprint.model.notes, *plan.notes],
    }


def _model(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "source": model.source,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "weight_format": model.weight_format,
        "context_tokens": model.context_tokens,
        "layers": [_layers(each) for each in model.layers],
    }


def _layers(layers: Layers) -> dict[str, Any]:
    return {
        "count": layers.count,
        "kv_heads": layers.heads,
        "key_width": layers.key_width,
        "value_width": layers.value_width,
        "window_tokens": layers.window_tokens,
        "latent": layers.is_latent,
    }


def _serving(footprint: Footprint) -> dict[str, Any]:
    serving = footprint.serving
    return {
        "tensor_parallel": serving.tensor_parallel,
        "pipeline_parallel": serving.stages,
        "utilization": serving.utilization,
        "kv_dtype": footprint.kv_dtype,
        "max_num_batched_tokens": footprint.prefill_tokens,
        "block_tokens": serving.block_tokens,
    }


def _memory(footprint: Footprint) -> dict[str, float]:
    parts = {
        "total": footprint.gpu.memory_bytes,
        "budget": footprint.budget_bytes,
        "weights": footprint.weights_bytes,
        "activations": footprint.activations_bytes,
        "context": footprint.context_bytes,
        "kv_pool": footprint.pool_bytes,
    }
    return {name: round(size / MIB, 1) for name, size in parts.items()}


def _kv(footprint: Footprint) -> dict[str, int]:
    return {
        "bytes_per_token": footprint.token_bytes,
        "bytes_per_token_beyond_windows": footprint.late_token_bytes,
        "bytes_per_token_all_gpus": footprint.token_bytes * footprint.serving.gpus,
        "pool_tokens": footprint.kv_tokens,
        "blocks": footprint.paging.blocks_in(footprint.pool_bytes),
        "block_bytes": footprint.paging.block_bytes,
        "groups": len(footprint.paging.groups),
    }


def _slots(plan: MemoryPlan) -> dict[str, int | None]:
    footprint = plan.footprint
    return {
        "slot_mib": footprint.serving.slot_mib,
        "slot_tokens": footprint.slot_tokens,
        "slots": footprint.slots,
        "recommended_max_num_seqs": recommended_sequences(footprint.slots),
        "asked_max_num_seqs": footprint.serving.max_sequences,
        "max_num_seqs": plan.max_num_seqs,
    }


def _context(footprint: Footprint, tokens: int) -> dict[str, float]:
    sequences = footprint.sequences(tokens)
    return {
        "tokens": tokens,
        "sequence_mib": round(footprint.paging.sequence_bytes(tokens) / MIB, 1),
        "slots": footprint.slots_of_sequence(tokens),
        "sequences": sequences,
        "recommended": recommended_sequences(sequences),
    }


def _choice(choice: Choice) -> dict[str, Any]:
    footprint = choice.footprint
    return {
        "label": choice.label,
        "tensor_parallel": footprint.serving.tensor_parallel,
        "pipeline_parallel": footprint.serving.stages,
        "gpus": choice.gpus,
        "fits": choice.fits,
        "kv_pool_mib": round(footprint.pool_bytes / MIB, 1),
        "slots": footprint.slots,
        "sequences": choice.sequences,
        "sequences_per_gpu": round(choice.sequences_per_gpu, 2),
    }


def _engine_flags(plan: MemoryPlan) -> str:
    flags = _llama_flags(plan) if plan.footprint.model.engine == LLAMA_CPP else _vllm_flags(plan)
    return " ".join(flags)


def _pinning_flags(footprint: Footprint) -> list[str]:
    if footprint.model.engine == LLAMA_CPP or footprint.pool_bytes <= 0:
        return []
    blocks = footprint.paging.blocks_in(footprint.pool_bytes)
    return [f"--kv-cache-memory-bytes {footprint.pool_bytes}", f"--num-gpu-blocks-override {blocks}"]


def _llama_flags(plan: MemoryPlan) -> list[str]:
    """llama.cpp divides its context among its slots."""
    sequences, kv_dtype = plan.max_num_seqs, plan.footprint.kv_dtype
    flags = [f"--parallel {sequences}", f"--ctx-size {sequences * plan.max_model_len}"]
    return flags if kv_dtype == "auto" else [*flags, f"--cache-type-k {kv_dtype}", f"--cache-type-v {kv_dtype}"]


def _vllm_flags(plan: MemoryPlan) -> list[str]:
    serving = plan.footprint.serving
    flags = [
        f"--gpu-memory-utilization {serving.utilization:g}",
        f"--max-model-len {plan.max_model_len}",
        f"--max-num-seqs {plan.max_num_seqs}",
        f"--tensor-parallel-size {serving.tensor_parallel}",
    ]
    if serving.stages > 1:
        flags.append(f"--pipeline-parallel-size {serving.stages}")
    return flags if plan.footprint.kv_dtype == "auto" else [*flags, f"--kv-cache-dtype {plan.footprint.kv_dtype}"]


def _replica(plan: MemoryPlan) -> dict[str, int]:
    footprint = plan.footprint
    return {
        "bytes_per_token": footprint.token_bytes,
        "kv_pool_bytes": max(0, footprint.pool_bytes),
        "slot_size_mib": footprint.serving.slot_mib,
        "sequences": plan.max_num_seqs,
        "context_tokens": plan.max_model_len,
    }
