#!/bin/bash
# The worker on a card: short epochs with every swap timed, the plain rule beside it, then faults in service.
#
# usage: bench/card/worker.sh BUILD OUT [--quick]
#   BUILD: folder with furlong and bench/bench_worker_epochs (build/portable)
#   OUT:   folder for worker.json, worker.txt, worker-faults.txt
set -u
build=$(realpath "${1:?usage: bench/card/worker.sh BUILD OUT [--quick]}")
mkdir -p "${2:?usage: bench/card/worker.sh BUILD OUT [--quick]}" || exit 1
out=$(realpath "$2")
epochs=15 plain=2
[ "${3:-}" = --quick ] && epochs=4 plain=1
cd "$(dirname "$0")/../.." || exit 1
failed=0
echo "== bench worker-epochs ($(date +%T))"
"$build/bench/bench_worker_epochs" --device cuda:0 --epochs $epochs --epoch-s 20 --lead-s 18 --race-budget-s 16 \
  --classic-epochs $plain --classic-epoch-s 50 --json "$out/worker.json" 2>&1 | tee "$out/worker.txt"
[ "${PIPESTATUS[0]}" = 0 ] || failed=1
echo "== faults in service ($(date +%T))"
python3 bench/card/worker.py "$build" 2>&1 | tee "$out/worker-faults.txt"
[ "${PIPESTATUS[0]}" = 0 ] || failed=1
echo "== done ($(date +%T))"
exit $failed
