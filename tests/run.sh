#!/bin/sh
# Runs test programs, JOBS at a time, shows each result as it comes, and sums up: run.sh COMMAND...
# (a command is one argument: "build/conformance -j 2 tests/vectors")
# Each must end with a line "N passed, N failed, N skipped". One that crashes or ends otherwise counts as one failure.
# RUN is put before each command (an emulator); BUILD is where items.txt goes.
BUILD=${BUILD:-build}
NPU_ITEMS=$BUILD/items.raw COUNTS=$BUILD/counts.raw
export NPU_ITEMS COUNTS BUILD RUN
: > "$NPU_ITEMS"
: > "$COUNTS"
printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -I '{}' sh -c '
    command=$1 log=$BUILD/$(basename "${1%% *}").log begin=$(date +%s)
    $RUN $command > "$log" 2>&1
    code=$?
    last=$(tail -n 1 "$log")
    if echo "$last" | grep -Eq "^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped\$"; then
        counts=$(echo "$last" | tr -cd "0-9 ")
    else
        counts="0 1 0"
    fi
    set -- $counts
    if [ $code -ne 0 ] && [ "$2" -eq 0 ]; then
        set -- "$1" 1 "$3" # a report of a sanitizer at exit, say
    fi
    echo "$1 $2 $3" >> "$COUNTS"
    if [ "$2" -ne 0 ]; then
        words=$(grep -v "^aten\.[^ ]* [0-9]* 0 [0-9]*\$" "$log" | tail -n 60
            echo "FAIL $command (status $code, whole output in $log): $last")
    else
        words=$(grep "^SKIP" "$log"
            echo "ok   $command: $last ($(($(date +%s) - begin)) s)")
    fi
    printf "%s\n" "$words"' sh '{}'
sort -u -V "$NPU_ITEMS" > "$BUILD/items.txt"
awk -v wanted=$# '{ passed += $1; failed += $2; skipped += $3 }
    END {
        failed += wanted - NR
        printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
        exit failed != 0
    }' "$COUNTS"
