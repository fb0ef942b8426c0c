#!/bin/bash
# Planned models on microcontrollers that qemu has: the files of 15_planned_model, built with -Os, and what they take.
# usage: firmware.sh [folder for what is built]      from the repository's root; CC = the host's compiler, IMAGES = how
# many of the 2500 of the digits' test set are compared with the executor; CMSIS_NN = a folder with CMSIS-NN's Include
# and Source: models of i8 are built once more, with its kernels (make firmware CMSIS_NN=folder)
# Fails where an output is not the host's, bit for bit, or where a figure is above its limit.
BUILD=${1:-build/firmware} CC=${CC:-cc} failed=0
mkdir -p "$BUILD"

has() { command -v "$1" > /dev/null 2>&1; }

skip() { echo "SKIP: $1: $2"; }

# Its compiler with flags; where flash and RAM begin and how much there is; its name for qemu.
machine() {
    local arm="arm-none-eabi-gcc -mthumb" mps2="0x0 4M 0x20000000 256K"
    case $1 in
    M0) compiler="$arm -mcpu=cortex-m0" memory="0x0 256K 0x20000000 16K" board="arm -M microbit" ;;
    M3) compiler="$arm -mcpu=cortex-m3" memory=$mps2 board="arm -M mps2-an385" ;;
    M4) compiler="$arm -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard" memory=$mps2 board="arm -M mps2-an386" ;;
    M7) compiler="$arm -mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard" memory=$mps2 board="arm -M mps2-an500" ;;
    M33) compiler="$arm -mcpu=cortex-m33 -mfpu=fpv5-sp-d16 -mfloat-abi=hard" board="arm -M mps2-an505"
        memory="0x10000000 4M 0x38000000 256K" ;;
    M55) compiler="$arm -mcpu=cortex-m55 -mfloat-abi=hard" memory="0x0 512K 0x20000000 256K" board="arm -M mps3-an547" ;;
    RV32) compiler="riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 --specs=picolibc.specs"
        memory="0x80000000 4M 0x80400000 256K" board="riscv32 -M virt -bios none" ;;
    esac
}

flags="-std=c99 -Os -ffp-contract=off -ffunction-sections -fdata-sections -Wall -Wextra -Werror -I. -I$BUILD"

# What is the same for all models of a machine: its memory, its start and the runtime with all kernels.
build_machine() { # machine
    local out=$BUILD/$1 compiler memory board
    machine "$1"
    set -- $memory
    $CC -E -P -x c -DFLASH=$1 -DFLASH_SIZE=$2 -DRAM=$3 -DRAM_SIZE=$4 examples/firmware/machine.ld > "$out.ld" &&
        $compiler $flags -c examples/firmware/machine.c -o "$out.machine.o" &&
        $compiler $flags -c examples/firmware/runtime.c -o "$out.runtime.o"
}

# The functions of CMSIS-NN that examples/firmware/cmsis_nn.h calls.
build_cmsis() { # machine
    local name
    for name in NNSupportFunctions/arm_nn_mat_mult_nt_t_s8 BasicMathFunctions/arm_elementwise_add_s8 \
        BasicMathFunctions/arm_elementwise_mul_s8; do
        $compiler -std=c99 -Os -ffunction-sections -fdata-sections -w -I"$CMSIS_NN/Include" \
            -c "$CMSIS_NN/Source/$name.c" -o "$BUILD/$1.${name#*/}.o" || return 1
    done
}

# model, machine: builds $BUILD/model_machine.elf; model_calls: of the model as C calls, model_cmsis: with CMSIS-NN
build() {
    local model=${1%_calls} out=$BUILD/$1_$2 with=$BUILD/$2 calls="" compiler memory board
    machine "$2"
    if [ $model != ${model%_cmsis} ]; then
        model=${model%_cmsis}
        calls="-DWITH_CMSIS_NN -isystem $CMSIS_NN/Include"
        build_cmsis "$2" || return 1
    elif [ $model != $1 ]; then
        calls="-DIN=$(grep -o 'MODEL_IN_[A-Z]*_PLACE' "$BUILD/$model.c" | head -n 1)"
        calls="-DCALLS=\"$model.c\" $calls -DOUT=$(grep -o 'MODEL_OUT_[A-Z]*_PLACE' "$BUILD/$model.c" | head -n 1)"
    fi
    # with memory beside that of the core
    [ $model != accelerator ] || calls="$calls -DVECTOR_UNIT=0x21000000u -DVECTOR_UNIT_IS_MEMORY"
    $compiler $flags "-DMODEL=\"$model.h\"" "-DCASES=\"${model}_cases.h\"" $calls -c examples/firmware/run.c -o "$out.o" &&
        $compiler -nostdlib -Wl,--gc-sections -T "$with.ld" "$out.o" "$with.machine.o" "$with.runtime.o" \
            $([ "$1" = "${1%_cmsis}" ] || ls "$with".arm_*.o) -lgcc -o "$out.elf"
} > "$BUILD/$1_$2.log" 2>&1

