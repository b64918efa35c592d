// The connections, and the client of pg_interlock.
import pg from 'pg';
import { interlock } from 'pg-interlock';

export const pool = new pg.Pool().on('error', console.error);
export const il = interlock(pool);
