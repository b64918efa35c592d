# REL-4: script/api finds what is gone of an API that was frozen, and no addition.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

# Sources with the reference alone; what it says today is frozen as version 1.0.
my $sources = PostgreSQL::Test::Utils::tempdir();
my %page = map { $_ => slurp_file("docs/reference/$_.md") } qw(functions views settings errors);
my $control = "default_version = '1.2.3'\n";
mkdir "$sources/$_" for qw(docs docs/reference test test/api);
local $ENV{API_OF} = $sources;

sub write_file { my ($file, $text) = @_; open my $out, '>', "$sources/$file" or die "$file: $!\n"; print $out $text; close $out or die; return; }
sub write_pages { my (%pages) = @_; write_file("docs/reference/$_.md", $pages{$_}) for keys %pages; return; }

# The exit code of a check, and what it prints
sub checked
{
    my $printed = '';
    IPC::Run::run([ 'script/api', '--check' ], '>', \$printed, '2>&1');
    return ($? >> 8, $printed);
}

write_pages(%page);
write_file('pg_interlock.control', $control);
is((checked())[0], 0, 'REL-4: without a frozen version there is nothing to compare');
command_ok([ 'script/api', '--freeze', "$sources/test/api/1.0.txt" ], 'it is frozen');
is_deeply([ checked() ], [ 0, '' ], 'REL-4: an API is that which was frozen');

# Each is a change of a page: what to replace, and by what.
my %additions = (
    'a function' => [ functions => qr/^(?=### adjust\n)/m, "### a_new_function\n\n```\na_new_function(n integer) -> void\n```\n\n" ],
    'an argument with a default' => [ functions => qr/^adjust\([^)]*\K(?=\))/m, ', a_new_argument text = null' ],
    'a result column' => [ functions => qr/^version\(\) -> \(library text, sql text\K/m, ', a_new_column text' ],
    'a type of an argument' => [ functions => qr/^any_version\(version anyelement \| text\K/m, ' | jsonb' ],
    'a column of a view' => [ views => qr/^## held\n[^|]*(?:^\|[^\n]*\n)+\K/ms, "| `a_new_column` | text | new |\n" ],
    'a setting' => [ settings => qr/^(?=\| `interlock\.sweeper` )/m, "| `interlock.a_new_setting` | `on` | | user |\n" ],
    'a value of a setting' => [ settings => qr/^\| `interlock\.lock_order` .*`error`\K/m, ', `new`' ],
    'an SQLSTATE' => [ errors => qr/^(?=\| IL001 \| a version conflict)/m, "| IL099 | new |\n" ],
    'a member of DETAIL' => [ errors => qr/^\| IL001 \| `table`\K/m, ', `a_new_member`' ],
    'an outcome' => [ errors => qr/^(?=\| `inserted` )/m, "| `a_new_outcome` | | |\n" ]);
my %breaks = (
    'a function that is gone' => [ functions => qr/^### adjust\n.*?^(?=### )/ms, '', 'function adjust(' ],
    'an argument that was renamed' => [ functions => qr/^versioned_update\(rel regclass, \Kkey/m, 'row_key', 'function versioned_update(' ],
    'an argument without a default' => [ functions => qr/^adjust\([^)]*\K(?=\))/m, ', a_new_argument text', 'function adjust(' ],
    'another default' => [ functions => qr/^acquire_lease\(key text, ttl interlock\.seconds = '\K30/m, '60', 'function acquire_lease(' ],
    'another type of an argument' => [ functions => qr/^advise\(rel \Kregclass/m, 'text', 'function advise(' ],
    'a type of an argument that is gone' => [ functions => qr/^any_version\(version \Kanyelement \| text/m, 'text', 'function any_version(' ],
    'a result column that was renamed' => [ functions => qr/^version\(\) -> \(\Klibrary/m, 'loaded', 'function version(' ],
    'result columns in another order' => [ functions => qr/^version\(\) -> \(\Klibrary text, sql text/m, 'sql text, library text', 'function version(' ],
    'a single row' => [ functions => qr/^advise\(.*-> \Ksetof /m, '', 'function advise(' ],
    'a column of a view that was renamed' => [ views => qr/^## held\n.*?^\| `\Kholder`/ms, 'owner`', 'view held (' ],
    'another type of a column of a view' => [ views => qr/^## held\n.*?^\| `holder` \| `?\Ktext/ms, 'name', 'view held (' ],
    'a view that is gone' => [ views => qr/^## held\n/m, "## holds\n", 'view held (' ],
    'another default of a setting' => [ settings => qr/^\| `interlock\.max_leases` \| `\K65536/m, '32768', 'setting interlock.max_leases' ],
    'a value of a setting that is gone' => [ settings => qr/^\| `interlock\.lock_order` .*\K, `error`/m, '', 'setting interlock.lock_order' ],
    'an SQLSTATE that is gone' => [ errors => qr/^\| \KIL008(?= \| the claim of)/m, 'IL098', 'error IL008' ],
    'a member of DETAIL that is gone' => [ errors => qr/^\| IL001 \| `table`, `key`\K, `expected`/m, '', 'detail IL001 expected' ],
    'an outcome that was renamed' => [ errors => qr/^\| `\Kinserted`/m, 'created`', 'outcome inserted' ],
    'a kind of access' => [ functions => qr/^\| `\Koperator`/m, 'operators`', 'access operator' ]);

# The pages with that change
sub changed
{
    my ($name, $where, $by) = @_;
    my $text = $page{$name};
    return $text =~ s/$where/$by/ ? (%page, $name => $text) : ();
}

for my $what (sort keys %additions)
{
    my %changed = changed(@{ $additions{$what} });
    ok(%changed, "there is a place for $what") or next;
    write_pages(%changed);
    isnt(scalar qx(script/api), slurp_file("$sources/test/api/1.0.txt"), "$what is part of the API");
    is_deeply([ checked() ], [ 0, '' ], "REL-4: $what is free");
}
for my $what (sort keys %breaks)
{
    my ($name, $where, $by, $line) = @{ $breaks{$what} };
    my %changed = changed($name, $where, $by);
    ok(%changed, "there is a place for $what") or next;
    write_pages(%changed);
    my ($code, $printed) = checked();
    is($code, 1, "REL-4: $what is not");
    like($printed, qr/\A.*\n1\.0\.txt: \Q$line\E.*\n\z/, "REL-4: $what: the line is named, and no other");
}

write_pages(%page, errors => $page{errors} =~ s/^\| IL008 \| the claim of.*\n//mr);
write_file('pg_interlock.control', "default_version = '2.0.0'\n");
is((checked())[0], 0, 'REL-4: another major version promises anew');

done_testing();