run() { # model, machine: leaves what it prints in $BUILD/model_machine.out
    local compiler memory board
    machine "$2"
    timeout 120 qemu-system-$board -nographic -semihosting -icount shift=0 -kernel "$BUILD/$1_$2.elf" \
        > "$BUILD/$1_$2.out" 2>&1 < /dev/null
}

# Bytes of the functions of a list, of the planned models' alone: elf, "core" or "kernels"
text() {
    ${nm:-arm-none-eabi-nm} -S --defined-only "$1" | awk -v part="$2" '
        BEGIN { n = split("open check_data port_at data reset start step is_done run read write constant", core)
                for (i = 1; i <= n; i++) { is_core["npu_planned_" core[i]] = 1 } }
        function bytes(hex,   i, sum) {
            for (i = 1; i <= length(hex); i++) { sum = sum * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1 }
            return sum }
        $3 ~ /[tT]/ && $4 ~ /^npu_/ { name = $4; sub(/\..*/, "", name)
            here = name in is_core || name ~ /^npu__planned_(check|check_.*|crc|fits|call|words)$/
            if (here == (part == "core")) { sum += bytes($2) } }
        END { print sum + 0 }'
}

size_of() { arm-none-eabi-size "$1" | awk 'NR == 2 { print $1 }'; }

said() { awk -v what="$2" 'index($0, what " ") == 1 { n = $NF } END { print n }' "$BUILD/$1.out"; } # run, what

limit() { # what, figure, at most
    local mark=""
    if [ -z "$2" ] || [ "$2" -gt "$3" ]; then
        mark="  ABOVE" failed=1
    fi
    printf '  %-58s %10s  at most %10s%s\n' "$1" "$2" "$3" "$mark"
}

# Bytes of code of a program that has these kernels of the list and nothing else: machine, part, names
sized() {
    local out=$BUILD/sized_$1 part=$2 compiler memory board name table=""
    machine "$1"
    for name in "${@:3}"; do table="$table NPU_PLANNED_KERNEL($name)"; done
    cat > "$out.c" << END
#define NPU_IR_RUNTIME_ONLY
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
static const npu_planned_kernel kernels[] = { $table };
static npu_planned m;
int main(void)
{
    npu_planned_desc desc = { kernels, 64, kernels, 64, kernels, sizeof kernels / sizeof kernels[0], 0, 0 };
    return npu_planned_open(&m, &desc) || npu_planned_check_data(&m) || npu_planned_run(&m) || !npu_planned_data(&m, 0);
}
END
    $compiler $flags -w -c "$out.c" -o "$out.o" && $compiler -nostdlib -Wl,--gc-sections -T "$BUILD/$1.ld" "$out.o" \
        "$BUILD/$1.machine.o" "$BUILD/$1.runtime.o" -lgcc -o "$out.elf" && nm=${nm_of[$1]} text "$out.elf" "$part"
}
# A convolution, the same by channels, a product, pools, softmax, a sum: what small networks are made of; reshape is none.
seven_f32="conv_f32 depthwise_f32 matmul_f32 max_pool_f32 avg_pool_f32 softmax_f32 binary_f32"
seven_i8="conv_i8 depthwise_i8 linear_i8 max_pool_i8 avg_pool_i8 softmax_i8 add_i8"

