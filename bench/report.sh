# report.sh: rows as they come, the file of results and the picture. To be sourced by script/bench.
#
#   start_report               notes what machine this is
#   warn_of_load               says so if somebody else is working
#   print_side NAME LOAD UNIT  our own side of a line
#   add_row NAME CLIENTS AGAINST LOAD LOAD TARGET UNIT      our load against another, from SAMPLES
#   not_measured NAME AGAINST WHY
#   finish_report              verdicts, results.json, chart.png

start_report() {
    STARTED=$SECONDS
    jq -n --arg command "$COMMAND" --arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
        --argjson cores "$(nproc)" --argjson memory "$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo)" \
        --arg kernel "$(uname -sr)" --arg system "$(. /etc/os-release && echo "$PRETTY_NAME")" \
        --arg load "$(cut -d' ' -f1-3 /proc/loadavg)" --arg started "$(date -Is)" --arg postgresql "$PG_VERSION" \
        --arg ours "$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" "$ROOT/$EXTENSION.control")" \
        --arg commit "$(git -C "$ROOT" describe --always --dirty 2>/dev/null || true)" \
        --argjson rounds "$ROUNDS" --argjson seconds "$SECONDS_EACH" --arg clients "$CLIENTS" '
        {command: $command, started: $started,
         machine: {cpu: $cpu, cores: $cores, memory_mb: $memory, kernel: $kernel, system: $system, load_at_start: $load},
         versions: {pg_interlock: $ours, commit: $commit, postgresql: $postgresql},
         settings: {rounds: $rounds, seconds: $seconds, clients: ($clients | split(" ") | map(tonumber)), pgbench: "-M prepared", server: $ARGS.positional}}' \
        --args "fsync = off" "${SETTINGS[@]}" >"$WORK/about"
    touch "$WORK/rows" "$WORK/missing" "$WORK/scale" "$WORK/instructions"
}

# add_about JQ_ARGUMENT...: changes what is noted.
add_about() {
    jq "$@" "$WORK/about" >"$WORK/about.new" && mv "$WORK/about.new" "$WORK/about"
}

warn_of_load() {
    awk -v cores="$(nproc)" '$1 > 0.2 * cores {exit 1}' /proc/loadavg ||
        note "this machine is not quiet: its load is $(cut -d' ' -f1 /proc/loadavg), and the figures will be worth less"
}

# --- Rows ----------------------------------------------------------------------

print_side() {
    [ -n "${SAMPLES[$2]:-}" ] || return 0
    # shellcheck disable=SC2086
    printf '  %-44s %s\n' "$1" "$(describe "$3" ${SAMPLES[$2]})"
}

add_row() {
    local name=$1 clients=$2 against=$3 why=${UNAVAILABLE[$4]:-${UNAVAILABLE[$5]:-}} row verdict=
    if [ -n "$why" ]; then
        not_measured "$name" "$against" "$why"
        return
    fi
    jq -cn --arg line "$name" --argjson clients "$clients" --arg against "$against" --arg ours "${SAMPLES[$4]}" \
        --arg theirs "${SAMPLES[$5]}" --arg target "$6" --arg unit "$7" --arg commit "$AGAINST" -f "$ROOT/bench/row.jq" >>"$WORK/rows"
    row=$(tail -n 1 "$WORK/rows")
    # shellcheck disable=SC2086
    printf '  %-44s %s' "$against" "$(describe "$7" ${SAMPLES[$5]})"
    verdict=$(jq -r 'if .met == null then "" elif .met then "met" else "missed" end' <<<"$row")
    # shellcheck disable=SC2046,SC2183
    printf '  ratio %6.3f (%.2f to %.2f)' $(jq -r '.ratio, .ratio_min, .ratio_max' <<<"$row")
    [ -z "$verdict" ] || printf '  %s %s: %s%s%s' "$(jq -r .bound <<<"$row")" "$6" \
        "$([ "$verdict" = met ] && echo "$GREEN" || echo "$RED")" "$verdict" "$PLAIN"
    jq -r 'select(.spread > 20) | "  (rounds differ by \(.spread) %)"' <<<"$row" | tr -d '\n'
    echo
}

not_measured() {
    printf '  %-44s %snot measured: %s%s\n' "$2" "$DIM" "$3" "$PLAIN"
    jq -cn --arg line "$1" --arg against "$2" --arg why "$3" '{line: $line, against: $against, why: $why}' >>"$WORK/missing"
}

clients_in_words() { [ "$1" = 1 ] && echo "1 client" || echo "$1 clients"; }

# describe UNIT SAMPLE...: the median, and from where to where.
describe() {
    local unit=$1
    shift
    printf '%s\n' "$@" | sort -n | awk -v unit="$unit" '{v[NR] = $1}
        END {f = v[NR] < 100 ? "%.1f" : "%.0f"; printf "%9s %-3s %-20s", sprintf(f, v[int((NR + 1) / 2)]), unit, sprintf("(" f " to " f ")", v[1], v[NR])}'
}

