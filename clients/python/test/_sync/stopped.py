# Made from _async/stopped.py by to_sync.py.
"""A program that holds a lease, and writes under it when it is told to. test_lost stops it in between."""

import sys

from pg_interlock import LeaseLost

from .shop import client


def main():
    with client() as (il, pool):
        try:
            with il.lease(sys.argv[1], 2) as lease:
                print("working", flush=True)
                sys.stdin.readline()
                try:
                    with lease.transaction() as tx:
                        tx.execute("INSERT INTO effect VALUES ('stopped')")
                    print("transaction: committed")
                except LeaseLost:
                    print("transaction: LeaseLost")
                print(f"lost: {lease.lost.is_set()}")
            print("lease: held")
        except LeaseLost:
            print("lease: LeaseLost")


if __name__ == "__main__":
    main()
