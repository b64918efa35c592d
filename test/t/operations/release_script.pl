# REL-5: script/release and script/upgrade-script in a copy of the sources: a version that was begun and not released gets another
# number, and the script that upgrades to it leads to that number.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;

my $copy = PostgreSQL::Test::Utils::tempdir();
system_or_bail("tar -c --exclude=./.git --exclude=./.pch --exclude='*.o' --exclude='*.d' --exclude='*.so' . | tar -x -C $copy");
chdir $copy or BAIL_OUT($!);

sub release { my @arguments = @_; return command_ok([ 'script/release', @arguments ], "script/release @arguments"); }
sub upgrades { return join(' ', sort map { m{^sql/pg_interlock--(.*--.*)\.sql$} ? $1 : () } glob('sql/*.sql')); }

release('--begin', '70.0.0');
release('2030-01-01');
release('--begin', '70.1.0');
like(upgrades(), qr/(^| )70\.0\.0--70\.1\.0$/, 'REL-5: an upgrade is begun');
my $begun = slurp_file('sql/pg_interlock--70.0.0--70.1.0.sql');
release('--begin', '70.2.0');
like(upgrades(), qr/(^| )70\.0\.0--70\.2\.0$/, 'REL-5: it leads to the number that the version gets');
is(slurp_file('sql/pg_interlock--70.0.0--70.2.0.sql'), $begun =~ s/'70\.1\.0'/'70.2.0'/gr, 'REL-5: and asks for the library of that version');
like(slurp_file('pg_interlock.control'), qr/^default_version = '70\.2\.0'$/m, 'REL-5: which is the version of the extension');
chdir '/';

done_testing();
