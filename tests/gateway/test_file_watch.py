"""Changes of a file are noticed once each, whatever way they come. On virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tidegate.gateway.file_watch import INTERVAL_S, watch
from tidegate.testing.virtual_loop import run_virtually


def test_edits_renames_and_swapped_links_are_each_noticed_once(tmp_path: Path) -> None:
    target, other, link = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "tidegate.yaml"
    target.write_text("one")
    other.write_text("two")
    link.symlink_to(target)
    noticed: list[str] = []

    async def on_change() -> None:
        noticed.append(link.read_text())

    async def body() -> None:
        watching = asyncio.create_task(watch(link, on_change))
        await asyncio.sleep(5 * INTERVAL_S)
        assert noticed == []
        target.write_text("three")
        await asyncio.sleep(3 * INTERVAL_S)
        link.unlink()
        await asyncio.sleep(3 * INTERVAL_S)
        link.symlink_to(other)
        await asyncio.sleep(3 * INTERVAL_S)
        replacement = tmp_path / "new"
        replacement.write_text("four")
        replacement.rename(other)
        await asyncio.sleep(3 * INTERVAL_S)
        watching.cancel()

    run_virtually(body())
    assert noticed == ["three", "two", "four"]


def test_a_file_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.yaml"
    file.write_text("one")
    noticed: list[str] = []

    async def on_change() -> None:
        noticed.append(file.read_text())

    async def body() -> None:
        watching = asyncio.create_task(watch(file, on_change))
        await asyncio.sleep(2.5 * INTERVAL_S)
        for text in ("", "t", "tw", "two"):
            file.write_text(text)
            await asyncio.sleep(INTERVAL_S)
        await asyncio.sleep(3 * INTERVAL_S)
        watching.cancel()

    run_virtually(body())
    assert noticed == ["two"]
