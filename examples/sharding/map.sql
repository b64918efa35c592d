-- Which slot is on which shard: for the router, and for clients that compute the shard themselves.

CREATE TABLE shard (name text PRIMARY KEY, conninfo text NOT NULL);
CREATE TABLE slot (slot int PRIMARY KEY CHECK (slot BETWEEN 0 AND 255), shard text NOT NULL REFERENCES shard);
CREATE TABLE map (version int NOT NULL);
INSERT INTO map VALUES (1);

CREATE FUNCTION assign_slots(first int, last int, shard text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO slot SELECT s, shard FROM generate_series(first, last) s ON CONFLICT (slot) DO UPDATE SET shard = excluded.shard;
    UPDATE map SET version = version + 1;
$$;

-- As on the shards.
CREATE FUNCTION slot_of(path text) RETURNS int IMMUTABLE LANGUAGE sql
    AS $$ SELECT get_byte(sha256(convert_to(split_part(path, '/', 1), 'UTF8')), 0) $$;
