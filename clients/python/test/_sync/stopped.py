# Made from _async/stopped.py by to_sync.py.
"""Acquires a lease, waits for a line of input, and then writes. test_lost stops the program while it waits."""

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
