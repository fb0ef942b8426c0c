#!/bin/bash
# What npu_run refuses and notes, in which words, and with which exit status: bash tests/npu_run.sh NPU_RUN FOLDER
# A row is the status, a pattern of grep that some line of all that is printed has, how many lines that are (empty = any
# number), and the arguments. Files of the rows lie in FOLDER, T here.
RUN=$1 T=$2
mkdir -p "$T" || exit 1
bad=0

array() { # name, shape, data as printf takes it
    printf "\223NUMPY\1\0F\0%-69s\n$3" "{'descr': '<f4', 'fortran_order': False, 'shape': $2, }" > "$T/$1"
}
ONE='\0\0\200?' TWO='\0\0\0@'

text_model() { # name, lines
    local name=$1
    shift
    printf '%s\n' 'npu_ir 1' 'graph main' "$@" > "$T/$name"
}

weights() { # name, header, data
    local header=$2 len=${#2}
    printf "$(printf '\\%o\\%o\\0\\0\\0\\0\\0\\0' $((len % 256)) $((len / 256)))" > "$T/$1"
    printf '%s%s' "$header" "$3" >> "$T/$1"
}

array two.npy '(2,)' "$ONE$TWO"
array three.npy '(3,)' "$ONE$TWO$ONE"
array open.npy '(1, 2)' "$ONE$TWO"
weights w.safetensors '{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' 0123456789abcdef
weights many.safetensors '{"W":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' 0123456789abcdef
weights long.safetensors '{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' 0123456789abcdefg
weights shape.safetensors '{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' 0123456789abcdef
text_model tiny.txt 'input x : f32[2]' 'const w : f32[2,2] {1.0, 2.0, 3.0, 4.0}' 'y = aten.linear.default(x, w)' 'output y = y'
text_model bare.txt 'input x : f32[2]' 'param w : f32[2,2]' 'y = aten.linear.default(x, w)' 'output y = y'
text_model open.txt 'symbol batch 0 8' 'input picture : f32[batch,2]' 'const w : f32[2,2] {1.0, 2.0, 3.0, 4.0}' \
    'y = aten.linear.default(picture, w)' 'output scores = y'
text_model pair.txt 'input a : f32[2]' 'input b : f32[2]' 'y = aten.add.Tensor(a, b)' 'output y = y'
text_model turned.txt 'input x : f32[1,3]' 'input w : f32[2,3]' 't = aten.t.default(w)' 'y = aten.mm.default(x, t)' 'output y = y'
text_model none.txt 'c = aten.full.default([2], 1.0)' 'output y = c'
text_model typo.txt 'input x : f32[2]' 'y = aten.relu.default(X1)' 'output y = y'
text_model bytes.txt 'input x : f32[2]' 'q = quantized_decomposed.quantize_per_tensor.default(x, 1.0, 0, -128, 127, i8)' \
    'y = quantized_decomposed.dequantize_per_tensor.default(q, 1.0, 0, -128, 127, i8)' 'output y = y'
printf 'PK\3\4' > "$T/saved.pt"
printf 'NPUM\2\0\0\0' > "$T/planned.npum"
cp "$T/w.safetensors" "$T/renamed.bin"
printf 'npu_ir 1\0\n' > "$T/zero.txt"
head -c 84 "$T/two.npy" > "$T/cut.npy"
printf '\10\10\22\0:<\12\14\12\1x\22\1y"\4Relu\22\0Z\24\12\1x\22\17\12\15\10\1\22\11\12\3\22\1n\12\2\10\3' > "$T/open.onnx"
printf 'b\24\12\1y\22\17\12\15\10\1\22\11\12\3\22\1n\12\2\10\3B\4\12\0\20\21' >> "$T/open.onnx"
# y = the shape of x f32[n]; y = x f32[2] tiled by what only the run knows
printf '\10\10:2\12\15\12\1x\22\1y"\5ShapeZ\20\12\1x\22\13\12\11\10\1\22\5\12\3\22\1nb\17\12\1y\22\12\12\10\10' > "$T/sized.onnx"
printf '\7\22\4\12\2\10\1B\4\12\0\20\21' >> "$T/sized.onnx"
printf '\10\10:D\12\17\12\1x\12\1s\22\1y"\4TileZ\17\12\1x\22\12\12\10\10\1\22\4\12\2\10\2Z\17\12\1s\22\12\12\10\10' > "$T/tiled.onnx"
printf '\7\22\4\12\2\10\1b\17\12\1y\22\12\12\10\10\1\22\4\12\2\10\2B\4\12\0\20\21' >> "$T/tiled.onnx"
mkdir -p "$T/empty" "$T/whole" "$T/gap" "$T/late" "$T/half" "$T/odd/x.0.npy" "$T/pictures"
for k in 0 1 2; do
    array whole/x.$k.npy '(2,)' "$ONE$TWO"
    array whole/a.$k.npy '(2,)' "$ONE$TWO"
    array whole/b.$k.npy '(2,)' "$TWO$ONE"
done
array pictures/picture.0.npy '(1, 2)' "$ONE$TWO"
cp "$T/whole/x.0.npy" "$T/gap/x.0.npy"
cp "$T/whole/x.0.npy" "$T/gap/x.2.npy"
cp "$T/whole/x.0.npy" "$T/late/x.1.npy"
cp "$T"/whole/[ab].[01].npy "$T/half" && rm "$T/half/b.1.npy"

fail() { # what
    echo "FAIL: $1"
    sed 's/^/    /' "$T/said.txt"
    bad=$((bad + 1))
}

rows() { # the rows
    local status words lines arguments got
    while IFS='|' read -r status words lines arguments; do
        [ "$status" ] || continue
        timeout 60 "$RUN" $arguments > "$T/said.txt" 2>&1
        got=$?
        [ $got = "$status" ] || fail "npu_run $arguments: exit status $got, expected $status"
        grep -q -- "$words" "$T/said.txt" || fail "npu_run $arguments: nothing says '$words'"
        [ -z "$lines" ] || [ "$(wc -l < "$T/said.txt")" -eq "$lines" ] || fail "npu_run $arguments: expected $lines lines"
    done
}

# Wrong usage: the command line alone shows it, whatever the files hold; here there are none.
rows << END
2|no MODEL is named||
2|no MODEL is named||--plan
2|--no-such-option: no such option; npu_run --help|1|--no-such-option
2|--quantise: no such option, did you mean --quantize?|1|no.txt --quantise d
2|as in --threads 2|1|no.txt --threads=2
2|--backend gpu: expected ref (the CPU), sim .* or sim,ref|1|no.txt --backend gpu
2|--backend ref,sim: expected ref|1|no.txt --backend ref,sim
2|--backend: given twice|1|no.txt --backend sim --backend ref
2|--threads without a value: expected|3|no.txt --threads
2|--output without a value: expected|2|no.txt --output --plan
2|with a number from 1 to 1024|3|no.txt --threads 0
2|--threads 100000: expected|3|no.txt --threads 100000
2|--runs 3x: expected|3|no.txt --runs 3x
2|--bench 99999999999999999999: expected|3|no.txt --bench 99999999999999999999
2|--optimize and --no-optimize: one of them|1|no.txt --optimize --no-optimize
2|--rtol nan: expected|2|no.txt --verify y.npy --rtol nan
2|--rtol -1: expected|2|no.txt --verify y.npy --rtol -1
2|--dim NAME=N|3|no.txt --dim batch
2|--dim =3: expected|3|no.txt --dim =3
2|--dim n=-1: expected|3|no.txt --dim n=-1
2|--dim n=99999999999999999999: expected|3|no.txt --dim n=99999999999999999999
2|each name once|3|no.txt --dim n=2 --dim n=3
2|--input x=: expected|2|no.txt --input x=
2|--quantize-weights 5: expected 8 or 4|1|no.txt --quantize-weights 5
2|--quantize and --quantize-weights: one of them|1|no.txt --quantize d --quantize-weights 8
0|Exit: 0 done||--help
0|Exit: 0 done||no.txt --help
END

# Files that are none, or others than they should be; each is said in one line.
rows << END
1|none.onnx: No such file|1|$T/none.onnx
1|Is a directory|1|$T
1|saved.pt: an archive: .*export.py|1|$T/saved.pt
1|two.npy: an array, which --input takes|1|$T/two.npy
1|planned.npum: a planned model|1|$T/planned.npum
1|w.safetensors: weights, which stand behind the model|1|$T/w.safetensors
1|renamed.bin: weights, which stand behind the model|1|$T/renamed.bin
1|zero.txt: no text, and no ONNX model|1|$T/zero.txt
1|/dev/zero: no text, and no ONNX model|1|/dev/zero
1|npu_run: .*typo.txt:4: value 'X1' is not defined|1|$T/typo.txt
1|weight .w. and maybe others have no data|1|$T/bare.txt
1|npu_run: .*two.npy: byte 0: a header of .* no safetensors file|1|$T/bare.txt $T/two.npy
1|npu_run: /dev/zero: byte 0: a header of 0 bytes|1|$T/bare.txt /dev/zero
1|npu_run: /dev/urandom: byte 0: a header of .* no safetensors file|1|$T/bare.txt /dev/urandom
1|long.safetensors: byte 8: the tensors end at 16 of 17 bytes|1|$T/bare.txt $T/long.safetensors
1|npu_run: .*shape.safetensors: weight 'w' is f32\[4\]|1|$T/bare.txt $T/shape.safetensors
1|many.safetensors: cannot be used, for these 2 reasons|3|$T/bare.txt $T/many.safetensors
0|y : f32\[2\]|1|$T/bare.txt $T/w.safetensors
1|none.npy: No such file|1|$T/tiny.txt --input $T/none.npy
1|tiny.txt: byte 0: this is no .npy file|1|$T/tiny.txt --input $T/tiny.txt
1|cut.npy: byte .*: the data is not of the size|1|$T/tiny.txt --input $T/cut.npy
1|/dev/zero: byte 0: this is no .npy file|1|$T/tiny.txt --input /dev/zero
END

# What is written, and cannot be.
rows << END
1|/none/y.npy: No such file|1|$T/tiny.txt --output /none/y.npy
1|/none/m.npum: No such file|1|$T/tiny.txt --plan-out /none/m.npum
1|/none/m.h: No such file|1|$T/tiny.txt --emit-array /none/m.h
1|/none/m.c: No such file|1|$T/tiny.txt --emit-c /none/m.c
1|/none/t.json: No such file|2|$T/tiny.txt --profile /none/t.json
1|/none/p.html: No such file|2|$T/tiny.txt --report /none/p.html
END
if [ -w /dev/full ]; then
    rows << END
1|/dev/full: No space left|1|$T/tiny.txt --output /dev/full
1|/dev/full: No space left|1|$T/tiny.txt --emit-array /dev/full
1|/dev/full: No space left|2|$T/tiny.txt --report /dev/full
END
    for arguments in --help "$T/tiny.txt" "$T/tiny.txt --text"; do
        "$RUN" $arguments > /dev/full 2> "$T/said.txt"
        [ $? = 1 ] && grep -q "what is printed cannot be written" "$T/said.txt" || fail "npu_run $arguments > /dev/full"
    done
fi

# Names and sizes that the model has not.
rows << END
1|--dim no: the model has no dim of this name, did you mean 'n'?; the model's are n$|1|$T/open.onnx --dim no=2
1|--dim z.0: the model has no dim of this name|1|$T/open.onnx --dim z.0=2
1|sizes that the model leaves open come from --dim|2|$T/sized.onnx
1|sized.onnx: byte 6: Shape '': dim 0 must be known: give 'n' a size|2|$T/sized.onnx
0|y : i64\[1\]||$T/sized.onnx --dim n=3
1|an input that must be known while the model is read comes from --known|2|$T/tiled.onnx
1|an input that must be known while the model is read comes from --known|2|$T/tiled.onnx --input $T/two.npy
1|tiled.onnx: byte 6: Tile '': repeats must be known|2|$T/tiled.onnx
1|has no symbol 'bacth', did you mean 'batch'?|1|$T/open.txt --dim bacth=2
1|symbol batch: 9 is not in 0..8|1|$T/open.txt --dim batch=9
1|run: size 0 of input 'picture' is open: give it by --dim batch=N, or by a file of --input|1|$T/open.txt
1|--plan-out: size 0 of input 'picture' is open: give it by --dim batch=N$|1|$T/open.txt --input $T/open.npy --plan-out $T/o.npum
1|--quantize: size 0 of input 'picture' is open: give it by --dim batch=N|1|$T/open.txt --quantize $T/pictures
0|scores : f32\[1,2\]||$T/open.txt --quantize $T/pictures --dim batch=1
0|--dim batch=0: no output has an element|2|$T/open.txt --dim batch=0
0|2 ops quantise and dequantise, .* --integer turns them|3|$T/bytes.txt --bench 1
0|1 runs: least|2|$T/tiny.txt --bench 1
0|1 op    linear||$T/turned.txt --bench 1 --plan
0|2 ops   t mm||$T/turned.txt --bench 1 --no-optimize --plan
1|--known z=.*: the model has no input of this name|1|$T/open.onnx --known z=$T/two.npy
1|--known .*two.npy: the model has no input of this name|1|$T/open.onnx --known $T/two.npy
1|--known x=.*: for ONNX models, .* here --input gives|1|$T/tiny.txt --known x=$T/two.npy
1|--input pictrue=.*: the model has no such value, did you mean 'picture'?|1|$T/open.txt --input pictrue=$T/two.npy
1|the model has no such value; the model's are x$|1|$T/tiny.txt --input none=$T/two.npy
1|--input x=.*: given twice; the model's are x$|1|$T/tiny.txt --input x=$T/two.npy --input x=$T/two.npy
1|--output none=.*the model's are y$|1|$T/tiny.txt --output none=$T/z.npy
1|--f16-as-f32: for ONNX models|1|$T/tiny.txt --f16-as-f32
1|three.npy: input 0 ('x'): f32\[3\] given, expected f32\[2\]|1|$T/tiny.txt --input $T/three.npy
1|--pass: pass fold-constant: .* did you mean 'fold-constants'?|1|$T/tiny.txt --pass fold-constant
END

# Samples: none, a gap, another folder than meant.
rows << END
1|--quantize .*nowhere: No such file|1|$T/tiny.txt --quantize $T/nowhere
1|--quantize .*two.npy: expected a folder|1|$T/tiny.txt --quantize $T/two.npy
1|no samples there: the first file would be .*empty/x.0.npy|1|$T/tiny.txt --quantize $T/empty
1|gap/x.1.npy is missing, but .*gap/x.2.npy is there|1|$T/tiny.txt --quantize $T/gap
1|late/x.0.npy is missing, but .*late/x.1.npy is there|1|$T/tiny.txt --quantize $T/late
1|half/b.1.npy is missing, but .*half/a.1.npy is there|1|$T/pair.txt --quantize $T/half
1|odd/x.0.npy: Is a directory|1|$T/tiny.txt --quantize $T/odd
1|the model has 0 inputs, expected 1 to|1|$T/none.txt --quantize $T/whole
0|y : f32\[2\]||$T/pair.txt --quantize $T/whole
0|1 ops on 8 bits, 0 in floats||$T/tiny.txt --quantize $T/whole --integer
0|no op stands between dequantize and quantize ops: --quantize DIR|3|$T/tiny.txt --integer
0|_weight_int8pack_mm||$T/tiny.txt --quantize-weights 8 --text
0|1 of 1 ops are quantised: no losses||$T/tiny.txt --quantize-weights 8
0|linalg.matmul_transpose_b||$T/tiny.txt --pass convert-aten-to-linalg --text
0|sim  *1 op||$T/tiny.txt --backend sim --plan
0|y : f32\[2\]|1|$T/tiny.txt --plan-out $T/m.npum --emit-array $T/net.h --emit-c $T/calls.c
END
printf '#include "net.h"\n#include "net.h"\nstatic uint64_t arena[NET_ARENA / 8];\n%s\n' \
    'int main(void) { return net[0] == 0 || (uintptr_t)arena % NET_ALIGNMENT || sizeof arena < NET_ARENA; }' > "$T/array.c"
${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror "$T/array.c" -o "$T/array" > "$T/said.txt" 2>&1 && "$T/array" || fail "net.h as C"
grep -q '^npu_status calls_run' "$T/calls.c" || fail "calls.c: a file has not its own name"

# Pipes are read to their end, where they have one.
timeout 60 "$RUN" <(cat "$T/bare.txt") <(cat "$T/w.safetensors") --input <(cat "$T/two.npy") > "$T/said.txt" 2>&1 || fail "pipes"
timeout 60 "$RUN" "$T/bare.txt" <(cat "$T/w.safetensors" /dev/zero) > "$T/said.txt" 2>&1
[ $? = 1 ] && grep -q "the tensors end at 16 of" "$T/said.txt" || fail "weights without an end"
timeout 60 "$RUN" "$T/tiny.txt" --input <(cat "$T/two.npy" /dev/zero) > "$T/said.txt" 2>&1
[ $? = 1 ] && grep -q "not of the size" "$T/said.txt" || fail "an input without an end"

[ $bad = 0 ] || echo "$bad rows failed"
[ $bad = 0 ]
