"""Packets between two devices that are handed on late, or never."""

from __future__ import annotations

import asyncio
import os
import random

from tidegate.load.drills.impairment import NOTHING, Impairment, Releases

PACKET_BYTES = 65536


class PacketLink:
    """``near`` and ``far``: descriptors from which one read is one packet. They are the link's, and end with it.

    ``impairment`` may be set at any time. Use inside a running loop.
    """

    def __init__(self, near: int, far: int, seed: int) -> None:
        self.impairment: Impairment = NOTHING
        self.passed = 0
        self.lost = 0
        self._random = random.Random(seed)  # noqa: S311 - a fault that can be repeated, no secret
        self._descriptors: tuple[int, ...] = (near, far)
        loop = asyncio.get_running_loop()
        for source, sink in ((near, far), (far, near)):
            os.set_blocking(source, False)
            loop.add_reader(source, self._take, source, sink, Releases())

    def close(self) -> None:
        """What is under way is lost."""
        loop = asyncio.get_running_loop()
        for descriptor in self._descriptors:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self._descriptors = ()

    def _take(self, source: int, sink: int, releases: Releases) -> None:
        try:
            packet = os.read(source, PACKET_BYTES)
        except OSError:
            return
        if self._random.random() < self.impairment.loss_share:
            self.lost += 1
            return
        loop = asyncio.get_running_loop()
        at = releases.at(self.impairment, loop.time(), len(packet), self._random.random())
        loop.call_at(at, self._give, sink, packet)

    def _give(self, sink: int, packet: bytes) -> None:
        if sink not in self._descriptors:
            return
        try:
            os.write(sink, packet)
        except OSError:
            self.lost += 1  # As a full queue would lose it.
        else:
            self.passed += 1
