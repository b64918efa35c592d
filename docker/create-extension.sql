-- Run once, in the database of POSTGRES_DB, when the image creates a data directory.
CREATE EXTENSION IF NOT EXISTS pg_interlock;
