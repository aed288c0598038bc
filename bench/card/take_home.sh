#!/usr/bin/env bash
# Takes choices home on a machine with a CUDA card: races the example programs, exports a header and a tuning file, compiles and runs
# examples/take-home-cuda with the header, and runs examples/select-cuda with the tuning. Stops at the first failure and names it.
#
# usage: bench/card/take_home.sh FURLONG_BINARY OUT_DIR
#
# Needs bash, nvcc (in PATH, or of /usr/local/cuda) and python3. The select example is taken from $SELECT_CUDA, else from beside
# FURLONG_BINARY. BUDGET_S seconds go into each race (default 60); DEVICE is the card (default cuda:0).
set -euo pipefail

if [ $# -ne 2 ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
furlong=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$(realpath "$0")")/../.."
select_cuda=${SELECT_CUDA:-$(dirname "$furlong")/select-cuda}
device=${DEVICE:-cuda:0}
step=start
trap 'status=$?; [ $status -eq 0 ] || echo "take_home: FAILED at: $step (exit $status)" >&2' EXIT

begin() {
  step=$1
  echo "== $step"
}

begin "look for nvcc and the select example"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || { echo "no nvcc in PATH and none at $nvcc" >&2; exit 1; }
[ -x "$select_cuda" ] || { echo "no select example at $select_cuda: set SELECT_CUDA" >&2; exit 1; }

# Problems of a card's size: the files' own fit a CPU.
sizes() {
  case "$1" in
    reduction) echo "--sizes n=1048576,16777216,268435456" ;;
    histogram) echo "--sizes n=1048576,268435456" ;;
    transpose) echo "--problem rows=8192,columns=8192" ;;
    convolution) echo "--problem width=8192,height=8192" ;;
  esac
}

races=()
for program in examples/*/*.toml; do
  name=$(basename "$program" .toml)
  begin "race $name"
  # shellcheck disable=SC2046
  "$furlong" race "$program" --device "$device" $(sizes "$name") --race-budget-s "${BUDGET_S:-60}" --quiet \
    --json "$out/$name.json" | tee "$out/$name.txt"
  races+=("$out/$name.json")
done

begin "export"
"$furlong" export "$out/reduction.json" --header "$out/reduction_choices.h"
"$furlong" export "${races[@]}" --tuning "$out/tuning.json"

begin "find the largest size's row in the header"
read -r choice n < <(python3 - "$out/reduction_choices.h" <<'PYTHON'
import re, sys
rows = re.findall(r"#define (REDUCTION_\w+_N(\d+))_BLOCK ", open(sys.argv[1]).read())
prefix, size = max(rows, key=lambda row: int(row[1]))
print(prefix, size)
PYTHON
)
echo "$choice"

begin "compile examples/take-home-cuda"
"$nvcc" -O3 -arch="${NVCC_ARCH:-native}" -I "$out" -I examples/reduction -DCHOICE="$choice" examples/take-home-cuda/main.cu \
  -o "$out/take_home"

begin "run it"
"$out/take_home" "$n" | tee "$out/take_home.txt"

begin "run examples/select-cuda at a raced size, between two, and beyond"
for size in "$n" 4000000 300000001; do
  "$select_cuda" examples/reduction/reduction.toml "$out/tuning.json" "$size" | tee "$out/select-$size.txt"
  if grep -q '^no CUDA card' "$out/select-$size.txt"; then
    echo "the select example found no card" >&2
    exit 1
  fi
done
grep -q 'nothing to lose by what was measured' "$out/select-$n.txt" || { echo "a raced size was not exact" >&2; exit 1; }

step=done
echo "take_home: all right, files in $out"
