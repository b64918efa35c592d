# Clusters that were created otherwise: with checksums and without, other segments of WAL, locales of ICU and of C, and
# encodings in which JSON has to be converted, or is not. A directory that cannot be written gives the server's own error.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PGCLIENTENCODING} = 'UTF8';
my $word = "Gr\xc3\xb6\xc3\x9fe";
my $first = slurp_file('test/helpers/guard.sql');

# A cluster of the C locale, whose databases have encodings of their own
my $node = new_cluster('c', '--locale=C', '--encoding=SQL_ASCII', '--data-checksums', '--wal-segsize=4');
is($node->safe_psql('postgres', "SHOW data_checksums"), 'on', 'with checksums');
for my $encoding ('SQL_ASCII', 'LATIN1', 'UTF8')
{
    my $database = lc $encoding;
    $node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0 ENCODING $encoding");
    guards($node, $database);
    keeps_words($node, $database, $encoding eq 'SQL_ASCII' ? 7 : 5);
}

# The same keys in two encodings are of two databases, and no view shows those of the other
$node->safe_psql('sql_ascii', "SELECT interlock.acquire_lease('key ' || chr(233), '1 h')");
is($node->safe_psql('utf8', "SELECT string_agg(key, ' ' ORDER BY key) FROM interlock.leases"), "$word job",
    'another database has bytes that are no text here');

# What an encoding cannot express is an error of the server, and changes nothing
my $euro = q('{"title": "\u20ac"}');
for my $database ('sql_ascii', 'latin1')
{
    my $version = $node->safe_psql($database, 'SELECT version FROM config');
    like(failure($node, $database, "SELECT interlock.versioned_update('config', 1, $version, $euro)"),
        qr/ERROR:  (22P05|0A000): /, "$database: a character that it lacks");
    is($node->safe_psql($database, 'SELECT version FROM config'), $version, "$database: leaves the row");
}

# A directory that cannot be written
SKIP:
{
    $node->safe_psql('postgres', 'CREATE DATABASE readonly');
    my $oid = $node->safe_psql('postgres', "SELECT oid FROM pg_database WHERE datname = 'readonly'");
    my $directory = $node->data_dir . "/base/$oid";
    my $mode = (stat $directory)[2] & 07777;
    chmod 0500, $directory;
    skip 'permissions do not bind this user', 3 if -w $directory;
    my $error = failure($node, 'readonly', 'CREATE EXTENSION pg_interlock');
    chmod $mode, $directory;
    like($error, qr/ERROR:  42501: could not create file "base\/$oid\/\d+": Permission denied/, 'read-only: the error of the server');
    is($node->safe_psql('readonly', "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'interlock%'"), 0, 'nothing is left of it');
    guards($node, 'readonly');
}
my $has_icu = $node->safe_psql('postgres', "SELECT count(*) > 0 FROM pg_collation WHERE collprovider = 'i'") eq 't';
$node->stop;

# ICU, and a language in which the letter I is the upper case of another one
SKIP:
{
    skip 'the server has no ICU', 1 unless $has_icu;
    my @without = $node->pg_version >= 18 ? ('--no-data-checksums') : ();
    my $icu = new_cluster('icu', '--encoding=UTF8', '--locale=C', '--locale-provider=icu', '--icu-locale=tr', '--wal-segsize=64', @without);
    is($icu->safe_psql('postgres', "SHOW data_checksums"), 'off', 'without checksums');
    isnt($icu->safe_psql('postgres', "SELECT lower('I')"), 'i', 'I has another lower case');
    guards($icu, 'postgres');
    keeps_words($icu, 'postgres', 5);
    $icu->stop('immediate');
    $icu->start;
    is($icu->safe_psql('postgres', "SELECT outcome, holder FROM interlock.acquire_lease('$word', '1 h')"), "held|$word",
        'after a crash the stored leases are there');
    $icu->stop;
}
done_testing();

sub new_cluster
{
    my ($name, @options) = @_;
    my $cluster = PostgreSQL::Test::Cluster->new($name);
    $cluster->init(extra => \@options);
    $cluster->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.lease_durable_after = '1 s'");
    $cluster->start;
    return $cluster;
}

sub guards
{
    my ($cluster, $database) = @_;
    $cluster->safe_psql($database, 'CREATE EXTENSION pg_interlock');
    is($cluster->safe_psql($database, $first), '2 conflict 1 acquired', "$database: versions, history and leases work");
    return;
}

# keeps_words(CLUSTER, DATABASE, LENGTH): a word that is not ASCII, with so many characters there, in all that keeps texts.
sub keeps_words
{
    my ($cluster, $database, $length) = @_;
    is($cluster->safe_psql($database, qq(
        SELECT interlock.versioned_update('config', 1, 2, '{"title": "$word"}');
        SELECT interlock.versioned_update('config', 1, 3, '{"title": "other"}');
        SELECT row_data->>'title', length(row_data->>'title') FROM interlock.row_history('config', 1) WHERE version = 3)),
        "3\n4\n$word|$length", "$database: rows and their history");
    is($cluster->safe_psql($database, qq(
        SELECT outcome FROM interlock.acquire_lease('$word', '1 h', holder => '$word');
        SELECT key, holder FROM interlock.leases WHERE key = '$word';
        BEGIN;
        SELECT FROM interlock.lock_key('$word');
        SELECT key FROM interlock.key_locks;
        COMMIT)),
        "acquired\n$word|$word\n$word", "$database: leases and key locks");
    is($cluster->safe_psql($database, qq(
        SELECT FROM interlock.define_idempotency_scope('$word');
        CREATE FUNCTION answer(request jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT request';
        SELECT outcome FROM interlock.run_once('$word', '$word', 'answer(jsonb)', '{"word": "$word"}');
        SELECT outcome, response->>'word' FROM interlock.run_once('$word', '$word', 'answer(jsonb)', '{"word": "$word"}'))),
        "completed\nreplay|$word", "$database: idempotency");
    return;
}

# The error of a statement, with its SQLSTATE.
sub failure
{
    my ($cluster, $database, $sql) = @_;
    my (undef, undef, $error) = $cluster->psql($database, "\\set VERBOSITY verbose\n$sql");
    return $error;
}
