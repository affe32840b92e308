#!/bin/sh
# arm64.sh [BUILD]: cross-compiles for 64-bit ARM and runs the short suite under an emulator, about forty times slower
# than the real thing. As root on Debian the packages that are missing are installed; else they are named.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/arm64}
packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static libcmocka-dev:arm64 libjansson-dev:arm64
libyaml-dev:arm64 libutf8proc-dev:arm64 zlib1g-dev:arm64"

missing=
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ] && [ "$(id -u)" -ne 0 ]; then
    echo "arm64: not root: install first (dpkg --add-architecture arm64; apt-get update):$missing" >&2
    exit 1
elif [ -n "$missing" ]; then
    echo "arm64: packages to install:$missing"
    dpkg --add-architecture arm64
    apt-get -qq update
    # shellcheck disable=SC2086  # the list is split into words on purpose
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

cmake -S . -B "$build" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake"
cmake --build "$build" -j "${JOBS:-$(nproc)}"
# The repository's own checks ran natively, and an emulator's clock and memory say nothing about the real ones.
ctest --test-dir "$build" --output-on-failure -j "${JOBS:-$(nproc)}" -LE 'slow|long' \
    -E '^(structure_|train_memory|case_J02_|api_bench)' --timeout 1800
