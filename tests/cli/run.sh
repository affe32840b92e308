#!/bin/sh
# run.sh COUPLET [NAME]: runs the cases in tests/cli/cases, or one of them.
#
# A case is NAME.sh, run in an empty folder with `couplet` on the PATH, and NAME.out, all that it must print, stdout and
# stderr together. UPDATE=1 writes NAME.out instead of comparing: read the difference before you keep it.
set -eu
[ $# -ge 1 ] || { echo "usage: run.sh COUPLET [NAME]" >&2; exit 2; }
cases=$(cd "$(dirname "$0")" && pwd)/cases
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
folder=$(mktemp -d "${TMPDIR:-/tmp}/couplet-cli.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
ln -s "$binary" "$folder/bin/couplet"
PATH=$folder/bin:$PATH
LC_ALL=C.UTF-8
export PATH LC_ALL
unset NO_COLOR

failed=0
count=0
for script in "$cases"/${2:-*}.sh; do
    name=$(basename "$script" .sh)
    mkdir "$folder/$name"
    (cd "$folder/$name" && sh "$script") >"$folder/$name.out" 2>&1 </dev/null || echo "case ended with $?" >>"$folder/$name.out"
    count=$((count + 1))
    if [ -n "${UPDATE-}" ]; then
        cp "$folder/$name.out" "$cases/$name.out"
    elif ! diff -u "$cases/$name.out" "$folder/$name.out"; then
        echo "FAILED: $name"
        failed=$((failed + 1))
    fi
done
echo "$count cases, $failed failed"
[ "$failed" -eq 0 ]
