#!/usr/bin/env bash
# scripts/cuda-kit, and scripts/cuda-check --built as far as it goes without a device.
# Usage: check_kit.sh PROGRAM MODULE   (any module will do: nothing of it is run)
set -euo pipefail
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# refused EXIT_CODE TEXT COMMAND…: what it says on standard error is one line that holds the text.
refused() {
  local expected=$1 text=$2 code=0
  shift 2
  "$@" >"$folder/said" 2>"$folder/complaint" || code=$?
  if [ "$code" -ne "$expected" ] || ! grep -qF -- "$text" "$folder/complaint"; then
    echo "check_kit: exit code $code of: $*" >&2
    cat "$folder/complaint" >&2
    exit 1
  fi
}

refused 1 "has no attnscope: scripts/build cuda makes it" "$scripts/cuda-kit" "$folder/none" "$folder/kit"
mkdir -p "$folder/build/bin" "$folder/other"
cp "$1" "$folder/build/bin/attnscope"
refused 1 "has no attnscope_cuda.so" "$scripts/cuda-kit" "$folder/build" "$folder/kit"
cp "$2" "$folder/build/bin/attnscope_cuda.so"
refused 1 "is there already and is no kit" "$scripts/cuda-kit" "$folder/build" "$folder/other"
# Twice: a kit is replaced.
for _ in 1 2; do
  refused 0 "without test_kernels" "$scripts/cuda-kit" "$folder/build" "$folder/kit"
done
grep -qF "$("$1" --version)" "$folder/kit/kit.txt"
env -i LD_LIBRARY_PATH="$folder/kit/lib" "$folder/kit/bin/attnscope" --version >/dev/null
if compgen -G "$folder/kit/lib/libc.so*" >/dev/null || ! compgen -G "$folder/kit/lib/libpng*" >/dev/null; then
  echo "check_kit: wrong libraries: $(ls "$folder/kit/lib")" >&2
  exit 1
fi
[ "$(stat -c %s "$folder/kit/bin/attnscope")" -le "$(stat -c %s "$1")" ]

refused 1 "there is no part fast: start suite" "$scripts/cuda-check" --built "$folder/kit" fast
refused 1 "usage: scripts/cuda-check --built FOLDER PART" "$scripts/cuda-check" --built "$folder/kit"
refused 1 "is no kit: scripts/cuda-kit makes one" "$scripts/cuda-check" --built "$folder/other" start
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
  refused 1 "there is no CUDA device on this machine" "$scripts/cuda-check" --built "$folder/kit" start
fi
