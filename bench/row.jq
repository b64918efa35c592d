# One side of a line against another, from the rounds of both. Against another commit a ratio above 1 is faster, of times too.
def rounds: [splits(" +") | select(. != "") | tonumber];
def median: sort | .[(length - 1) / 2 | floor];
def stats: {median: median, min: min, max: max, rounds: .};

($ours | rounds) as $a | ($theirs | rounds) as $b | ($a | stats) as $x | ($b | stats) as $y
| [range([$a, $b | length] | min) | if $unit != "/s" and $commit != "" then $b[.] / $a[.] else $a[.] / $b[.] end] as $each
| ($each | median) as $ratio
| ($target | if . == "-" then null else tonumber end) as $wanted
| {line: $line, clients: $clients, against: $against, unit: $unit, ours: $x, theirs: $y,
   ratio: $ratio, ratio_min: ($each | min), ratio_max: ($each | max),
   spread: (($each | max) / ($each | min) * 100 - 100 | round), target: $wanted,
   bound: (if $wanted == null then null elif $unit == "/s" then "at least" else "at most" end),
   met: (if $wanted == null then null elif $unit == "/s" then $ratio >= $wanted else $ratio <= $wanted end)}
