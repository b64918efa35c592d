# Types of extensions in rows that become json and come back: test/helpers/row_types.sql.
package RowTypes;

use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A server whose database postgres has these extensions, the helper, and what the statements make.
sub server
{
    my ($extensions, @statements) = @_;
    my $node = PostgreSQL::Test::Cluster->new('main');
    $node->init;
    $node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_interlock'\ninterlock.sweeper = off");
    $node->start;
    $node->safe_psql('postgres', join(";\n", (map { "CREATE EXTENSION $_" } 'pg_interlock', @$extensions), @statements));
    $node->safe_psql('postgres', slurp_file("$FindBin::RealBin/../../helpers/row_types.sql"));
    return $node;
}

# Each is a type, a value, and another one: the value has to come back.
sub come_back
{
    my ($node, @types) = @_;
    for (@types)
    {
        my ($type, $value, $other) = @$_;
        is($node->safe_psql('postgres', qq(SELECT fate(\$a\$$type\$a\$, \$a\$$value\$a\$, \$a\$$other\$a\$))), '{}', "HIS-50: $type " . substr($value, 0, 50));
    }
    return;
}

1;
