"""An application of six features on one pool. Conflicts are errors with a status."""
from datetime import datetime, timezone
from zoneinfo import ZoneInfo
from fastapi import FastAPI
from pg_interlock import InterlockError
from pg_interlock.starlette import IdempotencyKey, conflict
from buttons import orders
from cart import carts
from db import il, pool
from edit_lock import documents
from endpoint import payments
from importer import import_file
from nightly_job import nightly

app = FastAPI()
app.add_event_handler("startup", pool.open)
app.add_event_handler("shutdown", il.close)
app.add_event_handler("shutdown", pool.close)
app.add_exception_handler(InterlockError, conflict)
app.add_middleware(IdempotencyKey, interlock=il, scope="payment", path="/payments",
                   user=lambda request: request.headers.get("X-User"))      # whom your application has authenticated
for router in (documents, carts, orders, payments):
    app.include_router(router)

@app.post("/imports/{name}")
async def imports(name: str, rows: list[dict]):
    return await import_file(name, rows)

async def tick(time=None):
    return await nightly((time or datetime.now(timezone.utc)).astimezone(ZoneInfo("Europe/London")).date().isoformat())
