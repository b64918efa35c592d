# Charts as SVG, which show data that is kept beside a program, and nothing else: what such programs share.
#
# A series is what has a colour and a mark: define_series(NAME => { title, colour, mark }, ...) comes before the rest.

package Chart;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(define_series median clamp text_at line_at mark_at path legend picture panel scale place short y_title slurp write_or_check);

my %series;
sub define_series { %series = @_; return; }

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return $sorted[ $#sorted / 2 ];
}

sub clamp { my ($value, $least, $most) = @_; return $value < $least ? $least : $value > $most ? $most : $value }

# The picture has a background of its own, as the theme of the page may be another than that of the reader's system.
my $style = <<'CSS';
svg { font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px }
.paper { fill: #ffffff } text { fill: #1f2328 } .faint { fill: #59636e }
.grid { stroke: #d1d9e0; stroke-width: 1 } .axis { stroke: #818b98; stroke-width: 1 } .even { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 5 4 }
.line { fill: none; stroke-width: 2 } .title { font-weight: 600 } .head { font-size: 15px; font-weight: 600 }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } text { fill: #f0f6fc } .faint { fill: #9198a1 }
.grid { stroke: #2a313c } .axis { stroke: #656c76 } .even { stroke: #f0f6fc }
}
CSS

sub escape { return $_[0] =~ s/&/&amp;/gr =~ s/</&lt;/gr =~ s/>/&gt;/gr }
sub place { return sprintf '%.1f', shift }

sub text_at {
    my ($x, $y, $text, %with) = @_;
    my $more = join '', map { qq( $_="$with{$_}") } sort keys %with;
    return sprintf qq(<text x="%s" y="%s"%s>%s</text>\n), place($x), place($y), $more, escape($text);
}

sub line_at { return sprintf qq(<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>\n), shift, map { place($_) } @_ }

my @cross = map { [ $_->[0] * 5.5, $_->[1] * 5.5 ] } [ -1, -1 / 3 ], [ -1 / 3, -1 / 3 ], [ -1 / 3, -1 ], [ 1 / 3, -1 ], [ 1 / 3, -1 / 3 ], [ 1, -1 / 3 ],
    [ 1, 1 / 3 ], [ 1 / 3, 1 / 3 ], [ 1 / 3, 1 ], [ -1 / 3, 1 ], [ -1 / 3, 1 / 3 ], [ -1, 1 / 3 ];

# A hollow mark shows the paper.
sub mark_at {
    my ($name, $x, $y, $hollow) = @_;
    my ($colour, $mark) = @{ $series{$name} }{qw(colour mark)};
    my $shape = {
        circle => sub { sprintf '<circle cx="%s" cy="%s" r="4"', place($x), place($y) },
        square => sub { sprintf '<rect x="%s" y="%s" width="8" height="8"', place($x - 4), place($y - 4) },
        triangle => sub { polygon([ $x, $y - 5 ], [ $x - 4.7, $y + 3.5 ], [ $x + 4.7, $y + 3.5 ]) },
        funnel => sub { polygon([ $x, $y + 5 ], [ $x - 4.7, $y - 3.5 ], [ $x + 4.7, $y - 3.5 ]) },
        cross => sub { polygon(map { [ $x + $_->[0], $y + $_->[1] ] } @cross) },
        diamond => sub { polygon([ $x, $y - 5.5 ], [ $x + 5.5, $y ], [ $x, $y + 5.5 ], [ $x - 5.5, $y ]) } }->{$mark};
    return $shape->() . ($hollow ? qq( class="paper" stroke="$colour" stroke-width="1.5"/>\n) : qq( fill="$colour"/>\n));
}

sub polygon { return '<polygon points="' . join(' ', map { place($_->[0]) . ',' . place($_->[1]) } @_) . '"' }

sub path {
    my ($name, @points) = @_;
    return sprintf qq(<polyline class="line" stroke="%s" points="%s"/>\n), $series{$name}{colour},
        join ' ', map { place($_->[0]) . ',' . place($_->[1]) } @points;
}

# A logarithmic scale from one place to another.
sub scale {
    my ($least, $most, $from, $to) = @_;
    return sub { $from + ($to - $from) * log($_[0] / $least) / log($most / $least) };
}

sub legend {
    my ($x, $y, $columns, $width, @names) = @_;
    my ($text, $i) = ('', 0);
    for my $name (@names) {
        my ($left, $top) = ($x + $width * ($i % $columns), $y + 22 * int($i / $columns));
        $text .= path($name, [ $left, $top ], [ $left + 24, $top ]) . mark_at($name, $left + 12, $top) . text_at($left + 31, $top + 4.5, $series{$name}{title});
        $i++;
    }
    return $text;
}

sub picture {
    my ($height, $title, $body) = @_;
    return qq(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 $height" width="880" height="$height" role="img">\n)
        . '<title>' . escape($title) . "</title>\n<style>\n$style</style>\n"
        . qq(<rect class="paper" width="880" height="$height"/>\n)
        . text_at(20, 26, $title, class => 'head')
        . $body . "</svg>\n";
}

sub powers { my ($least, $most) = @_; return grep { $_ >= $least && $_ <= $most } map { 10**$_ } -3 .. 6 }

sub short { my $value = shift; return $value >= 1000 ? $value / 1000 . 'k' : "$value" }

# A panel with logarithmic axes. Its ticks are the powers of ten, or those given.
sub panel {
    my (%of) = @_;
    my ($x, $y) = (scale(@{ $of{x} }, $of{left}, $of{left} + $of{width}), scale(@{ $of{y} }, $of{top} + $of{height}, $of{top}));
    my ($right, $bottom) = ($of{left} + $of{width}, $of{top} + $of{height});
    my $text = text_at($of{left}, $of{top} - 10, $of{title}, class => 'title');
    for my $tick (@{ $of{y_ticks} // [ powers(@{ $of{y} }) ] }) {
        $text .= line_at('grid', $of{left}, $y->($tick), $right, $y->($tick));
        $text .= text_at($of{left} - 6, $y->($tick) + 4.5, ($of{y_name} // \&short)->($tick), 'text-anchor' => 'end', class => 'faint') if $of{y_named};
    }
    for my $tick (@{ $of{x_ticks} // [ powers(@{ $of{x} }) ] }) {
        $text .= line_at('grid', $x->($tick), $of{top}, $x->($tick), $bottom);
        $text .= text_at($x->($tick), $bottom + 18, ($of{x_name} // \&short)->($tick), 'text-anchor' => 'middle', class => 'faint');
    }
    $text .= line_at('axis', $of{left}, $bottom, $right, $bottom) . line_at('axis', $of{left}, $of{top}, $of{left}, $bottom);
    $text .= text_at($of{left} + $of{width} / 2, $bottom + 38, $of{x_title}, 'text-anchor' => 'middle');
    return ($text, $x, $y);
}

sub y_title { my ($y, $title) = @_; return text_at(18, $y, $title, 'text-anchor' => 'middle', transform => "rotate(-90 18 $y)") }

# --- Files ---------------------------------------------------------------------------

sub slurp {
    my ($name) = @_;
    open my $file, '<', $name or return '';
    local $/ = undef;
    return scalar <$file>;
}

# write_or_check(ROOT, NAME => TEXT, ...): writes the files that differ; with --check it says which ones do.
sub write_or_check {
    my ($root, %files) = @_;
    my $program = $0 =~ s{.*/}{bench/}r;
    for my $name (sort keys %files) {
        next if slurp($name) eq $files{$name};
        if (@ARGV && $ARGV[0] eq '--check') {
            print $name =~ s{^\Q$root\E/}{}r, " is not what $program makes of its data\n";
            next;
        }
        open my $file, '>', $name or die "$name: $!\n";
        print $file $files{$name};
        close $file or die "$name: $!\n";
    }
    return;
}

1;
