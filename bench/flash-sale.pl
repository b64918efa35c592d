#!/usr/bin/env perl
# flash-sale.pl: the chart of docs/guide/hot-rows.md and the tables of docs/internals/performance.md, of the sales in
# examples/flash-sale/results.tsv (examples/flash-sale/run.sh --keep).
#
#   bench/flash-sale.pl           writes both
#   bench/flash-sale.pl --check   prints what is not as it would write it, or nothing
#
# Of the rounds the median counts.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Chart;

exec 'sed', '-n', '2,/^$/s/^# \{0,1\}//p', $0 if ($ARGV[0] // '') eq '--help';

my $root = $0 =~ s{[^/]*$}{..}r;
my $data = "$root/examples/flash-sale/results.tsv";
my $page = "$root/docs/internals/performance.md";

# In the order of the chart: name in the data, on the page, colour, mark.
my @ways = (
    [ adjust => 'adjust', '#2da44e', 'circle' ],
    [ conditional_update => 'conditional UPDATE', '#e5484d', 'square' ],
    [ claim_rows => 'claim_rows, workers', '#b58900', 'triangle' ],
    [ graphile_worker => 'graphile-worker', '#3b82f6', 'diamond' ]);
define_series(map { $_->[0] => { title => $_->[1], colour => $_->[2], mark => $_->[3] } } @ways);

my (%samples, %payments, $sale, $about, @columns);
open my $file, '<', $data or die "$data: $!\n";
while (<$file>) {
    chomp;
    if (/^# (.*)/) { $about = $1; next }
    if (!@columns) { @columns = split /\t/; next }
    my %of;
    @of{@columns} = split /\t/;
    $payments{ $of{payment} } = 1;
    $sale = number($of{buyers}) . " buyers, $of{items} pieces, $of{connections} connections";
    push @{ $samples{ $of{payment} }{ $of{way} }{$_} }, $of{$_} for qw(p50 p95 p99 sold_out last sold looks);
}
my @payments = sort { $a <=> $b } keys %payments;

sub at {
    my ($payment, $way, $what) = @_;
    my $of = $samples{$payment}{$way}{$what} or die "$data has no $way of $payment ms\n";
    return median(@$of);
}

sub payment_in_words { return $_[0] ? "a payment of $_[0] ms" : 'no payment to wait for' }

# Milliseconds of the axis.
my @range = (100, 600_000);

sub chart {
    my ($i, $text) = (0, '');
    for my $payment (@payments) {
        my ($panel, $x) = panel(left => 170 + 350 * $i, top => 70, width => 325, height => 132, x => \@range, y => [ 1, 2 ], y_ticks => [],
            x_name => sub { return $_[0] < 1000 ? "$_[0] ms" : $_[0] / 1000 . ' s' }, title => ucfirst payment_in_words($payment), x_title => 'from the click to the answer');
        $text .= $panel;
        for my $place (0 .. $#ways) {
            my ($way, $title, $colour) = @{ $ways[$place] };
            my $y = 90 + 32 * $place;
            my %when = map { $_ => $x->(clamp(at($payment, $way, $_), @range)) } qw(p50 p95 p99 sold_out last);
            $text .= path($way, map { [ $when{$_}, $y ] } qw(p50 last)) . mark_at($way, $when{p50}, $y);
            $text .= sprintf qq(<line stroke="%s" stroke-width="2" x1="%s" y1="%s" x2="%s" y2="%s"/>\n), $colour, place($_->[0]), place($y - $_->[1]), place($_->[0]), place($y + $_->[1])
                for [ $when{p95}, 4 ], [ $when{last}, 7 ];
            $text .= mark_at($way, $when{sold_out}, $y, 'hollow');
            $text .= text_at(160, $y + 4.5, $title, 'text-anchor' => 'end') if $i == 0;
        }
        $i++;
    }
    return picture(275, $sale,
        $text . text_at(170, 263, 'hollow: the last piece is sold; filled: half of the buyers have an answer; short bar: 95 %; long bar: all', class => 'faint'));
}

sub number { my $text = shift; 1 while $text =~ s/^(\d+)(\d{3})/$1,$2/; return $text }

sub row { return '| ' . join(' | ', @_) . " |\n" }

sub seconds { return sprintf $_[0] < 9_950 ? '%.2f s' : '%.1f s', $_[0] / 1000 }

sub tables {
    my $text = "$sale.\n\n";
    for my $payment (@payments) {
        $text .= ucfirst(payment_in_words($payment)) . ":\n\n";
        $text .= row('', 'last piece sold', 'half of the buyers have an answer', '95 %', '99 %', 'all') . row('---', ('---:') x 5);
        $text .= row($_->[1], map { seconds($_) } do { my $way = $_->[0]; map { at($payment, $way, $_) } qw(sold_out p50 p95 p99 last) }) for @ways;
        $text .= "\n";
    }
    return $text;
}

sub page_with {
    my ($tables) = @_;
    my $text = slurp($page);
    my ($from, $to) = ("<!--measured: bench/flash-sale.pl writes this-->\n", "<!--/measured-->\n");
    $text =~ s/\Q$from\E.*?\Q$to\E/$from$tables$about.\n$to/s or die "$page has no place for the tables: $from";
    return $text;
}

write_or_check($root, "$root/docs/guide/flash-sale.svg" => chart(), $page => page_with(tables()));
