#!/bin/sh
# Is the new store worse than the old one?
#
# Measures both in turn on this machine (old new, new old, ...), so that a machine that slows down
# slows both, and compares the medians. Exit codes are those of tsb: 0 if no threshold was crossed,
# 5 if one was, 3 if a run lost data or says nothing about its store.
#
#   OLD_STORE='sqlite:bench-ROUND.db' NEW_STORE='sqlite:bench-ROUND.db?checkpoint=64MiB' sh regression.sh
#
# Both have to promise the same durability: what promises less has less to do.
# Each round needs an empty place: ROUND in a spec becomes the name of the round, such as old-1.
# OLD_TSB and NEW_TSB are the programs, where two versions of a store are built into two of them.
set -eu

OLD_STORE=${OLD_STORE:?the spec of the store as it was, such as sqlite:bench-ROUND.db}
NEW_STORE=${NEW_STORE:?the spec of the store as it is now}
OLD_TSB=${OLD_TSB:-tsb}
NEW_TSB=${NEW_TSB:-$OLD_TSB}
ROUNDS=${ROUNDS:-3}
RESULTS=${RESULTS:-regression}
# Change this: the load that matters to you.
LOAD=${LOAD:---rate 54k --duration 20s}
# Change this: how much worse it may be.
FAIL_IF=${FAIL_IF:-response.p99>+10% cost.store>+5% bytes_per_sample>+5%}

mkdir -p "$RESULTS"
rm -f "$RESULTS"/old-*.json "$RESULTS"/new-*.json

measure() { # program, store, round
    store=$(printf '%s' "$2" | sed "s/ROUND/$3/g")
    # shellcheck disable=SC2086 # LOAD is several words.
    "$1" run --store "$store" $LOAD --label store --retry-noisy 2 --quiet --out "$RESULTS/$3.json" > "$RESULTS/$3.txt"
}

round=1
while [ "$round" -le "$ROUNDS" ]; do
    if [ $((round % 2)) -eq 1 ]; then
        measure "$OLD_TSB" "$OLD_STORE" "old-$round"
        measure "$NEW_TSB" "$NEW_STORE" "new-$round"
    else
        measure "$NEW_TSB" "$NEW_STORE" "new-$round"
        measure "$OLD_TSB" "$OLD_STORE" "old-$round"
    fi
    round=$((round + 1))
done

"$NEW_TSB" report "$RESULTS"/old-*.json --format json > "$RESULTS/old.json"
"$NEW_TSB" report "$RESULTS"/new-*.json --format json > "$RESULTS/new.json"

set --
for condition in $FAIL_IF; do
    set -- "$@" --fail-if "$condition"
done
exec "$NEW_TSB" compare "$RESULTS/old.json" "$RESULTS/new.json" "$@" --out "$RESULTS/comparison.json"
