# Sums up what `gcov -b -c -t` prints of one object after the other, of both headers: lines that have run and branches that
# were taken, in any of the objects. As gcov itself counts, functions that a macro stamps several times from one line have no branches
# of their own; "stamped" counts those, each copy by itself. What never ran goes to the file MISSED.
function share(n, all) { return sprintf("%6.2f %% of %5d", all ? 100 * n / all : 0, all) }

/^------------------/ { stamped = 0; next }
/^[a-zA-Z_0-9]+:$/ { stamped = 1; next }
/^ *-: +0:Source:/ { stamped = 0; file = $0; sub(/.*[:\/]/, "", file); next }
file !~ /^npu_ir.*\.h$/ { next }
/^function / { name = $2; next }

/^branch / {
    kind = file (stamped ? " stamped" : " branches")
    key = file SUBSEP line SUBSEP name SUBSEP branch++
    if (!(key in taken)) { taken[key] = 0; all[kind]++ }
    if ($3 == "taken" && $4 > 0 && !taken[key]) { taken[key] = 1; hit[kind]++ }
}

/^ *([0-9]+\*?|#####|=====): *[0-9]+:/ {
    split($0, part, ":")
    line = part[2] + 0
    branch = 0
    key = file SUBSEP line
    if (!(key in ran)) { ran[key] = 0; all[file " lines"]++ }
    if (part[1] + 0 > 0 && !ran[key]) { ran[key] = 1; hit[file " lines"]++ }
}

END {
    sorted = "sort -t: -k1,1 -k2,2n > " MISSED
    for (key in ran) {
        split(key, part, SUBSEP)
        if (!ran[key]) { print part[1] ":" part[2] ": never runs" | sorted }
    }
    for (key in taken) {
        split(key, part, SUBSEP)
        if (!taken[key] && ran[part[1] SUBSEP part[2]]) {
            print part[1] ":" part[2] ": " part[3] ": branch " part[4] " is never taken" | sorted
        }
    }
    split("npu_ir.h npu_ir_backend_ref.h", files, " ")
    for (i = 1; i <= 2; i++) {
        file = files[i]
        printf "%-22s lines %s, branches %s, stamped %s\n", file, share(hit[file " lines"], all[file " lines"]),
            share(hit[file " branches"], all[file " branches"]), share(hit[file " stamped"], all[file " stamped"])
    }
}
