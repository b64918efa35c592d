"""Full disks."""

import contextlib


def fill(directory):
    """Fills its file system. Returns what empties it again."""
    path = directory / "filled"
    with open(path, "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"\0" * size)
    return path.unlink
