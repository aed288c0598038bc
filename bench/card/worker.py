#!/usr/bin/env python3
"""Faults of a worker's kernels on a card: how long until work goes on, and whether each nonce is done once.

usage: bench/card/worker.py BUILD [--device D]      (BUILD: folder with furlong)

Each fault is planted in one variant's text and shows on some nonces only, so that the variant passes its trial and its
gates, and fails in service. The finds are compared with those of an undisturbed run. Exit 1 when one differs.
"""
import argparse
import os
import sys
import time
import unittest

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--device", default="cuda:0")
ASKED = parser.parse_args()
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
os.environ["FURLONG"] = os.path.abspath(os.path.join(ASKED.build, "furlong"))
os.environ["FURLONG_SOURCE"] = ROOT
sys.path.insert(0, os.path.join(ROOT, "tests/e2e"))

from worker_support import WHERE, FaultCase, planted  # noqa: E402  (it reads the environment)

CARD = ASKED.device.startswith("cuda")


def on_card(statement):
    """As worker_support.planted, in the CUDA text: variant w2 has 64 threads a block."""
    return lambda text: text.replace(
        "  const ulong64 nonce = start + i;",
        f"  if ((start >> 40) == {WHERE >> 40}ull && blockDim.x == 64u) {{ {statement} }}\n  const ulong64 nonce = start + i;")


class Faults(FaultCase):
    device = ASKED.device
    if CARD:
        geometry, text, pinned = "default", "lottery.cu", "w2"
        count, target = 400_000_000, 1 << 42
        killed_race, killed_count, killed_target = "u8", 1_500_000_000, 1 << 40

    def tell(self, fault, worker):
        again = [float(words[1]) for words in worker.of("recovered")]
        print(f"{fault}: {len(worker.finds('j'))} finds, each once; " +
              (f"work went on after {', '.join(f'{ms:.0f}' for ms in again)} ms" if again else "no process ended"), flush=True)
        worker.quit()

    def test_access(self):
        self.tell("a variant that writes out of bounds in service", self.faulty(
            on_card("hashes[1ull << 40] = 1;") if CARD else planted("hashes[1ull << 40] = 1;")))

    def test_hang(self):
        self.tell("a variant that hangs in service (--hang-s 3)", self.faulty(
            on_card("for (;;) __nanosleep(1000000u);") if CARD else planted('for (;;) __asm__ volatile("");'), "--hang-s", "3"))

    def test_wrong(self):
        worker = self.faulty(on_card("start ^= 1ull;") if CARD else planted("start ^= 1;"))
        self.assertEqual(len(worker.of("reverted")), 1)
        self.tell("a variant that computes wrong in service", worker)

    def test_kills(self):
        worker = self.killed(3, prepare_next=False)
        again = [float(words[1]) for words in worker.of("recovered")]
        print(f"kill -9 of the process that owns the device: work went on after {', '.join(f'{ms:.0f}' for ms in again)} ms", flush=True)


if __name__ == "__main__":
    begin = time.monotonic()
    result = unittest.main(argv=[sys.argv[0]], exit=False).result
    print(f"{time.monotonic() - begin:.0f} s")
    sys.exit(0 if result.wasSuccessful() else 1)
