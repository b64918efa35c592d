# The ratios of script/bench against their targets. Variables: data, picture, about.
# Columns: 1 band, 2 shift, 3 ratio, 4 least, 5 most, 6 target, 7 met (2: no target), 8 clients, 9 line, 10 against, 11 figures.
set datafile separator "\t"
stats data using 1 nooutput
bands = STATS_max + 1
stats data using 5 nooutput
most = STATS_max
stats data using 4 nooutput
least = STATS_min
height = 150 + 44 * bands
set terminal pngcairo size 1300, height font "DejaVu Sans,11" background "#ffffff"
set output picture

set title "pg\\_interlock against what people use instead: how many times as fast\n{/*0.8 ".about."; medians, and lines from the least to the most of the rounds}" font ",14"
set logscale x
set xrange [(least < 0.4 ? least * 0.9 : 0.4):(most > 4 ? most * 1.1 : 4)]
set yrange [bands - 0.4:-0.6]
set xtics ("0.1" 0.1, "0.2" 0.2, "0.3" 0.3, "0.5" 0.5, "0.7" 0.7, "1" 1, "1.5" 1.5, "2" 2, "3" 3, "5" 5, "10" 10, "20" 20, "50" 50, "100" 100)
set xtics textcolor "#333333"
set ytics textcolor "#111111"
set y2range [bands - 0.4:-0.6]
set y2tics textcolor "#333333"
set grid xtics linetype 1 linecolor "#e6e6e6"
set border 1 linecolor "#888888"
set tics nomirror scale 0
set lmargin at screen 0.35
set rmargin at screen 0.86
set tmargin at screen 1 - 75.0 / height
set bmargin at screen 80.0 / height
set key at screen 0.6, screen 22.0 / height center horizontal maxrows 1 samplen 1 width -1
set arrow 1 from 1, graph 0 to 1, graph 1 nohead linecolor "#666666" linewidth 1.5
set errorbars small

colour(met) = met == 2 ? 0x5b6b80 : (met == 1 ? 0x1a8f3c : 0xcc2f2f)

plot data using (1):1:(0):yticlabels(strcol(9)."\n{/*0.85 against ".strcol(10)."}") with points pointtype 0 notitle, \
    data using 6:($1 - 0.36):(0):(0.72) with vectors nohead linewidth 5 linecolor "#f0b429" notitle, \
    data using ($8 <= 1 ? $3 : NaN):($1 + $2):4:5:(colour($7)) with xerrorbars linewidth 1.6 pointtype 7 pointsize 1.3 linecolor rgb variable notitle, \
    data using ($8 > 1 ? $3 : NaN):($1 + $2):4:5:(colour($7)) with xerrorbars linewidth 1.6 pointtype 5 pointsize 1.3 linecolor rgb variable notitle, \
    data using (1):1:(0):y2ticlabels(11) axes x1y2 with points pointtype 0 notitle, \
    NaN with points pointtype 7 pointsize 1.3 linecolor "#333333" title "1 client", \
    NaN with points pointtype 5 pointsize 1.3 linecolor "#333333" title "8 clients", \
    NaN with lines linewidth 5 linecolor "#f0b429" title "target", \
    NaN with points pointtype 13 pointsize 1.6 linecolor "#1a8f3c" title "met", \
    NaN with points pointtype 13 pointsize 1.6 linecolor "#cc2f2f" title "missed", \
    NaN with points pointtype 13 pointsize 1.6 linecolor "#5b6b80" title "no target"
