#!/usr/bin/env bash
# Proves the CUDA back end on one card: conformance, compute-sanitizer, planted faults, compile times, the lottery
# against the ceiling of random loads, races of copies, and the race against the plain rule. Needs bash, python3
# and, for the sanitizer, the CUDA toolkit; the programs come built (./dev build portable).
#
#   bench/card/prove.sh FURLONG_BIN_DIR OUT_DIR [--only a,b] [--device D] [--limit-s S] [--quick] [BENCH OPTIONS]
#
# Exit 0: all sections ok; 1: one could not run; 2: usage; 3: one missed a bound.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec env PYTHONUNBUFFERED=1 python3 "$here/prove.py" "$@"
