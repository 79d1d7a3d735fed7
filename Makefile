# Everything a person needs; the build itself is described in meson.build.
# `make` builds, `make run` starts, `make test` proves, `make help` lists the rest.

BUILD ?= build
# The same programs with fail points (src/base/fail_point.h), for tests/e2e/fail_points.test.mjs alone.
FAIL_BUILD = $(BUILD)-fail
export DEBIAN_FRONTEND = noninteractive

.PHONY: all fail-build run test test-full check unit e2e rootless vm chaos bench asan tsan fuzz lint lint-full fmt install clean deps web screenshots help

all: $(BUILD)/build.ninja  ## build the four programs into build/
	@ninja -C $(BUILD) sandlotd sandlot sandlot-keeper sandlot-agent

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) $(MESON_FLAGS) >/dev/null

# And the daemon with the driver of the unit tests, for tests/e2e/driver.test.mjs.
fail-build: $(FAIL_BUILD)/build.ninja $(BUILD)/build.ninja
	@ninja -C $(FAIL_BUILD) sandlotd sandlot-keeper sandlot-agent
	@ninja -C $(BUILD) tests/unit/sandlotd-fake

$(FAIL_BUILD)/build.ninja: | deps
	@meson setup $(FAIL_BUILD) $(MESON_FLAGS) -Dfail_points=true -Doptimization=1 >/dev/null

screenshots: all  ## pictures of the console into docs/pictures
	@scripts/deps.sh test
	@scripts/user.sh
	@scripts/test_packages.sh
	@BUILD_DIR=$(BUILD) node scripts/screenshots.mjs

web: deps  ## build the console again, also if npm could not be reached before
	@rm -f web/.pack/failed web/.pack/stamp
	@$(MAKE) --no-print-directory all

deps:  ## install the Debian packages that building needs
	@scripts/deps.sh build

run: all  ## build and start the daemon in the foreground
	@scripts/user.sh
	@exec $(BUILD)/sandlotd

test: all fail-build  ## install what tests need and run all of them
	@scripts/deps.sh test
	@scripts/user.sh
	@scripts/user.sh rootless
	@scripts/test.sh $(BUILD)

test-full: export E2E_FULL = 1
test-full: test  ## the same at full size: takes longer, run before a release

check: all  ## the inner loop: unit tests, layers, format, the quick end-to-end files
	@scripts/deps.sh test
	@scripts/user.sh
	@scripts/test.sh $(BUILD) quick

unit: all  ## the unit tests alone
	@scripts/deps.sh test
	@meson test -C $(BUILD) --print-errorlogs

e2e: all fail-build  ## the end-to-end tests alone
	@scripts/deps.sh test
	@scripts/user.sh
	@BUILD_DIR=$(BUILD) scripts/e2e.sh

rootless: all fail-build  ## the end-to-end tests with daemons of an ordinary user
	@scripts/deps.sh test
	@scripts/user.sh rootless
	@BUILD_DIR=$(BUILD) E2E_USER=sandlot-rootless scripts/e2e.sh
	@BUILD_DIR=$(BUILD) E2E_USER=sandlot-rootless E2E_DELEGATED=1 scripts/e2e.sh

vm: all fail-build  ## end-to-end tests in a virtual machine with Debian's kernel; TESTS names files
	@scripts/deps.sh vm
	@scripts/vm.sh $(TESTS)

chaos: all  ## two minutes of random operations under kills, stops and a full disk
	@scripts/deps.sh test
	@scripts/user.sh
	@BUILD_DIR=$(BUILD) scripts/chaos.sh

bench: all  ## measure beside Docker, crun and bubblewrap
	@scripts/deps.sh bench
	@scripts/user.sh
	@bench/run.sh $(BUILD)

asan:  ## unit and end-to-end tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory test BUILD=build-asan MESON_FLAGS="-Db_sanitize=address,undefined -Db_lundef=false"

tsan:  ## unit and end-to-end tests under ThreadSanitizer
	@$(MAKE) --no-print-directory test BUILD=build-tsan MESON_FLAGS="-Db_sanitize=thread -Db_lundef=false"

fuzz:  ## 60 seconds of each fuzz harness
	@scripts/deps.sh fuzz
	@scripts/fuzz.sh

lint: all  ## format, layers, and what clang says at once; part of `make test`
	@scripts/deps.sh lint
	@scripts/lint.sh $(BUILD)

lint-full: all  ## the same with a build by clang and its static analyzer; takes long
	@scripts/deps.sh lint
	@scripts/lint.sh $(BUILD) full

fmt:  ## format all C sources
	@scripts/deps.sh lint
	@git ls-files -z '*.c' '*.h' | xargs -0 clang-format -i

install: all  ## programs, systemd unit, man pages, shell completion
	@ninja -C $(BUILD) completions
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild
	@[ -n "$(DESTDIR)" ] || scripts/user.sh

clean:  ## remove what was built
	rm -rf build build-fail build-asan build-asan-fail build-tsan build-tsan-fail build-fuzz

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
