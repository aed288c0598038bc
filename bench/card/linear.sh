#!/bin/bash
# The linear-algebra programs on a card: the bench, then races of every knob over shapes where it should win and where it
# should lose, and the audit of their records.
#
# usage: bench/card/linear.sh BUILD OUT [--quick]
#   BUILD: folder with furlong and bench/bench_linear (build/portable)
#   OUT:   folder for linear.json, linear.txt, records.jsonl, audit-*.txt
set -u
build=$(realpath "${1:?usage: bench/card/linear.sh BUILD OUT [--quick]}")
mkdir -p "${2:?usage: bench/card/linear.sh BUILD OUT [--quick]}" || exit 1
out=$(realpath "$2")
rm -f "$out/records.jsonl" "$out/races.txt"  # of another run, maybe of other programs
budget=15
[ "${3:-}" = --quick ] && budget=3
cd "$(dirname "$0")/../.." || exit 1
failed=0
step() {
  echo "== $1 ($(date +%T))"
}

step "bench linear"
"$build/bench/bench_linear" --json "$out/linear.json" 2>&1 | tee "$out/linear.txt"
[ "${PIPESTATUS[0]}" = 0 ] || failed=1

# Twice, with orders of their own: a regime counts for the audit from two races on.
race() {
  race_once 1 "$@"
  race_once 2 "$@"
}

race_once() {
  local seed=$1 name=$2 problem=$3 variants=$4
  shift 4
  "$build/furlong" race "programs/linear/$name.toml" --device cuda:0 --problem "$problem" --variants "$variants" \
    --race-budget-s "$budget" --seed "$seed" --record "$out/records.jsonl" "$@" >"$out/race.txt" 2>&1 || {
    failed=1
    tail -5 "$out/race.txt"
  }
  cat "$out/race.txt" >>"$out/races.txt"
  [ "$seed" = 1 ] && grep -hE '^(.*beats base|dead heat|base stays|out of)' "$out/race.txt" | head -1 | sed "s/^/$name $problem: /"
  return 0
}

step "races of the matrix-vector product"
vector=catalogue,x8,x8-r2,f64,imma-x8,w4-r2-u2
for problem in n=4096,k=256 n=65536,k=128 n=262144,k=64; do
  race gemv "$problem" "$vector" --allow-lossy activations
done
for problem in n=28672,k=8192 n=128256,k=4096 n=14336,k=4096 n=4096,k=4096 n=32,k=65536 n=256,k=16384 \
  n=28672,k=8192,batch=8 n=4096,k=4096,batch=8 n=14336,k=4096,batch=4 n=256,k=16384,batch=8; do
  race gemv "$problem" "$vector,r2-s4" --allow-lossy activations
done

step "races of the matrix product"
units='base,dp4a'
for precision in imma bf16 fp16; do
  for kernel in '' -t64 -st3 -t64-st3 -basic -group -group-t256; do units="$units,$precision$kernel"; done
done
for side in 64 256 1024 4096; do
  race gemm "m=$side,n=$side,k=$side" "$units"
done
race gemm m=128,n=128,k=8192 "$units"
race gemm m=4096,n=4096,k=128 "$units"
for problem in m=256,n=256,k=256 m=1024,n=1024,k=1024 m=4096,n=4096,k=4096 m=4096,n=4096,k=128; do
  race gemm_real "$problem" catalogue --allow-lossy precision
done

step "audit"
for name in gemv gemm gemm_real; do
  "$build/furlong" knobs audit "$out/records.jsonl" --program "programs/linear/$name.toml" --strict \
    >"$out/audit-$name.txt" 2>&1 || {
    echo "the audit of $name refuses the table or a kernel ($?):"
    failed=1
    grep -A20 -E '^(The records contradict|Variants that are wrong)' "$out/audit-$name.txt"
  }
done
exit $failed
