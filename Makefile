# These are the targets that a person or CI types; the build itself is CMake's (CMakeLists.txt, CMakePresets.json).
#
#   make test        builds every preset and runs its tests but the long ones
#   make test-long   the tests labelled `long`
#   make demo        a job loses nodes and goes on
#   make demo-transparent  LAMMPS, which knows nothing of checkpoints, does the same
#   make demo-study  a small one of each published study, in minutes, into build/studies
#   make bench       measures, into bench/results.json
#   make install     PREFIX=$HOME/diapause, say; /usr/local by default. CMAKE_FLAGS for more options
#   make packages    Debian packages, into build/packages
#   make format      clang-format on all sources
#   make clean
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := test

JOBS ?= $(shell nproc)
# Tests wait for one another's ranks and for time limits as much as they compute.
TEST_JOBS ?= $(shell echo $$((2 * $(JOBS))))
# Under the sanitizers there are no tests of several processes, which need the processor in time.
TEST_JOBS_asan ?= $(shell echo $$((3 * $(JOBS))))
TEST_JOBS_tsan ?= $(TEST_JOBS_asan)
# One failure in thousands of starts of an MPI, on a machine with other work, must not hide the result of all other tests. Which
# tests needed their second try is said at the end.
REPEAT ?= until-pass:2
PREFIX ?= /usr/local
# The first preset runs everything; the others leave out the tests that ask the sources and not the build (label `tidy`) or
# Diapause and not the MPI (label `once`).
PRESETS ?= openmpi mpich asan tsan

# Under the sanitizers, the tests of the engine run with its work in a thread; of those that do it in the program's calls
# only what has no twin there.
IN_THREAD := engine_thread\.|engine\.([A-Za-z]+/)?(Accounting|Async|BehindTheProgram|Capture|GlobalTrouble|Governing|PowerOfANode|SetAside)\.
# ThreadSanitizer is for code that has threads. What a restart finds damaged is read by one thread, the losses that the matrix
# goes through are the same for it on disks and in memory, and thousands of regions and pieces are as few of them.
TARGETS_tsan := engine_test sys_test
SELECT_tsan := --tests-regex '^($(IN_THREAD)|sys\.)'
EXCLUDE_tsan := --exclude-regex 'CrashPoint|CutShort|Integrity|Shortage|RepairSweep|EveryBit|OfACopyIsGivenInFull|LossMatrix.*local|ManyRegions|InManyPieces'
# AddressSanitizer is for code that reads files and moves memory. It need not see every fault that a disk may have, nor the statistics
# of meters.
TARGETS_asan := $(patsubst %,%_test,format config codec store capture sys redundancy energy process engine) support_test conformance_test capture_conformance_test meter_test \
  golden_test fuzz_image_header fuzz_image_index fuzz_manifest fuzz_config fuzz_block fuzz_payload fuzz_identity fuzz_starts fuzz_processes
SELECT_asan := --tests-regex '^((format|config|codec|store|capture|sys|redundancy|energy|process|support|conformance|golden|fuzz)\.|$(IN_THREAD)|engine\.Integrity|engine\..*StoppingAt.*/OneProcessL1)'
EXCLUDE_asan := --exclude-regex 'codec.exchange|TierPowerLoss|energy.Uncertainty|engine_thread.*(CrashPoint|CutShort|Integrity|Shortage|RepairSweep|OfACopyIsGivenInFull)'

# Containers run as root, and more ranks than cores are normal in tests: Open MPI refuses both unless told.
export OMPI_ALLOW_RUN_AS_ROOT = 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
export OMPI_MCA_rmaps_base_oversubscribe = 1
export CLICOLOR_FORCE =

PACKAGES := $(addprefix packages-,build test bench cluster demo programs fabric study)
BUILDS := $(addprefix build-,openmpi mpich asan tsan)
TESTS := $(addprefix test-,openmpi mpich asan tsan)
.PHONY: test test-long demo demo-study demo-transparent bench install packages format clean $(PACKAGES) $(BUILDS) $(TESTS)

$(PACKAGES): packages-%:
	@tools/install-packages $*

