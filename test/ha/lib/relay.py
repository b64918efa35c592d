"""relay.py NAME LISTEN=TARGET...: passes on what comes to an address, until it is killed. The name is for who looks for it."""

import asyncio
import contextlib
import sys


async def copy(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def listen(pair):
    address, target = pair.split("=")

    async def connected(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(*target.split(":"))
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    server = await asyncio.start_server(connected, *address.split(":"))
    await server.serve_forever()


async def main():
    await asyncio.gather(*map(listen, sys.argv[2:]))


asyncio.run(main())
