"""The embedded engine, llama.cpp, as configured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tidegate.cli.recipe import Recipe
from tidegate.config.started_engines import Embedded
from tidegate.engines.llamacpp.model_file import model_file
from tidegate.engines.llamacpp.options import Options
from tidegate.engines.llamacpp.server import LlamaServer
from tidegate.gateway.composition import Told
from tidegate.gateway.settings import Endpoint


def embedded_recipe(alias: str, name: str, section: Embedded) -> Recipe:
    """Raises EngineError for a missing model."""
    options = options_of(alias, section)
    engine = LlamaServer(options.address)
    endpoint = Endpoint(
        name=name, host="127.0.0.1", port=options.port, kind=engine.kind, api_key=options.api_key, model=alias
    )
    told = Told(
        capacity=options.capacity,
        kind=engine.kind,
        confirms_aborts=engine.confirms_aborts,
        abort_grace_s=engine.abort_grace_s,
        endpoint=endpoint,
    )
    return Recipe(
        product="llama.cpp",
        engine=engine,
        told=told,
        launch=options.launch(name),
        loading_line=loading_line(options),
    )


def options_of(alias: str, section: Embedded) -> Options:
    """How the embedded engine of this upstream is started. Raises EngineError for a missing model."""
    options = Options(
        model=str(model_file(section.model_path)),
        alias=alias,
        sequences=section.sequences,
        context_tokens=section.context_tokens,
        prefix_caching=section.prefix_caching,
        host_cache_mib=section.host_cache_mib,
    )
    return options if section.threads is None else replace(options, threads=section.threads)


def loading_line(options: Options) -> str:
    file, threads = Path(options.model).name, options.threads
    return f"Loading model weights to CPU... ({file}, {threads} {'thread' if threads == 1 else 'threads'})"
