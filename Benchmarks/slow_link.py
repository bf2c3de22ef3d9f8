"""A link of a given round trip and rate in front of servers of this machine. Its two directions are apart from each other; the connections of one
direction share its rate in turns, piece by piece."""
import asyncio
import struct
import threading
import time

PIECE = 16 << 10
SLACK = 0.01  # seconds


class SlowLink:
    """`there`: what the port leads to. Without it the port is a SOCKS 5 proxy (RFC 1928), so that one program is far away from a server that
    others are near."""

    def __init__(self, round_trip, rate):
        """`round_trip`: seconds, `rate`: bytes a second in each direction."""
        self.delay, self.rate = round_trip / 2, rate
        self.loop = asyncio.new_event_loop()
        self.free_at, self.turns = [0.0, 0.0], [asyncio.Lock(), asyncio.Lock()]
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def port(self, there=None):
        """Returns a new port that leads through the link."""
        async def listen():
            async def serve(reader, writer):
                await self.serve(reader, writer, there)
            return await asyncio.start_server(serve, "127.0.0.1", 0, limit=PIECE)
        server = asyncio.run_coroutine_threadsafe(listen(), self.loop).result()
        return server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer, there):
        try:
            host, port = ("127.0.0.1", there) if there else await self.greet(reader, writer)
            far_reader, far_writer = await asyncio.open_connection(host, port, limit=PIECE)
            # A connection stands after one round trip.
            await asyncio.gather(
                self.carry(reader, far_writer, 0, 2 * self.delay), self.carry(far_reader, writer, 1, 0))
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    async def greet(self, reader, writer):
        await reader.readexactly((await reader.readexactly(2))[1])
        writer.write(b"\5\0")
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(str(byte) for byte in await reader.readexactly(4))
        port, = struct.unpack("!H", await reader.readexactly(2))
        writer.write(b"\5\0\0\1" + bytes(6))
        return host, port

    async def carry(self, reader, writer, direction, late):
        """One direction of one connection."""
        under_way = asyncio.Queue()
        arriving = asyncio.ensure_future(self.arrive(under_way, writer))
        not_before = time.monotonic() + late
        try:
            while True:
                piece = await reader.read(PIECE)
                await asyncio.sleep(not_before - time.monotonic())
                async with self.turns[direction]:
                    now = time.monotonic()
                    # A sleep that was too long is made good.
                    self.free_at[direction] = max(now - SLACK, self.free_at[direction]) + len(piece) / self.rate
                    await asyncio.sleep(self.free_at[direction] - now)
                under_way.put_nowait((time.monotonic() + self.delay, piece))
                if not piece:
                    return await arriving
        except OSError:
            under_way.put_nowait((0, b""))

    async def arrive(self, under_way, writer):
        try:
            while True:
                at, piece = await under_way.get()
                if not piece:
                    break
                await asyncio.sleep(at - time.monotonic())
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        writer.close()
