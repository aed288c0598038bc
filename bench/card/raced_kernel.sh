#!/usr/bin/env bash
# The raced kernel of a host program on a machine with a CUDA card: runs examples/linear-cuda twice a shape, with a cache of its own. The
# first run races, the second must find its choice. Stops at the first failure and names it.
#
# usage: bench/card/raced_kernel.sh EXAMPLE OUT_DIR
#
# EXAMPLE is the built linear-cuda. BUDGET_S seconds go into each race (default 30); SHAPES are N,K,BATCH (default: three of a language
# model's).
set -euo pipefail

if [ $# -ne 2 ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
mkdir -p "$2"
out=$(realpath "$2")
step=start
trap 'status=$?; [ $status -eq 0 ] || echo "raced_kernel: FAILED at: $step (exit $status)" >&2' EXIT
export FURLONG_CACHE_DIR="$out/cache"
rm -rf "$FURLONG_CACHE_DIR"

for shape in ${SHAPES:-4096,4096,1 14336,4096,8 28672,8192,1}; do
  IFS=, read -r n k batch <<<"$shape"
  step="race $n x $k by $batch"
  echo "== $step"
  "$1" "$n" "$k" "$batch" "${BUDGET_S:-30}" | tee "$out/$n-$k-$batch-first.txt"
  grep -q '^raced after' "$out/$n-$k-$batch-first.txt"
  step="find the choice for $n x $k by $batch"
  echo "== $step"
  "$1" "$n" "$k" "$batch" "${BUDGET_S:-30}" | tee "$out/$n-$k-$batch-second.txt"
  grep -q '^from the cache after' "$out/$n-$k-$batch-second.txt"
done

step=done
echo "raced_kernel: all right, files in $out"
