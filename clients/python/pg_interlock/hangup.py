"""The socket of a connection."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any, Union

from psycopg import AsyncConnection, Connection, Error


def hang_up(connection: Union[Connection[Any], AsyncConnection[Any]]) -> None:
    """Shuts the connection's socket. A statement that waits for the server fails at once, in whatever thread or task it is."""
    with suppress(Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)
