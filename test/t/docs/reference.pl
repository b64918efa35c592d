# DOC-1: docs/reference has each function, setting, view and SQLSTATE, as the catalog has it. A failure shows what the page should say.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_interlock');

sub page { return slurp_file("docs/reference/$_[0].md"); }

# Rows of a query, each a list of columns
sub rows
{
    my ($query) = @_;
    return map { [ split /\t/, $_, -1 ] } split /\n/, $node->safe_psql('postgres', $query, extra_params => [ '-F', "\t" ]);
}

# The lines of the tables of a text, each a list of cells without quotes
sub table_rows
{
    my ($text) = @_;
    return map { [ map { s/^`(.*)`$/$1/r } split /\s*\|\s*/, $_ =~ s/^\|\s*|\s*\|\s*$//gr, -1 ] } $text =~ /^(\|.*)$/mg;
}

# --- Functions: overloads whose arguments have the same names are one line ------------------------------------------------

my $signatures = <<'SQL';
SET intervalstyle = postgres_verbose;
CREATE FUNCTION pg_temp.type_name(type oid) RETURNS text LANGUAGE sql AS
    $$SELECT replace(format_type(type, NULL), 'timestamp with time zone', 'timestamptz')$$;
-- Without the cast, and an interval as it is read
CREATE FUNCTION pg_temp.value(expression text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(regexp_replace(regexp_replace(regexp_replace(expression, '^''(-?\d+)''::integer$', '\1'),
               '::[a-z_. ]+(\[\])?$', ''), '^NULL$', 'null'), '^''@ ', '''')$$;
CREATE FUNCTION pg_temp.members(type oid) RETURNS text LANGUAGE sql AS $$
    SELECT '(' || string_agg(quote_ident(attname) || ' ' || pg_temp.type_name(atttypid), ', ' ORDER BY attnum) || ')'
      FROM pg_attribute WHERE attrelid = (SELECT typrelid FROM pg_type WHERE oid = type) AND attnum > 0$$;
WITH api AS (
    SELECT p.* FROM pg_proc p
     WHERE p.pronamespace = 'interlock'::regnamespace AND p.prorettype <> 'trigger'::regtype),
arguments AS (
    SELECT a.oid, a.proname, u.i, coalesce(a.proargmodes[u.i]::text, 'i') AS mode, a.proargnames[u.i] AS name,
           pg_temp.type_name(u.type) AS type,
           pg_temp.value(pg_get_function_arg_default(a.oid, (count(*) FILTER (WHERE coalesce(a.proargmodes[u.i]::text, 'i') <> 'o')
                                                   OVER (PARTITION BY a.oid ORDER BY u.i))::int)) AS value
      FROM api a, unnest(coalesce(a.proallargtypes, a.proargtypes::oid[])) WITH ORDINALITY u (type, i)),
shapes AS (
    SELECT a.oid, a.proname, a.proretset, a.prorettype,
           coalesce((SELECT string_agg(g.mode || g.name, ',' ORDER BY g.i) FROM arguments g WHERE g.oid = a.oid), '') AS shape
      FROM api a),
merged AS (
    SELECT s.proname, s.shape, g.i, g.mode, g.name, max(g.value) AS value,
           CASE WHEN bool_or(g.type = '"any"') THEN 'any' ELSE string_agg(DISTINCT g.type, ' | ') END AS type
      FROM shapes s JOIN arguments g USING (oid) GROUP BY 1, 2, 3, 4, 5),
results AS (
    SELECT proname, shape, bool_or(proretset) AS several,
           string_agg(DISTINCT coalesce(pg_temp.members(prorettype), pg_temp.type_name(prorettype)), ' | ') AS type
      FROM shapes GROUP BY 1, 2)
SELECT r.proname,
       format('%s(%s) -> %s%s', r.proname,
           (SELECT string_agg(concat(CASE m.mode WHEN 'v' THEN 'variadic ' END, quote_ident(m.name), ' ', m.type, ' = ' || m.value), ', ' ORDER BY m.i)
              FROM merged m WHERE m.proname = r.proname AND m.shape = r.shape AND m.mode <> 'o'),
           CASE WHEN r.several THEN 'setof ' END,
           coalesce((SELECT '(' || string_agg(quote_ident(m.name) || ' ' || m.type, ', ' ORDER BY m.i) || ')'
                       FROM merged m WHERE m.proname = r.proname AND m.shape = r.shape AND m.mode IN ('o', 'b', 't')
                     HAVING count(*) > 1 OR r.several AND count(*) > 0), r.type))
  FROM results r ORDER BY 1, 2;
SQL
my (%expected, %found);
push @{ $expected{ $_->[0] } }, $_->[1] for rows($signatures);
my $functions = page('functions');
while ($functions =~ /^### (\w+)\n(.*?)(?=^##|\z)/msg)
{
    my ($name, $entry) = ($1, $2);
    my ($block) = $entry =~ /^```\n(.*?)^```$/ms;
    $found{$name} = $entry;
    # A signature begins at the left margin, and its further lines do not.
    my @lines = map { s/\s+/ /gr } split /\n(?=\S)/, ($block // '') =~ s/\s+\z//r;
    is(join("\n", sort @lines), join("\n", sort @{ $expected{$name} // [] }), "functions.md: $name");
}
is(join(' ', sort keys %found), join(' ', sort keys %expected), 'DOC-1: functions.md has all functions and no others');
my ($names) = $functions =~ /^## All names\n(.*?)^## /ms;
is(join(' ', sort $names =~ /\[`(\w+)`\]/g), join(' ', sort keys %expected), 'DOC-1: and a line for each at its head');

my %granted = map { $_->[0] => 1 } rows(q{
    SELECT DISTINCT p.proname FROM pg_proc p
     WHERE p.pronamespace = 'interlock'::regnamespace AND NOT has_function_privilege('public', p.oid, 'EXECUTE')});
is(join(' ', grep { $found{$_} =~ /Needs a grant\s+of\s+`EXECUTE`/ } sort keys %found), join(' ', sort keys %granted),
    'functions.md names the functions that need a grant');

# --- Settings, views, SQLSTATEs ------------------------------------------------------------------------------------------

my @settings = rows(q{SELECT name, current_setting(name), context FROM pg_settings WHERE name LIKE 'interlock.%' ORDER BY name});
is(join("\n", sort map { join(' | ', @$_[ 0, 1, 3 ]) } grep { $_->[0] =~ /^interlock\./ } table_rows(page('settings'))),
    join("\n", sort map { join(' | ', @$_) } @settings), 'settings.md has the settings, their defaults and contexts');

my %columns;
push @{ $columns{ $_->[0] } }, "$_->[1] | $_->[2]" for rows(q{
    SELECT c.relname, a.attname, replace(format_type(a.atttypid, NULL), 'timestamp with time zone', 'timestamptz')
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.relnamespace = 'interlock'::regnamespace AND c.relkind IN ('r', 'v')
     ORDER BY c.relname, a.attnum});
$node->safe_psql('postgres', q{CREATE TABLE public."TABLE" (id int PRIMARY KEY); SELECT interlock.enable_history('"TABLE"')});
push @{ $columns{TABLE_history} }, "$_->[0] | $_->[1]" for rows(q{
    SELECT attname, replace(format_type(atttypid, NULL), 'timestamp with time zone', 'timestamptz')
      FROM pg_attribute WHERE attrelid = '"TABLE_history"'::regclass AND attnum > 0 ORDER BY attnum});
my %described;
my $views = page('views');
while ($views =~ /^## (\w+)\n(.*?)(?=^## |\z)/msg)
{
    my $name = $1;
    my @cells = grep { $_->[0] !~ /^(column|-+)$/ } table_rows($2);
    $described{$name} = 1;
    is(join("\n", map { "$_->[0] | $_->[1]" } @cells), join("\n", @{ $columns{$name} // [] }), "views.md: $name");
}
is(join(' ', sort keys %described), join(' ', sort keys %columns), 'views.md has all views and tables and no others');

my %raised = map { $_ => 1 } map { join('', /'(\w)'/g) } map { slurp_file($_) =~ /MAKE_SQLSTATE\(('I'[^)]*)\)/g } glob('src/*/*.h src/*/*.cpp');
my %listed = map { $_->[0] => 1 } grep { $_->[0] =~ /^IL\d/ } table_rows(page('errors') =~ s/.*^## All SQLSTATEs$//msr);
is(join(' ', sort keys %listed), join(' ', sort keys %raised), 'errors.md has the SQLSTATEs of class IL');

$node->stop;
done_testing();
