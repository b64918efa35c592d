-- What the router has besides the map: functions of the same names as on the shards, which PL/Proxy sends to the shard of the key.
--
--   psql -v ON_ERROR_STOP=1 -d router -f router.sql

\ir map.sql
CREATE EXTENSION plproxy;

-- PL/Proxy reads the map again when the version has grown. It has 256 partitions. Partitions of one shard share a connection.
CREATE SCHEMA plproxy;
CREATE FUNCTION plproxy.get_cluster_version(cluster_name text) RETURNS int LANGUAGE sql AS 'SELECT version FROM public.map';
CREATE FUNCTION plproxy.get_cluster_partitions(cluster_name text) RETURNS SETOF text LANGUAGE sql
    AS 'SELECT conninfo FROM public.slot JOIN public.shard ON name = shard ORDER BY slot';
CREATE FUNCTION plproxy.get_cluster_config(cluster_name text, OUT key text, OUT val text) RETURNS SETOF record LANGUAGE sql
    AS $$ SELECT 'connection_lifetime', '600' $$;

CREATE FUNCTION lease(path text, ttl interval, who text, OUT outcome text, OUT token bigint, OUT holder text)
    LANGUAGE plproxy AS $$ CLUSTER 'shards'; RUN ON slot_of(path); $$;
CREATE FUNCTION renew(path text, token bigint) RETURNS timestamptz
    LANGUAGE plproxy AS $$ CLUSTER 'shards'; RUN ON slot_of(path); $$;
CREATE FUNCTION release(path text, token bigint) RETURNS boolean
    LANGUAGE plproxy AS $$ CLUSTER 'shards'; RUN ON slot_of(path); $$;
CREATE FUNCTION add_invoice(tenant text, id int, amount numeric) RETURNS bigint
    LANGUAGE plproxy AS $$ CLUSTER 'shards'; RUN ON slot_of(tenant); $$;
CREATE FUNCTION pay_invoice(tenant text, id int, version bigint, token bigint) RETURNS bigint
    LANGUAGE plproxy AS $$ CLUSTER 'shards'; RUN ON slot_of(tenant); $$;
CREATE FUNCTION charge(tenant text, request_key text, amount numeric, OUT outcome text, OUT response jsonb)
    LANGUAGE plproxy AS $$ CLUSTER 'shards'; RUN ON slot_of(tenant); $$;
CREATE FUNCTION unpaid(OUT tenant text, OUT id int, OUT amount numeric) RETURNS SETOF record
    LANGUAGE plproxy AS $$ CLUSTER 'shards'; RUN ON ALL; $$;
