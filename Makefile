# npu_ir: two headers, nothing to build or install. This file builds examples, tests and benchmarks.
#
#   make CC=clang CFLAGS="-std=c11 -O1 -g" BUILD=build/clang test
#   make test JOBS=8     compiles and runs eight at a time; default: as many as there are processors
#   make test V=1        shows the commands, not only what they make

BUILD = build
CFLAGS = -std=c99 -O2
WARN = -pedantic -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wcast-qual -Wwrite-strings -Wvla -Wdouble-promotion
LIBS = -lm -lpthread
JOBS := $(shell getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)
RUN =
# One short line for each compilation; the files with an implementation in them say that they take their time.
COMPILE = $(if $(V),,@echo "CC $<$(if $(SLOW), (with an implementation: up to half a minute at -O2))";)$(CC) $(CFLAGS) $(WARN)
SLOW = $(shell grep -lE '^\#define NPU_IR_(BACKEND_REF_)?IMPLEMENTATION' $<)
# The make that a user starts compiles JOBS files at a time; those that it starts share them.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS := -j$(JOBS) $(MAKEFLAGS)
endif

HEADERS = npu_ir.h npu_ir_backend_ref.h
TEST_HEADERS = $(HEADERS) tests/npu_test.h $(wildcard tests/rig.h tests/oracle/*.h tests/conformance/*.h examples/sim/*.h examples/report/*.h examples/tiles/*.h examples/files/*.h examples/onnx/*.h)
TESTS = $(patsubst tests/%.c,%,$(wildcard tests/test_*.c))
# The implementations are two objects, which are compiled side by side. Tests of internals include both themselves, or the
# backend's alone.
IMPL = $(BUILD)/npu_impl.o $(BUILD)/npu_ref_impl.o
INNER = $(patsubst tests/%.c,%,$(shell grep -l '^\#define NPU_IR_IMPLEMENTATION' /dev/null tests/test_*.c 2> /dev/null))
INNER_REF = $(patsubst tests/%.c,%,$(shell grep -l '^\#define NPU_IR_BACKEND_REF_IMPLEMENTATION' /dev/null tests/test_*.c 2> /dev/null))
EXAMPLES = $(patsubst examples/%.c,%,$(wildcard examples/*.c))
DIGITS = $(firstword $(filter %digits,$(EXAMPLES)) digits)
VECTORS = tests/vectors
NODES = /usr/share/libonnx-testdata/data/node
WAYS =
OPS =
OP =
MODELS =
CMSIS_NN =
# Looked for only where it is used, the system's first.
PYTHON = $(shell for p in /usr/bin/python3 python3; do $$p -c 'import torch, numpy' 2> /dev/null && echo $$p && break; done)
N = 1000
SEED = 1
FUZZ_LEVEL = -O1
FUZZ_CC = $(shell command -v clang > /dev/null && echo clang || echo $(CC))
FUZZ_FLAGS = $(shell echo 'int main(void) { return 0; }' | $(FUZZ_CC) -fsanitize=address,undefined -x c - -o /dev/null 2> /dev/null \
    && echo -fsanitize=address,undefined -fno-sanitize-recover=all)
# Looked for only where it is used: an OpenCL library to link with.
OPENCL = $(shell echo 'int main(void) { return clFinish(0); }' | $(CC) -include CL/cl.h -x c - -lOpenCL -o /dev/null 2> /dev/null && echo yes)

help: ## this list
	@grep -E '^[a-z-]+( [a-z-]+)*:.*##' Makefile | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

all: $(TESTS:%=$(BUILD)/%) $(EXAMPLES:%=$(BUILD)/examples/%) $(BUILD)/conformance $(BUILD)/ops $(BUILD)/bench ## build everything, run nothing

test: $(TESTS:%=$(BUILD)/%) $(BUILD)/conformance ## all tests and the small conformance vectors; under two minutes
	@BUILD=$(BUILD) RUN="$(RUN)" JOBS=$(JOBS) sh tests/run.sh $(TESTS:%="$(BUILD)/%") \
	    $(if $(filter none,$(WAYS)),,"$(BUILD)/conformance $(if $(filter three,$(WAYS)),,$(if $(filter cpu,$(WAYS)),-c,-a)) -j $(JOBS) -t $(BUILD)/conformance.tsv tests/vectors")

check: ## everything: compilers, languages, sanitizers, fuzzing, other machines, lint; some minutes
	@BUILD=$(BUILD) CC="$(CC)" MAKE="$(MAKE)" JOBS="$(JOBS)" bash tests/check.sh $(STEPS)

run: $(BUILD)/examples/$(DIGITS) $(BUILD)/examples/13_two_devices ## build and run the digit classifier, and a model on two accelerators
	@$(RUN) $(BUILD)/examples/$(DIGITS)
	@$(RUN) $(BUILD)/examples/13_two_devices --numbers

conformance: $(BUILD)/conformance ## run ATen vectors: make conformance VECTORS=dir [OPS="aten.relu.default ..." or OPS=registered] [WAYS=all]
	@$(RUN) $(BUILD)/conformance $(if $(filter all,$(WAYS)),-a) -j $(JOBS) -v -t $(BUILD)/conformance.tsv $(if $(filter registered,$(OPS)),-r,$(OPS:%=-o %)) $(VECTORS)

bench: $(BUILD)/bench ## measure executor, graphs, kernels beside PyTorch's, models: make bench [BENCH="kernels softmax" | peers | models]
	@$(RUN) $(BUILD)/bench $(BENCH)

ops: $(BUILD)/ops ## every op: name, symbol, category, schema, shapes, kernels, traits, dtypes, where it is tested: make ops [OP=conv]
	@$(RUN) $(BUILD)/ops $(OP:%=-o "%") $(wildcard tests/test_*.c)

onnx: $(BUILD)/onnx_nodes ## the ONNX project's node tests through examples/onnx: make onnx [NODES=dir]
	@$(RUN) $(BUILD)/onnx_nodes $(NODES)

firmware: ## planned models on microcontrollers under qemu: sizes, memory, instructions, and the host's bits [CMSIS_NN=folder]
	@CC="$(CC)" CMSIS_NN="$(CMSIS_NN)" bash examples/firmware/firmware.sh $(BUILD)/firmware

zoo: $(BUILD)/zoo ## some 350 small models of as many architectures, exported from PyTorch and run: make zoo [MODELS="resnet18 gpt2"]
	@if [ "$(PYTHON)" ]; then $(PYTHON) -B examples/pytorch/zoo.py $(BUILD)/models $(MODELS) && $(RUN) $(BUILD)/zoo $(BUILD)/models; \
	else echo "SKIP: zoo: no Python with PyTorch (apt-get install python3-torch)"; fi

zoo-list: ## their names
	@if [ "$(PYTHON)" ]; then $(PYTHON) -B examples/pytorch/zoo.py --list; \
	else echo "SKIP: zoo-list: no Python with PyTorch (apt-get install python3-torch)"; fi

ocr: $(BUILD)/examples/16_ocr ## read the text in drawn pictures, and compare with ONNX Runtime; fetches models with npm
	@BUILD=$(BUILD) PYTHON="$(PYTHON)" sh examples/ocr/run.sh $(BUILD)/ocr

sections: ## the outline of both headers: line, lines and functions of each section and of its parts
	@awk -f tests/sections.awk $(HEADERS)

record: $(TESTS:%=$(BUILD)/%) ## write tests/golden anew; review with git diff
	@for test in $(TESTS); do NPU_RECORD=1 $(RUN) $(BUILD)/$$test > /dev/null 2>&1; done; git status --short tests/golden

asan: ## make test with the address and leak sanitizers
	@$(MAKE) BUILD=$(BUILD)/asan CFLAGS="-std=c99 -O1 -g -fno-omit-frame-pointer -fsanitize=address -DNPU_IR_DEBUG" test

ubsan: ## make test with the undefined-behaviour sanitizer
	@$(MAKE) BUILD=$(BUILD)/ubsan CFLAGS="-std=c99 -O1 -g -fsanitize=undefined -fno-sanitize-recover=all" test

tsan: ## make test with the thread sanitizer
	@$(MAKE) BUILD=$(BUILD)/tsan CFLAGS="-std=c99 -O1 -g -fsanitize=thread" test

coverage: ## lines and branches of both headers that make test reaches; the others are listed in build/coverage/missed.txt
	@rm -f $(BUILD)/coverage/*.gcda
	@$(MAKE) BUILD=$(BUILD)/coverage CC=gcc CFLAGS="-std=c99 -O0 --coverage -fprofile-update=prefer-atomic" test
	@ls $(BUILD)/coverage/*.gcda | xargs -n 1 gcov -b -c -t 2> /dev/null | awk -v MISSED=$(BUILD)/coverage/missed.txt -f tests/coverage.awk

fuzz: ## random graphs of every op under sanitizers: make fuzz [N=1000] [SEED=1]
	@$(MAKE) BUILD=$(BUILD)/fuzz CC=$(FUZZ_CC) CFLAGS="-std=c99 $(FUZZ_LEVEL) -gline-tables-only -fno-omit-frame-pointer $(FUZZ_FLAGS)" $(BUILD)/fuzz/fuzz_ops
	@$(RUN) $(BUILD)/fuzz/fuzz_ops -n $(N) -s $(SEED) $$(cat tests/fuzz/seeds.txt)

clean: ## remove what was built
	rm -rf $(BUILD)

$(BUILD)/npu_impl.o: npu_ir.h
$(BUILD)/npu_ref_impl.o: $(HEADERS)
$(IMPL): $(BUILD)/%.o: tests/%.c
	@mkdir -p $(@D)
	$(COMPILE) -c $< -o $@

# Its basic blocks are counted.
COUNTED = $(shell echo 'int x;' | $(CC) -fsanitize-coverage=trace-pc -x c -c - -o /dev/null 2> /dev/null \
    && echo -fsanitize-coverage=trace-pc)
$(BUILD)/npu_steps.o: tests/npu_impl.c npu_ir.h
	@mkdir -p $(@D)
	$(COMPILE) -O0 $(COUNTED) -c $< -o $@
$(BUILD)/test_scale: tests/test_scale.c $(BUILD)/npu_steps.o $(BUILD)/npu_ref_impl.o $(TEST_HEADERS)
	$(COMPILE) $< $(BUILD)/npu_steps.o $(BUILD)/npu_ref_impl.o $(LIBS) -o $@

OUTER = $(filter-out $(INNER) $(INNER_REF) test_scale,$(TESTS))
$(OUTER:%=$(BUILD)/%): $(BUILD)/%: tests/%.c $(IMPL) $(TEST_HEADERS)
	$(COMPILE) $< $(IMPL) $(LIBS) -o $@

$(INNER:%=$(BUILD)/%): $(BUILD)/%: tests/%.c $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(COMPILE) -I. $< $(LIBS) -o $@

$(INNER_REF:%=$(BUILD)/%): $(BUILD)/%: tests/%.c $(BUILD)/npu_impl.o $(TEST_HEADERS)
	$(COMPILE) $< $(BUILD)/npu_impl.o $(LIBS) -o $@

# Binaries of another version: they see tests/compile/frozen_0_2.h, never npu_ir.h.
FROZEN = tests/compile/backend_0_2.c tests/compile/backend_next.c
$(BUILD)/test_frozen: $(FROZEN) tests/compile/frozen_0_2.h
$(BUILD)/test_frozen: LIBS += $(FROZEN)
# Models as C calls, each with an implementation of its own.
$(BUILD)/test_emitted: tests/golden/planned.c tests/golden/planned_flow.c
$(BUILD)/test_emitted: LIBS += -I. tests/golden/planned.c tests/golden/planned_flow.c
$(BUILD)/test_fuzz: $(wildcard tests/fuzz/*.[ch] tests/fuzz/*.txt)

$(BUILD)/conformance: tests/conformance/conformance.c tests/conformance/cases.h tests/conformance/accelerator.h $(TEST_HEADERS) $(IMPL)
	$(COMPILE) $< $(IMPL) $(LIBS) -o $@

$(BUILD)/conformance_opencl: tests/conformance/conformance.c tests/conformance/cases.h tests/conformance/npu_backend_test.h tests/conformance/variants.h tests/conformance/accelerator.h examples/opencl/npu_opencl.h $(IMPL)
	$(COMPILE) -DHAVE_OPENCL -I. $< $(IMPL) -lOpenCL $(LIBS) -o $@

$(BUILD)/ops: tests/ops.c tests/conformance/cases.h $(IMPL)
	$(COMPILE) $< $(IMPL) $(LIBS) -o $@

$(BUILD)/zoo: tests/zoo.c $(wildcard examples/files/*.h) examples/sim/npu_sim.h $(IMPL)
	$(COMPILE) $< $(IMPL) $(LIBS) -o $@

$(BUILD)/onnx_nodes: tests/onnx_nodes.c examples/onnx/npu_onnx.h $(IMPL)
	$(COMPILE) $< $(IMPL) $(LIBS) -o $@

$(BUILD)/bench: tests/bench.c tests/bench_kernels.h tests/bench_passes.h tests/bench_peers.h examples/onnx/npu_onnx.h $(IMPL)
	$(COMPILE) -I. $< $(IMPL) $(LIBS) -ldl -o $@

$(BUILD)/fuzz_ops: $(wildcard tests/fuzz/*.[ch]) tests/conformance/cases.h examples/sim/npu_sim.h $(IMPL)
	$(COMPILE) tests/fuzz/fuzz_ops.c $(IMPL) $(LIBS) -o $@

$(EXAMPLES:%=$(BUILD)/examples/%): $(BUILD)/examples/%: examples/%.c $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(COMPILE) -I. $< $(LIBS) -o $@

$(BUILD)/examples/11_opencl: examples/opencl/npu_opencl.h
$(BUILD)/examples/11_opencl: LIBS += $(if $(OPENCL),-DHAVE_OPENCL -lOpenCL)

.PHONY: help all test check run conformance bench ops onnx ocr firmware zoo zoo-list sections record asan ubsan tsan coverage fuzz clean
.DEFAULT_GOAL = help
