-- calls.json as tables, for languages that have no JSON of their own (calls.mjs says what is in it).
-- The file goes into calls_file, with the name of the driver.
CREATE TEMP TABLE calls_file (driver text, content jsonb);
CREATE TEMP VIEW call_setup AS
    SELECT s.i, s.sql FROM calls_file f, jsonb_array_elements_text(f.content->'setup') WITH ORDINALITY s (sql, i);
-- A call that the driver types otherwise is there twice: as it is, where it fails, and as it types it.
CREATE TEMP VIEW call AS
    SELECT c.n, v.instead, c.call->>'name' || CASE WHEN v.instead THEN ', as on the page' WHEN v.fails THEN ' needs that' ELSE '' END AS name,
           v.fails, coalesce((c.call->'transaction')::boolean, false) AS in_transaction, v.call->>'sql' AS sql,
           v.call->'arguments' AS arguments, c.call->'setup' AS setup, c.call->'answer' AS answer
      FROM calls_file f,
           jsonb_array_elements(f.content->'calls') WITH ORDINALITY c (call, n),
           LATERAL (SELECT false, c.call ? 'drivers' AND c.call->'drivers' ? f.driver, c.call
                     UNION ALL
                    SELECT true, false, c.call || (c.call->'drivers'->f.driver) WHERE c.call->'drivers' ? f.driver) v (instead, fails, call);
CREATE TEMP VIEW call_before AS
    SELECT c.n, c.instead, s.i, s.sql FROM call c, jsonb_array_elements_text(c.setup) WITH ORDINALITY s (sql, i);
-- kind: number, string, boolean, null, array, object, or $bigint and the like
CREATE TEMP VIEW call_argument AS
    SELECT c.n, c.instead, a.i, coalesce(k.kind, jsonb_typeof(a.argument)) AS kind,
           coalesce(a.argument->k.kind, a.argument) #>> '{}' AS value,
           CASE WHEN jsonb_typeof(a.argument) = 'array' THEN ARRAY(SELECT jsonb_array_elements_text(a.argument)) END AS elements,
           jsonb_typeof(a.argument->0) AS element_kind
      FROM call c, jsonb_array_elements(c.arguments) WITH ORDINALITY a (argument, i)
           LEFT JOIN LATERAL (SELECT j.key FROM jsonb_object_keys(CASE WHEN jsonb_typeof(a.argument) = 'object' THEN a.argument ELSE '{}' END) j (key)
                               WHERE j.key LIKE '$%') k (kind) ON true;
CREATE TEMP VIEW call_answer AS
    SELECT c.n, c.instead, a.i, a.value #>> '{}' AS value FROM call c, jsonb_array_elements(c.answer) WITH ORDINALITY a (value, i);
