#!/usr/bin/env python3
"""A campaign on this machine's processor: two programs, three problems each; planned, run with two kills (kill -9 at
different points), resumed and complete. Prints what happened, as it happened."""
import json
import os
import shutil
import time
import unittest

from support import FURLONG, Case, Run, Transcript

# KIND = 1 does the work many times over: the race is decided after a few heats.
LOOP = """  for (unsigned i = begin; i < end; ++i) {
    int v = x[i];
    for (int k = 0; k < 50 * KIND; ++k) asm volatile("" : "+r"(v));
    y[i] = %s;
  }"""
SLOW = 'values = [0, 1]\ndefault = 0\ntags = ["", "slow"]'
LIST = """format = 1
devices = ["host:0"]

[race]
budget_s = 20
window_ms = 5

[[program]]
file = "twice/twice.toml"
problems = { n = [65536, 262144, 1048576] }

[[program]]
file = "added/added.toml"
cases = [ { n = 1048576 }, { n = 65536 }, { n = 262144 } ]
"""


class Campaign(Case):
    def setUp(self):
        super().setUp()
        self.store, self.plan, self.cache = self.path("races.store"), self.path("races.fsp"), self.path("receipts")
        self.transcript = Transcript(self.id().rpartition(".")[2].replace("_", " "))

    def program(self, name, result):
        self.host_program(LOOP % result, knob=SLOW, name=name)
        os.mkdir(self.path(name))
        for file in ("kernel.cpp", "reference.cpp", name + ".toml"):
            os.rename(self.path(file), os.path.join(self.path(name), file))

    def make_store(self):
        self.program("twice", "2 * v")
        self.program("added", "v + x[i]")
        self.write("races.toml", LIST)
        self.furlong("shard", "store", "campaign", self.path("races.toml"), "--out", self.store)
        for name in ("twice", "added", "races.toml"):  # the store is all that is needed from here on
            (shutil.rmtree if os.path.isdir(self.path(name)) else os.remove)(self.path(name))

    def start(self, *words):
        run = Run([FURLONG, *words], self.environment, self.folder, self.transcript)
        self.addCleanup(run.kill)
        return run

    def furlong(self, *words, code=0):
        run = self.start(*words)
        self.assertEqual(run.end(240), code, run.text())
        return run.text()

    def run_words(self, *more):
        return ["run", self.store, self.plan, "--cache", self.cache, "--out", self.path("combined.json"), "--json",
                self.path("run.json"), *more]

    def finished(self):
        """Every entry and receipt of the cache: when it was written, and what is in it."""
        found = {}
        for folder, _, names in os.walk(self.cache):
            for name in names:
                full = os.path.join(folder, name)
                if name.endswith((".json", ".receipt")):
                    found[full] = (os.stat(full).st_mtime_ns, self.read_bytes(full))
        return found

    def claims(self):
        return sum(name.endswith(".json") for name in self.finished())

    def jobs(self):
        """Processes that carry out a shard of this test."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if b"--shard" in words and self.store.encode() in words:
                found.append(pid)
        return found

    def wait_until(self, what, condition, run=None, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            if run is not None:
                self.assertIsNone(run.process.poll(), f"the run ended before {what}: {run.text()}")
            time.sleep(0.01)

    def kill(self, run, when):
        run.process.kill()
        run.end()
        self.wait_until("the jobs of a run that was killed are gone", lambda: not self.jobs())
        self.transcript.say(f"  kill -9 {when}; {self.claims()} of 6 shards are finished")

    def test_a_campaign_survives_two_kills(self):
        self.make_store()
        # A race may take its 20 s, and three quarters of 30 s are cut at: each race is a shard of its own.
        self.furlong("shard", "plan", self.store, "--max-seconds", "30", "--quiet", "--out", self.plan)

        run = self.start(*self.run_words())
        self.wait_until("a job begins", self.jobs, run)
        self.kill(run, "as the first job began")
        first = self.finished()

        run = self.start(*self.run_words())
        target = self.claims() + 2
        self.wait_until("two more shards are finished", lambda: self.claims() >= target, run)
        self.wait_until("another job begins", self.jobs, run)
        self.kill(run, "in the middle")
        second = self.finished()
        self.assertGreaterEqual(self.claims(), 2)

        text = self.furlong(*self.run_words())
        self.assertIn("verdict: complete", text)
        with open(self.path("run.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(len(report["shards"]), 6)
        kept = [shard for shard in report["shards"] if shard["state"] == "kept"]
        self.assertEqual(2 * len(kept), len(second))
        third = self.finished()
        self.assertEqual(len(third), 12)
        for before in (first, second):
            for full, entry in before.items():
                self.assertEqual(third[full], entry, f"{full} was written again")

        text = self.furlong(*self.run_words("--verify", "0.5"))
        self.assertIn("6 kept, 0 done", text)
        self.assertEqual(self.finished(), third)
        self.transcript.say("  nothing was raced twice")
        self.check_records(third)

    def check_records(self, files):
        raced = {}
        for full, (_, data) in files.items():
            if not full.endswith(".receipt"):
                continue
            for line in data.decode("utf-8", "replace").splitlines():
                if line.startswith('{"unit"') and '"record"' in line:
                    unit = json.loads(line)
                    raced[unit["name"]] = unit["record"]
        self.assertEqual(sorted(raced), sorted(f"{name} n={n} @ host:0" for name in ("twice", "added")
                                               for n in (65536, 262144, 1048576)))
        for name, record in raced.items():
            self.assertEqual(record["winner"], "base", name)
            self.assertEqual(list(record["variants"]), ["base", "slow"])

    def test_a_receipt_that_was_changed_is_earned_again(self):
        self.make_store()
        self.furlong("shard", "plan", self.store, "--max-seconds", "200", "--quiet", "--out", self.plan)
        self.furlong(*self.run_words())
        before = self.finished()
        receipt = next(full for full in before if full.endswith(".receipt"))
        self.write_bytes(receipt, before[receipt][1].replace(b'"verdict":"', b'"verdict": "', 1))
        text = self.furlong(*self.run_words())
        self.assertIn("verdict: complete", text)
        self.assertIn("1 done", text)

    def test_what_is_wrong_is_named(self):
        run = self.run_furlong("shard", "store", "campaign", self.path("none.toml"), "--out", self.store)
        self.assertEqual(run.returncode, 2)
        self.assertIn("none.toml", run.stderr)
        self.write("races.toml", 'format = 1\ndevices = ["host:0"]\n[[program]]\nfile = "gone.toml"\n')
        run = self.run_furlong("shard", "store", "campaign", self.path("races.toml"), "--out", self.store)
        self.assertEqual(run.returncode, 2)
        self.assertIn("races.toml:4:8: ", run.stderr)
        self.assertIn("gone.toml", run.stderr)
        self.program("twice", "2 * v")
        self.write("races.toml", 'format = 1\ndevices = ["host:7"]\n[[program]]\nfile = "twice/twice.toml"\n')
        self.furlong("shard", "store", "campaign", self.path("races.toml"), "--out", self.store)
        run = self.run_furlong("shard", "plan", self.store, "--max-seconds", "300", "--quiet", "--out", self.plan)
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("the device host:7", run.stderr)
        self.program("wrong", "3 * v")
        self.write("races.toml", 'format = 1\ndevices = ["host:0"]\n[[program]]\nfile = "wrong/wrong.toml"\n')
        self.furlong("shard", "store", "campaign", self.path("races.toml"), "--out", self.store, "--replace")
        run = self.run_furlong("shard", "plan", self.store, "--max-seconds", "300", "--quiet", "--out",
                               self.path("wrong.fsp"))
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("unit 'wrong n=65536 @ host:0' failed", run.stderr)
        self.assertIn("base", run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
