# Couplet's everyday commands. The build itself is CMake's: see CMakeLists.txt.
SHELL := /bin/sh
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
# A test that uses two threads is rarely alone: as many tests at a time as there are processors.
CTEST = ctest --output-on-failure -j $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help setup build demo check check-long sanitize isa arm64 format clean install

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install the system packages that are missing (names and size first)
	@scripts/setup.sh

build: ## build the command: build/couplet
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS)
	@cmake --build $(BUILD) -j $(JOBS) $(if $(TARGET),--target $(TARGET))

demo: ## set up, build, train on the embedded sample and translate (a few minutes)
	@scripts/demo.sh

# The short suite under the address and undefined-behaviour sanitizers, then the whole suite as users run it.
check: setup ## set up, build and run the tests
	@cmake -S . -B $(BUILD)/sanitize -DCPL_SANITIZE=address,undefined $(CMAKE_FLAGS)
	@cmake --build $(BUILD)/sanitize -j $(JOBS)
	@$(CTEST) --test-dir $(BUILD)/sanitize -LE 'slow|long'
	@$(MAKE) --no-print-directory build
	@$(CTEST) --test-dir $(BUILD) -LE long

check-long: setup ## everything: long tests, both sanitizers, and clang where it is installed
	@$(MAKE) --no-print-directory sanitize
	@if command -v clang >/dev/null; then \
	    CC=clang cmake -S . -B $(BUILD)/clang $(CMAKE_FLAGS) && \
	    cmake --build $(BUILD)/clang -j $(JOBS) && $(CTEST) --test-dir $(BUILD)/clang -LE long; fi
	@$(MAKE) --no-print-directory build
	@$(CTEST) --test-dir $(BUILD)

sanitize: ## the suite under address, undefined-behaviour and thread sanitizers
	@for kind in address,undefined thread; do \
	    folder=$(BUILD)/sanitize; [ $$kind = thread ] && folder=$(BUILD)/sanitize-thread; \
	    cmake -S . -B $$folder -DCPL_SANITIZE=$$kind $(CMAKE_FLAGS) && \
	    cmake --build $$folder -j $(JOBS) && $(CTEST) --test-dir $$folder -LE long || exit 1; done

isa: build ## the short suite with each instruction set that this processor has, on one processor and on all
	@scripts/isa.sh $(BUILD)

arm64: ## build for 64-bit ARM and run the short suite under an emulator
	@scripts/arm64.sh $(BUILD)/arm64

format: ## format the C sources in place (needs clang-format)
	@find include src cli tests bench examples -name '*.[ch]' -exec clang-format -i {} +

clean: ## remove the build folder
	@rm -rf $(BUILD)

install: build ## install to PREFIX (default /usr/local); DESTDIR is honoured
	@cmake --install $(BUILD) --prefix $(PREFIX)
