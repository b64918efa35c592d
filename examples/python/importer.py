"""Imports a file once, in batches. After a crash the next call continues behind the last batch. Descriptions belong to the editors."""
import json
from db import il

async def import_file(name, rows, size=1000):
    async def work(run):
        for begin in range(run.state["next"] if run.state else 0, len(rows), size):
            async with run.save("batch", {"next": begin + size}) as tx:
                await tx.execute("SELECT interlock.set_writer('importer')")
                await tx.execute("""INSERT INTO item AS i (id, name, description, price)
                    SELECT id, name, description, price FROM jsonb_populate_recordset(NULL::item, %s::jsonb)
                    ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description, price = excluded.price
                    WHERE (i.name, i.price) IS DISTINCT FROM (excluded.name, excluded.price)""", (json.dumps(rows[begin:begin + size]),))
        return len(rows)
    return await il.job("import", name, work)
