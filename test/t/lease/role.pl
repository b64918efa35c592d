# SEC-2: whose a lease is after a clean stop and after a crash. In the grace that follows a crash the token is all there
# is of a short lease: it has to be one that the role was given, and a role that guesses is refused. The same in a running
# server is in test/sql/lease_role.sql.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server("interlock.sweeper = off\ninterlock.lease_durable_after = '10 min'");
$node->safe_psql('postgres', q(
CREATE ROLE app LOGIN;
CREATE ROLE member LOGIN IN ROLE app;
CREATE ROLE below LOGIN IN ROLE member;
CREATE ROLE outsider LOGIN NOINHERIT IN ROLE app;
CREATE ROLE tenant LOGIN;
CREATE ROLE pool LOGIN IN ROLE tenant;
CREATE ROLE thief LOGIN;
CREATE ROLE guesser LOGIN;
GRANT CREATE ON SCHEMA public TO thief;
));

# The session of a role
sub as
{
    my ($role, @sql) = @_;
    return $node->safe_psql('postgres', join(";\n", @sql), extra_params => [ '-U', $role ]);
}

sub acquire
{
    my ($role, $key, $arguments) = @_;
    return as($role, "SELECT token FROM interlock.acquire_lease('$key', '5 min'" . ($arguments ? ", $arguments" : '') . ')');
}

sub renewal { return "SELECT interlock.renew_lease('$_[0]', $_[1], '5 min') IS NOT NULL"; }
sub renew { my ($role, @lease) = @_; return as($role, renewal(@lease)); }

# What a role with the right token, or a wrong one, can do
sub attempt
{
    my ($role, $key, $token) = @_;
    my $renewed = renew($role, $key, $token);
    my $released = as($role, "SELECT interlock.release_lease('$key', $token)");
    my (undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY sqlstate\nSELECT interlock.assert_lease('$key', $token)",
        extra_params => [ '-U', $role ]);
    return $renewed . $released . ($error =~ /IL006/ ? 'f' : 't');
}

sub crash
{
    $node->stop('immediate');
    $node->start;
}

# How far the next token of the server is from one
my $step = 1 << 18;

# --- A clean stop: the role is on record ---------------------------------------------------------------------

my %token;
$token{$_} = acquire('app', $_) for 'short', 'dropped';
$token{long} = as('app', "SELECT token FROM interlock.acquire_lease('long', '2 h')");
$node->stop('fast');
$node->start;
is(attempt('thief', $_, $token{$_}), 'fff', "clean stop: another role has nothing of the $_ lease") for 'short', 'long';
is(as('thief', "SELECT string_agg(outcome, ' ') FROM unnest('{short,long}'::text[]) key, interlock.acquire_lease(key)"), 'held held', 'clean stop: nor gets it');
is(as('thief', 'SELECT count(*), count(token) FROM interlock.leases'), '3|0', 'clean stop: nor sees a token');
is(renew('member', $_, $token{$_}) . renew('app', $_, $token{$_}), 'tt', "clean stop: members renew the $_ lease") for 'short', 'long';
is(renew('postgres', 'short', $token{short}), 't', 'clean stop: a superuser is a member');

# --- A crash: of short leases there is nothing but the token ---------------------------------------------------

$token{shared} = acquire('app', 'shared', "mode => 'shared'");
$token{permit} = as('app', "SELECT token FROM interlock.acquire_permit('permit', 2, '5 min')");
$token{$_} = acquire($_, $_) for 'member', 'below';
$token{pooled} = acquire('pool', 'pooled');
$token{tenant} = acquire('tenant', 'tenant');
$token{$_} = acquire('thief', $_) for 'thief', 'thief 2';
$token{"guesser $_"} = acquire('guesser', "guesser $_", "mode => 'shared'") for 1 .. 3;
as('thief', "CREATE FUNCTION wrapped(key text, token bigint) RETURNS bool LANGUAGE sql SECURITY DEFINER AS 'SELECT interlock.renew_lease(key, token) IS NOT NULL'");
crash();
is(attempt('thief', $_, $token{$_}), 'fff', "grace: another role has nothing of the $_ lease") for 'short', 'long', 'shared', 'permit';
is(as('thief', "SELECT outcome FROM interlock.acquire_lease('short')"), 'recovering', 'grace: nor gets it');
is(renew('thief', 'short', $token{thief}), 'f', 'grace: a token is of one key');
is(renew('thief', 'thief', $token{thief} ^ $_), 'f', "grace: of one mode, not of $_") for 1 .. 3;
is(renew('thief', 'thief', $token{thief} + $step), 'f', 'grace: and not like the next one');
is(as('app', "SELECT wrapped('short', $token{short})"), 'f', 'grace: a function with the rights of another role gets nothing of the session');
is(renew('thief', 'thief', $token{thief}), 't', 'grace: a token of its own the role reclaims');
is(renew('postgres', 'short', $token{short}), 'f', 'grace: a superuser without a grant is no member');
is(renew('outsider', 'short', $token{short}), 'f', 'grace: nor is one without the privileges of the role');
is(as('below', (renewal('member', $token{member})) x 20, renewal('short', $token{short}), renewal('below', $token{below})), join("\n", ('t') x 22),
    'SEC-2: grace: members of the role renew, and have given no wrong token');
