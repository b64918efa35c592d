# ESC-55: ten thousand carts as in cart.pl, over several crashes of the server.
# only with --long

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster; # before it runs anything: it sets itself up
use PostgreSQL::Test::Utils;

local $ENV{CARTS} = 10_000;
do "$FindBin::RealBin/cart.pl" or die $@ || $!;