# Both cases, bit for bit as on the host.
line() { # model, machine
    if ! build "$1" "$2"; then
        echo "FAIL $1 on $2: does not compile" && failed=1
        tail -n 5 "$BUILD/$1_$2.log" && return
    elif ! run "$1" "$2"; then
        echo "FAIL $1 on $2:" $(tr '\n' ';' < "$BUILD/$1_$2.out") && failed=1
    fi
    printf '%-18s %-5s %6s %6s %8s %8s %6s %12s\n' "$1" "$2" "$(nm=${nm_of[$2]} text "$BUILD/$1_$2.elf" core)" \
        "$(nm=${nm_of[$2]} text "$BUILD/$1_$2.elf" kernels)" "$(said $1_$2 file)" "$(said $1_$2 arena)" \
        "$(said $1_$2 stack)" "$(said $1_$2 'instructions of a run')"
}
# Bytes of code by the file whose lines they are from, wherever the compiler has put them.
code_size() { # program, file
    arm-none-eabi-objdump --dwarf=decodedline "$1" | awk -v file="$2" '$3 ~ /^0x/ {
        at = 0
        for (i = 3; i <= length($3); i++) at = at * 16 + index("123456789abcdef", substr($3, i, 1))
        if (from == file && at > last) sum += at - last
        from = $2 == "-" || / END/ ? "" : $1
        last = at
    } END { print sum + 0 }'
}

# examples/12_firmware.c, which builds its graph, plans and runs it there, without messages; the stack is that of runs.
full_profile() {
    local out=$BUILD/full file
    sed -e 's/^int main(void)/void firmware_look_again(void);\n&/' -e 's/    int failed = !exec/    firmware_look_again();\n&/' \
        examples/12_firmware.c > "$out.c" && bash tests/firmware/build.sh "-g -DNPU_IR_NO_STRINGS" "$out.c" "$out.elf" &&
        timeout 120 qemu-system-arm -M mps2-an386 -nographic -semihosting -kernel "$out.elf" > "$out.out" < /dev/null || return 1
    for file in npu_ir.h npu_ir_backend_ref.h; do
        echo "$file $(code_size "$out.elf" $file)"
    done >> "$out.out"
}

declare -A nm_of=([RV32]=riscv64-unknown-elf-nm)

models="digits_i8 spotter_i8 digits_f32 spotter_f32"
machines=""
if echo '#include <string.h>' | arm-none-eabi-gcc -fsyntax-only -x c - 2> /dev/null && has qemu-system-arm; then
    machines="M4 M0 M3 M7 M33 M55"
else
    skip "models on a Cortex-M" "arm-none-eabi-gcc, its C library or qemu-system-arm is missing"
fi
if echo '#include <string.h>' | riscv64-unknown-elf-gcc --specs=picolibc.specs -march=rv32imac -mabi=ilp32 -fsyntax-only \
    -x c - 2> /dev/null && has qemu-system-riscv32; then
    machines="$machines RV32"
else
    skip "models on RV32" "riscv64-unknown-elf-gcc, picolibc or qemu-system-riscv32 is missing"
fi
[ -n "$machines" ] || exit 0
QUICK=$CC
has clang && QUICK=clang
$QUICK -std=c99 -O0 -I. -Iexamples examples/15_planned_model.c -lm -lpthread -o "$BUILD/host" || exit 1
"$BUILD/host" "$BUILD" "${IMAGES:-100}" || exit 1
$QUICK -std=c99 -O0 -I. -Iexamples examples/17_planned_accelerator.c -lm -lpthread -o "$BUILD/host" || exit 1
"$BUILD/host" "$BUILD" || exit 1

printf '%-18s %-5s %6s %6s %8s %8s %6s %12s\n' model core runtime kernels file arena stack instructions
for m in $machines; do
    build_machine $m || { echo "FAIL $m: does not compile" && failed=1; }
    for model in $models level_f32 level_f32_calls attention_f32 attention_i8 attention_f32_calls attention_i8_calls \
        digits_i8_least spotter_i8_least accelerator accelerator_calls; do
        [ $m = M0 ] && [[ $model != digits_i8 && $model != level_* ]] && continue # the board has 16 KB of RAM
        [ $m != M4 ] && [[ $model = *_least || $model = accelerator* || $model = attention* ]] && continue
        line $model $m
    done
done

if [ -z "$CMSIS_NN" ]; then
    skip "kernels of CMSIS-NN" "CMSIS_NN names no folder with its Include and Source"
else
    for m in $machines; do
        [[ $m = M4 || $m = M33 || $m = M55 ]] && line digits_i8_cmsis $m && line spotter_i8_cmsis $m
    done
fi

