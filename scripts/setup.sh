#!/bin/sh
# Installs the system packages that Couplet is built with, or says what they are called.
#
# On Debian and Ubuntu it installs what is missing: names and download size first, sudo only when not root.
# Elsewhere it prints the names for dnf, pacman and brew and goes on if a compiler and CMake are there.
# When nothing is missing it does nothing, and in particular asks no package server.
set -eu
cd "$(dirname "$0")/.."
LC_ALL=C
export LC_ALL

have() { command -v "$1" >/dev/null 2>&1; }
have_compiler() { have cc || have gcc || have clang; }
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# Goes on with a warning if the essentials are there, and stops if they are not.
go_on() {
    if have_compiler && have cmake; then
        echo "setup: going on without: $1"
        exit 0
    fi
    echo "setup: a C compiler and CMake 3.25 are needed to build; $1" >&2
    exit 1
}

other_system() {
    cat <<END
setup: this is neither Debian nor Ubuntu; the packages are called
  dnf install    gcc cmake make pkgconf libcmocka-devel jansson-devel utf8proc-devel libyaml-devel zlib-devel hdf5-devel gcc-c++ sentencepiece-devel
  pacman -S      gcc cmake make pkgconf cmocka jansson libutf8proc libyaml zlib hdf5 sentencepiece
  brew install   cmake make pkgconf cmocka jansson utf8proc libyaml zlib hdf5 sentencepiece
END
    go_on "optional libraries that are not installed"
}

have apt-get && have dpkg-query || other_system

missing=
have_compiler || missing="$missing gcc"
have c++ || have g++ || have clang++ || missing="$missing g++"
have cmake || missing="$missing cmake"
have make || missing="$missing make"
have pkg-config || missing="$missing pkg-config"
for package in libc6-dev libcmocka-dev libjansson-dev libutf8proc-dev libyaml-dev zlib1g-dev libhdf5-dev \
    libsentencepiece-dev; do
    installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "setup: packages to install:$missing"
sudo=
if [ "$(id -u)" -ne 0 ]; then
    have sudo || go_on "$missing (not root, and there is no sudo)"
    sudo=sudo
fi

# A fresh machine has no package lists; an old list may name versions that are gone, so they are renewed.
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq update || go_on "$missing (apt-get update failed)"
# shellcheck disable=SC2086  # the list is split into words on purpose
apt-get install --assume-no --no-install-recommends $missing 2>/dev/null |
    sed -n 's/^Need to get/setup: to download:/p; s/^After this operation, /setup: on disk: /p' || true
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    go_on "$missing (apt-get install failed)"
echo "setup: done"
