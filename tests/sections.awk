# Prints the outline of a header: first line, lines and functions of every ruled section and of the parts in it. The text
# is the only source. With -v CHECK=1 it prints what is wrong instead and fails: a tag that is named but not placed once,
# a rule without a title, an implementation that stands in another order than its declarations.
function trim(s) { sub(/^[ \t]+/, "", s); sub(/[ \t]+$/, "", s); return s }
function row(line, title, count) { return sprintf("%6d %6d %5d  %s", line, here - line, count, title) }
function show(line, title, count) { if (!CHECK) { print row(line, title, count) } }
function close_section(    i) {
    if (section != "") { show(section_line, section, functions) }
    for (i = 0; i < parts; i++) { print held[i] }
    section = ""; parts = 0
}
function end_part() {
    if (part != "" && !CHECK) { held[parts++] = row(part_line, "    " part, part_functions) }
    part = ""
}
function start_section(title) {
    end_part()
    close_section()
    section = title; section_line = FNR; functions = 0
}
function end_file() { here++; end_part(); close_section() }
function wrong(words) { print FILENAME ":" FNR ": " words; bad = 1 }

FNR == 1 {
    end_file()
    if (NR > 1 && !CHECK) { print "" }
    if (!CHECK) { printf "%s\n%6s %6s %5s\n", FILENAME, "line", "lines", "func." }
    section = "(manual)"; section_line = 1; functions = 0
}
{
    here = FNR
    rest = $0
    while (match(rest, />>[a-z][a-z-]+/)) {
        tag = substr(rest, RSTART, RLENGTH)
        if (!(tag in named)) { named[tag] = FILENAME ":" FNR }
        rest = substr(rest, RSTART + RLENGTH)
    }
}
/^\/\* -----+ \*\/$/ { wrong("a rule without a title") }
/^\/\* -----+$/ { ruled = 1; next }
ruled {
    ruled = 0
    if (/^ +([0-9]+ +)?[A-Z][A-Z ]/) { place($0); start_section(title_of($0)) } else { wrong("a rule without a title") }
    next
}
/^\/\* ---- / {
    title = title_of($0)
    if (place($0)) { start_section("    " title) } else { end_part(); part = title; part_line = FNR; part_functions = 0 }
    next
}
/^[A-Za-z].*\)$/ || /^[A-Za-z].*,$/ { candidate = 1 }
/^\{$/ && candidate { functions++; part_functions++; candidate = 0 }
/^[A-Za-z].*\) \{ .*\}$/ { functions++; part_functions++ }
/^$/ { candidate = 0 }

function title_of(s) {
    sub(/^\/\* ---- /, "", s); sub(/( ----|(; see)? *>>).*/, "", s)
    return trim(s)
}
function place(s) {
    if (!match(s, />>[a-z][a-z-]+( \*\/)?$/)) { return 0 }
    tag = substr(s, RSTART, RLENGTH); sub(/ .*/, "", tag)
    placed[tag]++
    order[tag] = NR
    if (sub(/^>>impl-/, ">>", tag) && tag in order) {
        if (order[tag] < newest) { wrong(tag " is declared before the section in front of it") }
        newest = order[tag]
    }
    return 1
}
END {
    end_file()
    for (tag in named) {
        if (CHECK && placed[tag] != 1) { print named[tag] ": " tag " is named, and placed " placed[tag] + 0 " times"; bad = 1 }
    }
    exit bad
}
