"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidegate.errors import ConfigError


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; renamed when the block ends, removed when it fails.

    Raises ConfigError where the file can't be written: a full disk, a folder that is not there.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        raise ConfigError([f"{path}: not written: {error.strerror or error}"]) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Raises ConfigError as ``draft_of``."""
    with draft_of(path) as draft:
        draft.write_bytes(content)
