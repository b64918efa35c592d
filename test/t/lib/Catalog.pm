# What the catalogs say of the extension's objects, to compare an upgraded extension with a new one.

package Catalog;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(catalog);

# Oids are printed as names, and columns counted without dropped ones.
my $query = <<'SQL';
SET search_path = pg_catalog;
CREATE TEMP VIEW members AS
    SELECT d.classid, d.objid, o.type, o.identity
    FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
        CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) o
    WHERE e.extname = 'pg_interlock' AND d.deptype = 'e';
CREATE TEMP VIEW relations AS
    SELECT c.*, m.identity FROM members m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND m.objid = c.oid;
CREATE TEMP VIEW facts (type, identity, fact) AS
    SELECT type, identity, concat_ws(' ', 'member,', obj_description(objid, classid::regclass::name),
               (SELECT i.initprivs::text FROM pg_init_privs i WHERE (i.classoid, i.objoid, i.objsubid) = (m.classid, m.objid, 0))) FROM members m
    UNION ALL
    SELECT 'extension', 'itself', concat_ws(' ', extversion, extnamespace::regnamespace,
               (SELECT string_agg(c.oid::regclass || ' ' || c.condition, ',' ORDER BY c.oid::regclass::text) FROM unnest(extconfig, extcondition) c (oid, condition)),
               obj_description(oid, 'pg_extension'))
      FROM pg_extension WHERE extname = 'pg_interlock'
    UNION ALL
    SELECT type, identity, concat_ws(' ', 'rights', nspowner::regrole, nspacl::text) FROM members JOIN pg_namespace n ON classid = 'pg_namespace'::regclass AND objid = n.oid
    UNION ALL
    SELECT type, identity, concat_ws(' ', p.proowner::regrole, p.proacl::text, pg_get_functiondef(p.oid))
      FROM members JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    UNION ALL
    SELECT 'relation', identity, concat_ws(' ', relkind, relpersistence, relowner::regrole, relacl::text, reloptions::text, relrowsecurity, relforcerowsecurity,
               CASE WHEN relkind = 'v' THEN pg_get_viewdef(oid) END) FROM relations
    UNION ALL
    SELECT 'column', concat(r.identity, '.', a.attname), concat_ws(' ', row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum), format_type(a.atttypid, a.atttypmod),
               a.attnotnull, a.attidentity, a.attgenerated, a.attstorage, a.attcollation::regcollation, a.attacl::text, pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum))
      FROM relations r JOIN pg_attribute a ON a.attrelid = r.oid LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
     WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'constraint', concat(coalesce(r.identity, t.identity), '.', c.conname), concat_ws(' ', pg_get_constraintdef(c.oid), c.convalidated)
      FROM pg_constraint c LEFT JOIN relations r ON c.conrelid = r.oid LEFT JOIN members t ON t.classid = 'pg_type'::regclass AND c.contypid = t.objid
     WHERE r.oid IS NOT NULL OR t.objid IS NOT NULL
    UNION ALL
    SELECT 'index', i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM relations r JOIN pg_index i ON i.indrelid = r.oid
    UNION ALL
    SELECT 'trigger', concat(r.identity, '.', t.tgname), concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid)) FROM relations r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'policy', concat(p.schemaname, '.', p.tablename, '.', p.policyname), p::text FROM pg_policies p JOIN relations r ON r.oid = format('%I.%I', p.schemaname, p.tablename)::regclass
    UNION ALL
    SELECT 'sequence', identity, concat_ws(' ', format_type(seqtypid, NULL), seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle) FROM relations r JOIN pg_sequence s ON s.seqrelid = r.oid
    UNION ALL
    SELECT type, identity, concat_ws(' ', t.typtype, t.typcategory, t.typlen, t.typbyval, t.typalign, t.typstorage, t.typowner::regrole, t.typacl::text, t.typinput, t.typoutput, t.typreceive, t.typsend,
               t.typnotnull, format_type(nullif(t.typbasetype, 0), t.typtypmod), t.typdefault) FROM members JOIN pg_type t ON classid = 'pg_type'::regclass AND objid = t.oid
    UNION ALL
    SELECT type, identity, concat_ws(' ', castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext, castmethod)
      FROM members JOIN pg_cast c ON classid = 'pg_cast'::regclass AND objid = c.oid
    UNION ALL
    SELECT type, identity, concat_ws(' ', oprcode, oprrest, oprjoin, oprcom::regoperator, oprnegate::regoperator, oprcanmerge, oprcanhash)
      FROM members JOIN pg_operator o ON classid = 'pg_operator'::regclass AND objid = o.oid
    UNION ALL
    SELECT type, identity, concat_ws(' ', evtevent, evtenabled, evtfoid::regprocedure, evttags::text) FROM members JOIN pg_event_trigger e ON classid = 'pg_event_trigger'::regclass AND objid = e.oid;
SELECT DISTINCT concat_ws(' ', type, identity, regexp_replace(fact, '\s+', ' ', 'g')) COLLATE "C" FROM facts ORDER BY 1;
SQL

# catalog(NODE, DATABASE [, STATEMENT]): a text; as it would be after the statement, which is rolled back.
sub catalog
{
    my ($node, $database, $statement) = @_;
    return $node->safe_psql($database, join(";\n", 'BEGIN', $statement // 'SET search_path = pg_catalog', $query));
}

1;