is(as('postgres', "SELECT string_agg(key || ' ' || (token IS NOT NULL), ' ' ORDER BY key) FROM interlock.leases WHERE key IN ('below', 'member', 'short')"),
    'below true member true short true', 'grace: there again');
is(as('app', "SELECT string_agg(key || ' ' || (token IS NOT NULL), ' ' ORDER BY key) FROM interlock.leases WHERE key IN ('below', 'member', 'short')"),
    'below false member false short true', 'grace: each of its role');
is(renew('member', 'long', $token{long}), 't', 'grace: but for a long lease they are');
is(renew('app', $_, $token{$_}), 't', "grace: the role reclaims the $_ lease") for 'short', 'shared', 'permit', 'long';
is(as('app', "SELECT string_agg(mode, ' ' ORDER BY key) FROM interlock.leases WHERE key IN ('permit', 'shared', 'short')"), 'permit shared exclusive', 'grace: in its mode');
is(renew('member', 'short', $token{short}), 't', 'grace: what was reclaimed is the role\'s again');
is(attempt('thief', 'short', $token{short}), 'fff', 'grace: and outsider else\'s');
is(as('pool', 'SET ROLE tenant', (renewal('pooled', $token{pooled})) x 20), join("\n", ('t') x 20), 'grace: the role of the session counts');
is(renew('tenant', 'tenant', $token{tenant}), 't', 'grace: and is no wrong token of the current one');

# --- Guesses ---------------------------------------------------------------------------------------------------

# Tokens of the key with the counter of the app's, and with every MAC that was not tried yet
my $tried = 0;
sub guess
{
    my ($count) = @_;
    my $guesses = "($token{short} & ~(262143)) | (n << 2)";
    my $got = as('guesser', "SELECT count(interlock.renew_lease('short', $guesses)) FROM generate_series($tried, @{[ $tried + $count - 1 ]}) n");
    $tried += $count;
    return $got;
}
my $log = -s $node->logfile;
is(guess(15), 0, 'no guess is right');
is(renew('guesser', 'guesser 1', $token{'guesser 1'}), 't', 'after 15 wrong tokens a right one is accepted');
is(guess(1), 0, 'one more');
is(renew('guesser', 'guesser 2', $token{'guesser 2'}), 'f', 'after 16 none is');
ok($node->log_contains(qr/role "guesser" has given 16 wrong tokens/, $log), 'the log says so');
is(guess(70000), 0, 'so that going through all of them finds nothing');
is(renew('guesser', 'guesser 1', $token{'guesser 1'}), 't', 'what was reclaimed before stays the role\'s');
is(renew('thief', 'thief 2', $token{'thief 2'}), 't', 'other roles are not concerned');
is(renew('app', 'short', $token{short}), 't', 'nor is who had the lease that was guessed for');

crash();
is(renew('guesser', "guesser $_", $token{"guesser $_"}), 't', "after the next crash the role reclaims again: guesser $_") for 1 .. 2;
is(renew('app', 'short', $token{short}), 't', 'and who had it has the lease');

# --- A role that was dropped -----------------------------------------------------------------------------------

as('postgres', 'DROP OWNED BY app', 'DROP ROLE app');
is(attempt('member', $_, $token{$_}), 'fff', "a role was dropped: the $_ lease is outsider's") for 'short', 'dropped', 'long';
is(as('postgres', "SELECT interlock.release_lease('short', $token{short}), interlock.release_lease('long', $token{long})"), 't|t', 'but a superuser\'s');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing crashed by itself');
done_testing();
