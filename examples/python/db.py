"""The connections, and the client of pg_interlock."""
from pg_interlock import AsyncInterlock
from psycopg_pool import AsyncConnectionPool

pool = AsyncConnectionPool("", open=False)
il = AsyncInterlock(pool)
