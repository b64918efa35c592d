// Each node calls nightly(day) once a minute, with the day that is due. One of them makes the report, once.
import { il } from './db.mjs';

export const nightly = (day) => il.job('report', day, {}, (run) => run.done(
    (tx) => tx.query('INSERT INTO report SELECT $1, count(*), coalesce(sum(amount), 0) FROM payment', [day])));
