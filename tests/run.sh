#!/bin/sh
# Runs test programs, JOBS at a time, and sums up: run.sh COMMAND...   (a command is one argument: "build/conformance -j 2 tests/vectors")
# Each must end with a line "N passed, N failed, N skipped". One that crashes or ends otherwise counts as one failure.
# RUN is put before each command (an emulator); BUILD is where items.txt goes.
BUILD=${BUILD:-build}
NPU_ITEMS=$BUILD/items.raw
export NPU_ITEMS BUILD RUN
: > "$NPU_ITEMS"
printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -I '{}' sh -c '
    log=$BUILD/$(basename "${1%% *}").log
    $RUN $1 > "$log" 2>&1
    echo $? > "$log.status"' sh '{}'
passed=0 failed=0 skipped=0
for command in "$@"; do
    log=$BUILD/$(basename "${command%% *}").log
    code=$(cat "$log.status")
    last=$(tail -n 1 "$log")
    if echo "$last" | grep -Eq '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'; then
        counts=$(echo "$last" | tr -cd '0-9 ')
    else
        counts="0 1 0"
    fi
    set -- $counts
    if [ $code -ne 0 ] && [ "$2" -eq 0 ]; then
        set -- "$1" 1 "$3" # a sanitizer's report at exit, say
    fi
    if [ "$2" -ne 0 ]; then
        grep -v '^aten\.[^ ]* [0-9]* 0 [0-9]*$' "$log" | tail -n 60
        echo "FAIL $command (status $code, whole output in $log): $last"
    else
        grep '^SKIP' "$log"
        echo "ok   $command: $last"
    fi
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
done
sort -u -V "$NPU_ITEMS" > "$BUILD/items.txt"
if [ $skipped -ne 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ]