# Nothing runs the programs of bench/ here, but they have to build. Another make may build the same preset at the same time.
$(BUILDS): build-%: packages-test
	mkdir -p build && exec 9> build/$*.lock && flock 9 && \
	cmake --preset $* -DDIAPAUSE_BUILD_TESTS=ON -DDIAPAUSE_BUILD_BENCH=$(if $(filter openmpi,$*),ON,OFF) && \
	cmake --build build/$* --parallel $(JOBS) $(addprefix --target ,$(TARGETS_$*))

# Tests of several processes leave the processors idle for a quarter of their time, in which the other presets are built.
OTHERS := $(wordlist 2,$(words $(PRESETS)),$(PRESETS))
BUILD_OTHERS = nice -n 19 $(MAKE) --no-print-directory $(OTHERS:%=build-%) PRESETS= > build/others.log 2>&1 &

$(TESTS): test-%: build-%
	$(if $(filter $(firstword $(PRESETS)),$*),$(if $(OTHERS),$(BUILD_OTHERS)))
	ctest --test-dir build/$* --parallel $(or $(TEST_JOBS_$*),$(TEST_JOBS)) --repeat $(REPEAT) --output-on-failure --no-tests=error --timeout 900 \
	  $(SELECT_$*) $(EXCLUDE_$*) --label-exclude '$(if $(filter $(firstword $(PRESETS)),$*),^long$$,^(long|tidy|once)$$)' | tee build/$*/ctest.log

# Ends with the summary of every run above.
test: $(PRESETS:%=test-%)
	@for preset in $(PRESETS); do echo "== $$preset"; sed -n '/tests passed/,$$p' build/$$preset/ctest.log; \
	  grep -E '\*\*\*(Failed|Timeout|Exception)' build/$$preset/ctest.log | sed 's/^/failed at first: /' || true; done

# The codec sz3 is tested here: it takes a compiler most of a minute.
test-long: build-openmpi build-mpich build-asan packages-bench packages-programs packages-fabric
	tools/fetch-sz3
	cmake --preset openmpi -B build/sz3-test -DDIAPAUSE_BUILD_TESTS=ON -DDIAPAUSE_WITH_SZ3=ON
	cmake --build build/sz3-test --parallel $(JOBS) --target codec_test
	DIAPAUSE_LONG_TESTS=1 ctest --test-dir build/sz3-test --output-on-failure --no-tests=error --timeout 3600 --tests-regex '^codec'
	for preset in openmpi mpich asan; do \
	  ctest --test-dir build/$$preset --output-on-failure --no-tests=ignore --timeout 3600 --label-regex '^long$$'; \
	done

demo: packages-build
	cmake --preset openmpi -B build/demo -DDIAPAUSE_BUILD_TESTS=OFF
	cmake --build build/demo --parallel $(JOBS)
	tools/demo --build build/demo

demo-study: packages-study
	cmake --preset openmpi -B build/demo -DDIAPAUSE_BUILD_TESTS=OFF
	cmake --build build/demo --parallel $(JOBS)
	tools/demo-study --build build/demo --output build/studies

demo-transparent: packages-demo
	cmake --preset openmpi -B build/demo -DDIAPAUSE_BUILD_TESTS=OFF
	cmake --build build/demo --parallel $(JOBS) --target diapause_cli
	tools/demo-transparent --build build/demo

bench: packages-bench
	bench/run

# This needs no root where PREFIX needs none, and installs no packages. The MPI is the one whose mpicc comes first in PATH.
install:
	cmake -S . -B build/install -DDIAPAUSE_BUILD_TESTS=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS)
	cmake --build build/install --parallel $(JOBS)
	cmake --install build/install

# The packages are for the Open MPI of this Debian. For another MPI, call cmake and cpack by hand.
packages: packages-build
	cmake --preset openmpi -B build/packages -DDIAPAUSE_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr
	cmake --build build/packages --parallel $(JOBS)
	cd build/packages && cpack -G DEB

format:
	python3 tests/tidy/tidy.py format --fix

clean:
	rm -rf build
