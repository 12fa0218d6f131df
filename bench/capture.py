"""Requests and answers on the loopback as the kernel saw them: a packet socket with a ring in shared memory.

The kernel stamps each packet and copies its head into the ring; nothing of ours runs while a window lasts, the
pairing comes afterwards.
"""

from __future__ import annotations

import mmap
import socket
import struct
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from window import Missing

SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, PACKET_IGNORE_OUTGOING = 263, 5, 6, 10, 23
TPACKET_V2 = 1
SO_ATTACH_FILTER = 26
FRAME_BYTES, BLOCK_BYTES, SNAP_BYTES = 256, 1 << 20, 128
ETHERNET, IP = 14, 20  # bytes of the heads; the loopback has no options in its IP heads
COM_STMT_EXECUTE = 0x17


class Capture:
    """Packets of one TCP port on ``lo`` while the context lasts."""

    def __init__(self, port: int, packets: int) -> None:
        self._port = port
        self._blocks = max(1, -(-packets * FRAME_BYTES // BLOCK_BYTES))

    def __enter__(self) -> Self:
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        except PermissionError:
            raise Missing("no right to capture packets (root, or CAP_NET_RAW)") from None
        self._socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        self._socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        program = _filter(self._port)
        code = b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
        buffer = np.frombuffer(code, np.uint8)  # the kernel reads it through its address
        self._socket.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("<HxxxxxxQ", len(program), buffer.ctypes.data)
        )
        frames = self._blocks * (BLOCK_BYTES // FRAME_BYTES)
        request = struct.pack("<IIII", BLOCK_BYTES, self._blocks, FRAME_BYTES, frames)
        self._socket.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
        self._ring = mmap.mmap(self._socket.fileno(), self._blocks * BLOCK_BYTES)
        self._socket.bind(("lo", 0x0800))
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._socket.close()

    def service_ns(self) -> NDArray[np.int64]:
        """From each COM_STMT_EXECUTE to its answer on the same connection, ns. To be asked once, at the end.

        Raises:
            Missing: the ring overflowed.
        """
        _, dropped = struct.unpack("<II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        if dropped:
            raise Missing(f"the capture lost {dropped} packets")
        frames = np.frombuffer(self._ring, np.uint8).reshape(-1, FRAME_BYTES).copy()
        frames = frames[frames[:, 0] & 1 == 1]
        if not len(frames):
            return np.empty(0, np.int64)
        stamps = _little(frames, 16, 4) * 1_000_000_000 + _little(frames, 20, 4)
        tcp = int(_little(frames[:1], 12, 2)[0]) + ETHERNET + IP
        source, target = _big(frames, tcp), _big(frames, tcp + 2)
        head = (frames[:, tcp + 12] >> 4).astype(np.int64) * 4
        payload = _big(frames, tcp - IP + 2) - IP - head
        command = frames[np.arange(len(frames)), np.minimum(tcp + head + 4, FRAME_BYTES - 1)]
        asked = (target == self._port) & (payload > 0) & (command == COM_STMT_EXECUTE)
        answered = (source == self._port) & (payload > 0)
        kept = asked | answered
        client = np.where(asked, source, target)[kept]
        order = np.lexsort((stamps[kept], client))
        client, asked, stamps = client[order], asked[kept][order], stamps[kept][order]
        paired = asked[:-1] & ~asked[1:] & (client[:-1] == client[1:])
        between = np.diff(stamps).astype(np.int64)
        return np.asarray(between[paired], np.int64)


def _little(frames: NDArray[np.uint8], at: int, size: int) -> NDArray[np.int64]:
    return sum(frames[:, at + byte].astype(np.int64) << (8 * byte) for byte in range(size))  # type: ignore[return-value]


def _big(frames: NDArray[np.uint8], at: int) -> NDArray[np.int64]:
    return frames[:, at].astype(np.int64) << 8 | frames[:, at + 1]


def _filter(port: int) -> list[tuple[int, int, int, Any]]:
    """Classic BPF: source or destination port (behind an IP head without options) is ``port``."""
    load, equal, answer = 0x28, 0x15, 0x06
    return [
        (load, 0, 0, ETHERNET + IP),
        (equal, 2, 0, port),
        (load, 0, 0, ETHERNET + IP + 2),
        (equal, 0, 1, port),
        (answer, 0, 0, SNAP_BYTES),
        (answer, 0, 0, 0),
    ]
