// Imports a file once, in batches. After a crash the next call continues behind the last batch. Descriptions belong to the editors.
import { il } from './db.mjs';

export const importFile = (name, rows, size = 1000) => il.job('import', name, {}, async (run) => {
    for (let from = run.state?.next ?? 0; from < rows.length; from += size) {
        await run.save('batch', { next: from + size }, async (tx) => {
            await tx.query(`SELECT interlock.set_writer('importer')`);
            await tx.query(`INSERT INTO item AS i (id, name, description, price)
                SELECT id, name, description, price FROM jsonb_populate_recordset(NULL::item, $1)
                ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description, price = excluded.price
                WHERE (i.name, i.price) IS DISTINCT FROM (excluded.name, excluded.price)`, [JSON.stringify(rows.slice(from, from + size))]);
        });
    }
    return rows.length;
});
