# One side of a line against another, from the rounds of both.
def rounds: [splits(" +") | select(. != "") | tonumber];
def stats: {median: (sort | .[(length - 1) / 2 | floor]), min: min, max: max, rounds: .};
def spread: if min > 0 then (max / min - 1) * 100 | round else 0 end;

($ours | rounds) as $a | ($theirs | rounds) as $b | ($a | stats) as $x | ($b | stats) as $y
| [range([$a, $b | length] | min) | $a[.] / $b[.]] as $each
| ($x.median / $y.median) as $ratio
| ($target | if . == "-" then null else tonumber end) as $wanted
| {line: $line, clients: $clients, against: $against, unit: $unit, ours: $x, theirs: $y,
   ratio: $ratio, ratio_min: ($each | min), ratio_max: ($each | max), target: $wanted,
   bound: (if $wanted == null then null elif $unit == "/s" then "at least" else "at most" end),
   met: (if $wanted == null then null elif $unit == "/s" then $ratio >= $wanted else $ratio <= $wanted end),
   spread: ([$a, $b | spread] | max)}
