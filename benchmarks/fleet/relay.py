"""Forward connections to the embedded Postgres, which listens only on 127.0.0.1, on the same port.

Run as python -m benchmarks.fleet.relay ADDRESS PORT.
"""

import asyncio
import sys

PIECE = 65_536


async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        return
    finally:
        writer.close()


async def relay(address: str, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(passed_on(reader, back), passed_on(there, writer))

    async with await asyncio.start_server(connected, address, port):
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1], int(sys.argv[2])))
