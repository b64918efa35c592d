"""A program that holds a lease, and writes under it when it is told to. test_lost stops it in between."""

import sys

from pg_interlock import LeaseLost

from .shop import client


async def main():
    async with client() as (il, pool):
        try:
            async with il.lease(sys.argv[1], 2) as lease:
                print("working", flush=True)
                sys.stdin.readline()
                try:
                    async with lease.transaction() as tx:
                        await tx.execute("INSERT INTO effect VALUES ('stopped')")
                    print("transaction: committed")
                except LeaseLost:
                    print("transaction: LeaseLost")
                print(f"lost: {lease.lost.is_set()}")
            print("lease: held")
        except LeaseLost:
            print("lease: LeaseLost")


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
