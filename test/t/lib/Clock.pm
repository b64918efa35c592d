# The clock of a server, which the test sets while the server runs: ../helpers/clock.c.
#
#   my $clock = Clock->new;
#   { local @ENV{$clock->names} = $clock->values; $node->start; }
#   $clock->set(-3600);      # seconds away from the right time
#   $clock->reboot;          # for the next start: another boot, and another time since the boot

package Clock;

use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Utils;

sub new
{
    my $directory = PostgreSQL::Test::Utils::tempdir();
    my $clock = bless { offsets => "$directory/offsets", boot_id => "$directory/boot_id", library => "$directory/clock.so", boots => 0 };
    append_to_file($clock->{offsets}, "\0" x 16);
    $clock->reboot;
    system('cc', '-shared', '-fPIC', '-o', $clock->{library}, "$FindBin::RealBin/../../helpers/clock.c", '-ldl') == 0 or die;
    return $clock;
}

sub names { return qw(LD_PRELOAD CLOCK_OFFSETS CLOCK_BOOT_ID); }
sub values { return @{ $_[0] }{qw(library offsets boot_id)}; }

# The file is mapped: it is written in place.
sub write_offset
{
    my ($clock, $which, $seconds) = @_;
    open(my $file, '+<:raw', $clock->{offsets}) or die;
    sysseek($file, 8 * $which, 0) or die;
    syswrite($file, pack('q', $seconds)) == 8 or die;
    close($file);
}

sub set { my ($clock, $seconds) = @_; return $clock->write_offset(0, $seconds); }

sub reboot
{
    my ($clock) = @_;
    $clock->{boots}++;
    unlink($clock->{boot_id});
    append_to_file($clock->{boot_id}, sprintf("%08d-0000-0000-0000-000000000000\n", $clock->{boots}));
    $clock->write_offset(1, $clock->{boots} % 2 * 1_000_000);
}

1;
