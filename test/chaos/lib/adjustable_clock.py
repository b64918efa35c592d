"""The clock of programs, which a test sets while they run: test/helpers/clock.c."""

import pathlib
import struct
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "helpers/clock.c"


def compile_clock(directory):
    """The library that AdjustableClock needs."""
    library = directory / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return library


class AdjustableClock:
    def __init__(self, library, offsets):
        """offsets: a new file."""
        self.offsets = offsets
        self.variables = {"LD_PRELOAD": str(library), "CLOCK_OFFSETS": str(offsets)}
        offsets.write_bytes(b"\0" * 16)

    def step(self, seconds):
        with open(self.offsets, "r+b") as file:
            (now,) = struct.unpack("q", file.read(8))
            file.seek(0)
            file.write(struct.pack("q", now + seconds))
