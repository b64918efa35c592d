#!/usr/bin/env perl
# choosing.pl: what docs/internals/performance.md shows of the samples in choosing.tsv (script/bench --choosing): the charts in
# docs/choosing, and the tables between the two "measured" comments of the page.
#
#   bench/choosing.pl           writes both
#   bench/choosing.pl --check   prints what is not as it would write it, or nothing
#
# Of the rounds of a sample the median counts.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use Chart;

exec 'sed', '-n', '2,/^$/s/^# \{0,1\}//p', $0 if ($ARGV[0] // '') eq '--help';

my $root = $0 =~ s{[^/]*$}{..}r;
my $data = "$root/bench/choosing.tsv";
my $page = "$root/docs/internals/performance.md";
my $charts = "$root/docs/choosing";

# In the order of the legend: name in the data, on the page, colour, mark. The locks, which one chart compares, have a mark each.
my @mechanisms = (
    [ optimistic => 'version, retry in the client', '#3b82f6', 'circle' ],
    [ merge => 'version, merge', '#0e9aa7', 'circle' ],
    [ retry => 'update_with_retry', '#a855f7', 'circle' ],
    [ row_lock => 'select_for_update', '#e5484d', 'square' ],
    [ key_lock => 'lock_key', '#e8710a', 'cross' ],
    [ lease => 'lease', '#b58900', 'funnel' ],
    [ marker => 'lock_row, save_row', '#d6409f', 'triangle' ],
    [ claim => 'claim_rows, save_row', '#7d8590', 'triangle' ],
    [ conditional => 'conditional UPDATE', '#2da44e', 'diamond' ]);
my %mechanism = map { $_->[0] => { title => $_->[1], colour => $_->[2], mark => $_->[3] } } @mechanisms;
define_series(%mechanism);
my @all = map { $_->[0] } @mechanisms;
my @locks = qw(row_lock key_lock lease);

# --- The data ------------------------------------------------------------------

my (%rounds, %cell, %seen, $about);

sub read_data {
    open my $file, '<', $data or die "$data: $!\n";
    while (<$file>) {
        chomp;
        if (/^# (.*)/) { $about = $1; next }
        my ($round, $clients, $rows, $think, $name, $seconds, $done, $tries, @latency) = split /\t/;
        next if $round eq 'round';
        $seen{clients}{$clients} = $seen{rows}{$rows} = $seen{think}{$think} = 1;
        my $of = $rounds{$clients}{$rows}{$think}{$name} //= {};
        push @{ $of->{goodput} }, $done / $seconds;
        push @{ $of->{conflicts} }, $tries ? 1 - $done / $tries : 0;
        push @{ $of->{"p$_->[0]"} }, $_->[1] / 1000 for [ 50, $latency[0] ], [ 95, $latency[1] ], [ 99, $latency[2] ];
    }
}

sub values_of { return sort { $a <=> $b } keys %{ $seen{ $_[0] } } }

# at(CLIENTS, ROWS, THINK, MECHANISM, WHAT): goodput a second, conflicts as a part of the tries, p50, p95, p99 in milliseconds.
sub at {
    my ($clients, $rows, $think, $name, $what) = @_;
    my $samples = $rounds{$clients}{$rows}{$think}{$name}{$what} or die "$data has no $name of $clients clients, $rows rows, $think ms\n";
    return median(@$samples);
}

# How much better it is than the version with a retry: more done, or less time. In one round both were measured within seconds.
sub better {
    my ($clients, $rows, $think, $name, $what) = @_;
    my @ours = @{ $rounds{$clients}{$rows}{$think}{$name}{$what} };
    my @theirs = @{ $rounds{$clients}{$rows}{$think}{optimistic}{$what} };
    my @ratios = map { $what eq 'goodput' ? $ours[$_] / ($theirs[$_] || 1) : $theirs[$_] / ($ours[$_] || 1) } 0 .. $#ours;
    return median(@ratios);
}

# The conflicts of the version with a retry, and how much better the lock is, by rows.
sub curve {
    my ($clients, $think, $lock, $what) = @_;
    return sort { $a->[0] <=> $b->[0] }
        map { [ at($clients, $_, $think, 'optimistic', 'conflicts'), better($clients, $_, $think, $lock, $what) ] } values_of('rows');
}

# Where the line between two points of a curve passes 0.
sub between {
    my ($before, $after) = @_;
    return $before->[0] + ($after->[0] - $before->[0]) * $before->[1] / ($before->[1] - $after->[1]);
}

# From how many conflicts on the lock is better by a tenth, which is more than noise, and up to how many. Of two points the
# logarithm decides where between them. Empty: never; 0 and 1: from the first point on, up to the last.
sub crossings {
    my @curve = map { [ $_->[0], log($_->[1] / 1.1) ] } curve(@_);
    my @better = grep { $curve[$_][1] >= 0 } 0 .. $#curve or return;
    my ($first, $last) = @better[ 0, -1 ];
    return ($first == 0 ? 0 : between(@curve[ $first - 1, $first ]), $last == $#curve ? 1 : between(@curve[ $last, $last + 1 ]));
}

# --- Text ------------------------------------------------------------------------

sub number {
    my $text = sprintf '%d', shift;
    1 while $text =~ s/^(\d+)(\d{3})/$1,$2/;
    return $text;
}

sub think_in_words { return $_[0] == 0 ? 'no think time' : "$_[0] ms" }
sub rows_in_words { return number($_[0]) . ($_[0] == 1 ? ' row' : ' rows') }

sub per_cent { return sprintf '%.0f %%', 100 * $_[0] }

sub crossing_in_words {
    my ($from, $to) = crossings(@_) or return 'never';
    return $to == 1 ? 'always' : 'up to ' . per_cent($to) if $from == 0;
    return 'from ' . per_cent($from) if $to == 1;
    return per_cent($from) eq per_cent($to) ? 'at ' . per_cent($to) : sprintf('%.0f to ', 100 * $from) . per_cent($to);
}

sub row { return '| ' . join(' | ', @_) . " |\n" }
sub ruler { return '|' . '---|' x shift . "\n" }

sub ratio { return sprintf $_[0] < 9.95 ? '%.1f' : '%.0f', $_[0] }

sub crossings_table {
    my $text = row('clients', 'think time', map { my $what = $_; map { "$mechanism{$_}{title}, $what" } @locks } 'done', 'p95') . ruler(2 + 2 * @locks);
    for my $clients (grep { $_ > 1 } values_of('clients')) {
        for my $think (values_of('think')) {
            $text .= row($clients, think_in_words($think), map { my $what = $_; map { crossing_in_words($clients, $think, $_, $what) } @locks } 'goodput', 'p95');
        }
    }
    return $text;
}

# What the rule of thumb has not: locks that are better by a tenth below its limit, and key locks that are worse above it.
my $limit = 0.3;

sub samples_in_words {
    my ($what, $is_one, @of) = @_;
    my @found;
    for my $lock (@of) {
        for my $clients (grep { $_ > 1 } values_of('clients')) {
            for my $think (values_of('think')) {
                push @found, map { sprintf '`%s`, %d clients and %s, at %s: %.2f', $mechanism{$lock}{title}, $clients, think_in_words($think), per_cent($_->[0]), $_->[1] }
                    grep { $is_one->(@$_) } curve($clients, $think, $lock, $what);
            }
        }
    }
    return @found == 0 ? " none.\n" : @found == 1 ? " $found[0].\n" : "\n" . join '', map { "  - $_.\n" } @found;
}

sub exceptions {
    my $early = sub { return $_[0] < $limit && $_[1] >= 1.1 };
    my $late = sub { return $_[0] >= $limit && $_[1] <= 1 / 1.1 };
    my $from = per_cent($limit);
    return "Marks of the chart below $from at which a lock is better by a tenth, in times of a retry. Other figures\n"
        . "of the table below $from are between two marks.\n\n"
        . '- Done:' . samples_in_words('goodput', $early, @locks)
        . '- p95:' . samples_in_words('p95', $early, @locks)
        . "\nMarks from $from on at which `lock_key` is worse by a tenth:\n\n"
        . '- Done:' . samples_in_words('goodput', $late, 'key_lock')
        . '- p95:' . samples_in_words('p95', $late, 'key_lock');
}

# What one row takes.
sub hot_row {
    return 'Conditional updates of one row: ' . join(' and ', map { number(at($_, 1, 0, 'conditional', 'goodput')) . " a second from $_ clients" } grep { $_ > 1 } values_of('clients'))
        . ".\nNothing waited for a disk.\n";
}

sub goodput_table {
    my ($one, $all) = (values_of('clients'))[ 0, -1 ];
    my @cells = ([ $one, 10000, 0 ], map { my $think = $_; map { [ $all, $_, $think ] } 10000, 100, 1 } 0, 50);
    my $text = row('clients', map { $_->[0] } @cells) . ruler(1 + @cells);
    $text .= row('rows that they share', map { number($_->[1]) } @cells) . row('think time', map { think_in_words($_->[2]) } @cells);
    $text .= row('done a second by version, retry in the client', map { number(at(@$_, 'optimistic', 'goodput')) } @cells);
    $text .= row('of its tries in conflict', map { per_cent(at(@$_, 'optimistic', 'conflicts')) } @cells);
    for my $name (grep { $_ ne 'optimistic' } @all) {
        my $title = $mechanism{$name}{title};
        $text .= row($title, map { ratio(better(@$_, $name, 'goodput')) } @cells);
    }
    return $text;
}

sub tables {
    return "Conflicts of the retry at which a lock before the read is better by a tenth: in operations done, and in the latency of\n"
        . "95 % of them.\n\n"
        . crossings_table()
        . "\n" . exceptions()
        . "\nDone a second, in multiples of a version with a retry in the client.\n\n"
        . goodput_table()
        . "\n" . hot_row();
}

# --- Charts ------------------------------------------------------------------------

# Goodput against rows, a panel for each think time.
sub goodput_chart {
    my $clients = (values_of('clients'))[-1];
    my @rows = values_of('rows');
    my ($i, $text) = (0, y_title(210, 'done a second'));
    for my $think (values_of('think')) {
        my ($panel, $x, $y) = panel(left => 62 + 275 * $i, top => 70, width => 252, height => 280, x => [ $rows[0] * 0.8, $rows[-1] * 1.25 ], y => [ 5, 20000 ],
            title => $think ? "think time $think ms" : 'no think time', x_title => 'rows that they share', y_named => $i == 0);
        $text .= $panel;
        for my $name (reverse @all) {
            my @points = map { [ $x->($_), $y->(at($clients, $_, $think, $name, 'goodput') || 5) ] } @rows;
            $text .= path($name, @points) . join '', map { mark_at($name, @$_) } @points;
        }
        $i++;
    }
    return picture(480, "$clients clients: operations done a second, by how many rows they share", $text . legend(62, 415, 4, 205, @all));
}

# How much better a lock is than a retry, against the conflicts of the retry: a column for each think time, above what is done
# and below the 95th percentile.
sub crossing_chart {
    my ($few, $many) = (values_of('clients'))[ -2, -1 ];
    my ($row, $text) = (0, '');
    for my $of ([ goodput => 'operations done' ], [ p95 => 'latency of 95 %' ]) {
        my ($top, $column) = (70 + 265 * $row++, 0);
        $text .= y_title($top + 95, 'times as good as a retry');
        for my $think (values_of('think')) {
            my $left = 62 + 275 * $column++;
            my ($panel, $x, $y) = panel(left => $left, top => $top, width => 252, height => 190, x => [ 0.0005, 1.2 ], y => [ 0.18, 4.5 ],
                title => "$of->[1], " . ($think ? "think time $think ms" : 'no think time'), x_ticks => [ 0.001, 0.01, 0.05, 0.3, 1 ], x_name => sub { 100 * $_[0] . ' %' },
                y_ticks => [ 0.2, 0.5, 1, 2, 4 ], y_named => $left == 62, x_title => 'tries of a retry in conflict');
            $text .= $panel . line_at('even', $left, $y->(1), $left + 252, $y->(1));
            for my $clients ($few, $many) {
                for my $lock (reverse @locks) {
                    my @points = map { [ $x->(clamp($_->[0], 0.0005, 1.2)), $y->(clamp($_->[1], 0.18, 4.5)) ] } curve($clients, $think, $lock, $of->[0]);
                    $text .= join '', map { mark_at($lock, @$_, $clients == $few) } @points;
                }
            }
        }
    }
    return picture(640, 'Lock first, or retry: above the dashed line a lock before the read is better',
        $text . legend(62, 603, 3, 165, @locks) . text_at(560, 607.5, "filled: $many clients; hollow: $few clients", class => 'faint'));
}

# The latency of half, 95 % and 99 % of the operations of each mechanism, a panel for each number of rows.
sub latency_chart {
    my ($clients, $think) = ((values_of('clients'))[-1], 5);
    my ($i, $text) = (0, '');
    for my $rows (1, 100, 10000) {
        my ($panel, $x) = panel(left => 200 + 226 * $i, top => 70, width => 206, height => 262, x => [ 4, 1000 ], y => [ 1, 2 ], y_ticks => [],
            title => rows_in_words($rows), x_title => 'milliseconds');
        $text .= $panel;
        for my $place (0 .. $#all) {
            my ($name, $y) = ($all[$place], 88 + 28 * $place);
            my @latency = map { clamp(at($clients, $rows, $think, $name, $_), 4, 1000) } qw(p50 p95 p99);
            my $colour = $mechanism{$name}{colour};
            $text .= path($name, map { [ $x->($_), $y ] } @latency[ 0, 2 ]) . mark_at($name, $x->($latency[0]), $y);
            $text .= sprintf qq(<line stroke="%s" stroke-width="2" x1="%s" y1="%s" x2="%s" y2="%s"/>\n), $colour, place($x->($_->[0])), place($y - $_->[1]), place($x->($_->[0])), place($y + $_->[1])
                for [ $latency[1], 4 ], [ $latency[2], 7 ];
            $text .= text_at(190, $y + 4.5, $mechanism{$name}{title}, 'text-anchor' => 'end') if $i == 0;
        }
        $i++;
    }
    return picture(400, "$clients clients, think time $think ms: how long an operation takes until it is done",
        $text . text_at(200, 390, 'mark: half of them; short bar: 95 %; long bar: 99 %', class => 'faint'));
}

# --- All of it -----------------------------------------------------------------------

# The page with our tables.
sub page_with {
    my ($tables) = @_;
    my $text = slurp($page);
    my ($from, $to) = ("<!--measured: bench/choosing.pl writes this-->\n", "<!--/measured-->\n");
    $text =~ s/\Q$from\E.*?\Q$to\E/$from$tables\n$about.\n$to/s or die "$page has no place for the tables: $from";
    return $text;
}

sub files {
    return (
        "$charts/goodput.svg" => goodput_chart(),
        "$charts/crossing.svg" => crossing_chart(),
        "$charts/latency.svg" => latency_chart(),
        $page => page_with(tables()));
}

read_data();
write_or_check($root, files());