# --- The end -------------------------------------------------------------------

finish_report() {
    jq --argjson seconds "$((SECONDS - STARTED))" --slurpfile lines "$WORK/rows" --slurpfile missing "$WORK/missing" \
        --slurpfile scale "$WORK/scale" --slurpfile instructions "$WORK/instructions" \
        '. + {took_seconds: $seconds, lines: $lines, not_measured: $missing, scale: $scale, instructions: $instructions}' "$WORK/about" >"$OUT/results.json"
    if jq -es 'any(.target != null)' "$WORK/rows" >/dev/null; then print_verdicts; fi
    [ -z "$AGAINST" ] || print_losses
    if jq -es 'any(.unit == "/s" or .target != null)' "$WORK/rows" >/dev/null; then draw_chart; fi
    heading "$OUT"
    note "$(cd "$OUT" && echo *)"
}

print_verdicts() {
    local met line clients against ratio bound target
    heading "Targets"
    jq -r 'select(.target != null) | [.met, .line, .clients, .against, .ratio, .bound, .target] | @tsv' "$WORK/rows" |
        while IFS=$'\t' read -r met line clients against ratio bound target; do
            result_line "$([ "$met" = true ] && echo "$GREEN" || echo "$RED")" "$([ "$met" = true ] && echo met || echo missed)" \
                "$line$([ "$clients" = 0 ] || echo ", $(clients_in_words "$clients")")" \
                "$(printf '%6.3f, %s %s, against %s' "$ratio" "$bound" "$target" "$against")"
        done
    note "$(jq -rs 'map(select(.target != null)) | "\(map(select(.met)) | length) of \(length) met"' "$WORK/rows")"
}

# print_losses: of what is slower than the other commit in every round, and of what takes 1 % more instructions.
print_losses() {
    heading "Slower than $AGAINST"
    jq -r 'select(.ratio_max < 1) | "\(.line)\(if .clients == 0 then "" else ", \(.clients) client\(if .clients == 1 then "" else "s" end)" end): \(.ratio * 1000 | round / 1000)"' "$WORK/rows" |
        while read -r; do note "$REPLY"; done
    jq -r 'select(.ratio < 0.99) | "\(.statement): \(.instructions) instructions, \(.theirs) before"' "$WORK/instructions" |
        while read -r; do note "$REPLY"; done
    note "$(jq -rs 'map(select(if .statement then .ratio < 0.99 else .ratio_max < 1 end)) | length' "$WORK/rows" "$WORK/instructions") of $(cat "$WORK/rows" "$WORK/instructions" | wc -l)"
}

draw_chart() {
    (need_packages gnuplot-nox fonts-dejavu-core) >"$WORK/gnuplot.log" 2>&1 && draw "$OUT/chart.png" || {
        note "no picture: $(tail -n 1 "$WORK/gnuplot.log")"
        rm -f "$OUT/chart.png"
    }
}

# draw FILE: a band for each pair, those with a target first; a mark for each number of clients with the range of its
# rounds, and the target as a bar across the band. Times without a target stay out: they are no comparison.
draw() {
    jq -rs 'def plain: gsub("[\"{}^@]"; " ") | gsub("_"; "\\_");
        map(select(.unit == "/s" or .target != null)) | . as $rows
        | [$rows[] | [.line, .against]] | [foreach .[] as $pair ([]; if index([$pair]) then . else . + [$pair] end)] | last
        | [.[] as $pair | [$rows[] | select([.line, .against] == $pair)]]
        | (map(select(.[0].target != null)) | length) as $judged
        | (map(select(.[0].target != null)) + map(select(.[0].target == null))) | to_entries[]
        | .key as $key | (.key + (if .key < $judged then 0 else 0.6 end)) as $band | .value as $pair | range($pair | length) as $i | $pair[$i]
        | [$band, (if ($pair | length) == 1 then 0 else ($i / (($pair | length) - 1) - 0.5) * 0.36 end), .ratio, .ratio_min, .ratio_max,
           (.target // "NaN"), (if .met == null then 2 elif .met then 1 else 0 end), .clients, (.line | plain),
           (.against + (if .unit != "/s" then ", time: less is better" else "" end) | plain),
           (if $i > 0 then "" else ([$pair[] | .ratio * 100 | round / 100 | tostring] | join("  ")) end)]
        | @tsv' "$WORK/rows" >"$WORK/chart.tsv"
    gnuplot -e "data='$WORK/chart.tsv'; picture='$1'; about='$(about_chart)'" "$ROOT/bench/chart.gp" >>"$WORK/gnuplot.log" 2>&1
}

about_chart() {
    jq -r '"PostgreSQL \(.versions.postgresql), \(.machine.cores) cores, \(.settings.rounds) rounds of \(.settings.seconds) s"' "$WORK/about"
}