# What README.md says, of a Cortex-M4: models with memory to be faster.
case $machines in
M4*)
    echo "limits, Cortex-M4 -Os"
    elf() { echo "$BUILD/$1_M4.elf"; }
    limit "code of the runtime, bytes" "$(text "$(elf digits_i8)" core)" 1536
    for model in $models attention_f32; do
        limit "code of the kernels of $model, bytes" "$(text "$(elf $model)" kernels)" 6144
    done
    limit "code of the kernels of attention_i8, bytes" "$(text "$(elf attention_i8)" kernels)" 6656
    limit "code of seven kernels f32, bytes" "$(sized M4 kernels $seven_f32)" 6144
    limit "code of seven kernels i8, bytes" "$(sized M4 kernels $seven_i8)" 6144
    limit "code of both, bytes" "$(sized M4 kernels $seven_f32 $seven_i8)" 10240
    limit "code of both with faster convolutions, bytes" \
        "$(sized M4 kernels $seven_f32 $seven_i8 conv_columns_f32 conv_columns_i8)" 12288
    limit "instructions of a run, digits i8" "$(said digits_i8_M4 'instructions of a run')" 4250000
    limit "instructions of a run, spotter i8" "$(said spotter_i8_M4 'instructions of a run')" 3920000
    limit "instructions of a run, digits f32" "$(said digits_f32_M4 'instructions of a run')" 5450000
    limit "instructions of a run, spotter f32" "$(said spotter_f32_M4 'instructions of a run')" 4600000
    limit "instructions of a run, attention f32" "$(said attention_f32_M4 'instructions of a run')" 945000
    limit "instructions of a run, attention i8" "$(said attention_i8_M4 'instructions of a run')" 1150000
    limit "instructions of attention_f32 as C calls" "$(said attention_f32_calls_M4 'instructions of a run')" 685000
    limit "instructions of attention_i8 as C calls" "$(said attention_i8_calls_M4 'instructions of a run')" 1000000
    limit "instructions to open, digits i8" "$(said digits_i8_M4 'instructions to open')" 20000
    limit "arena of digits i8, bytes, 4 KB of it to be faster" "$(said digits_i8_M4 arena)" $((13328 + 4096))
    limit "arena of digits f32, bytes, 4 KB of it to be faster" "$(said digits_f32_M4 arena)" $((53312 + 4096))
    limit "memory beside the arena, bytes" "$(said digits_i8_M4 'beside the arena')" 32
    for model in $models; do
        line ${model}_calls M4
        limit "instructions of $model as C calls" "$(said ${model}_calls_M4 'instructions of a run')" \
            $(($(said ${model}_M4 'instructions of a run') / 10 * 9))
        limit "bytes of $model as C calls" "$(size_of "$(elf ${model}_calls)")" "$(size_of "$(elf $model)")"
    done
    for model in $models attention_f32 attention_i8 digits_i8_least spotter_i8_least; do
        limit "stack, bytes, $model" "$(said ${model}_M4 stack)" 512
    done
    full_profile || { echo "FAIL 12_firmware on M4" && failed=1; }
    limit "code of npu_ir.h in 12_firmware, bytes" "$(said full npu_ir.h)" 40960
    limit "stack of its runs, bytes" "$(awk '$1 == "stack" { print $2 }' "$BUILD/full.out")" 4096
    limit "symbols of strtod in it" "$(arm-none-eabi-nm "$BUILD/full.elf" | grep -c strto)" 0
    ;;
esac
case $machines in
*M0*)
    echo "limits, Cortex-M0 -Os"
    limit "code of the runtime, bytes" "$(text "$BUILD/digits_i8_M0.elf" core)" 1638
    limit "code of the kernels of digits i8, bytes" "$(text "$BUILD/digits_i8_M0.elf" kernels)" 8192
    limit "code of seven kernels i8, bytes" "$(sized M0 kernels $seven_i8)" 8192
    limit "stack, bytes, digits_i8" "$(said digits_i8_M0 stack)" 528
    limit "instructions of a run, digits i8" "$(said digits_i8_M0 'instructions of a run')" 10200000
    line digits_i8_calls M0
    limit "instructions of digits_i8 as C calls" "$(said digits_i8_calls_M0 'instructions of a run')" \
        $(($(said digits_i8_M0 'instructions of a run') / 10 * 9))
    ;;
esac
case $machines in
*M55*)
    echo "limits, Cortex-M55 -Os"
    limit "instructions of a run, digits i8" "$(said digits_i8_M55 'instructions of a run')" 2600000
    limit "instructions of a run, spotter i8" "$(said spotter_i8_M55 'instructions of a run')" 3200000
    ;;
esac
exit $failed
