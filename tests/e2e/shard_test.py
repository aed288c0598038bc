#!/usr/bin/env python3
"""Sharding through the real program: a store of a small database, a plan, checks, a run with receipts, kills in the
middle, damage, bad input."""
import glob
import json
import os
import signal
import subprocess
import time
import unittest

from support import FURLONG, Case

DATABASES = "/usr/share/metamath/databases"
SMALL = os.path.join(DATABASES, "ql.mm")


class Sharding(Case):
    def ok(self, *arguments, **options):
        run = self.run_furlong(*arguments, **options)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run

    def refused(self, code, *arguments, **options):
        run = self.run_furlong(*arguments, **options)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        self.assertNotIn("internal", run.stderr)
        return run.stderr

    def json(self, *arguments, code=0, **options):
        """`code` None: any."""
        run = self.run_furlong(*arguments, "--json", "-", "--quiet", **options)
        if code is not None:
            self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return json.loads(run.stdout)

    def planned(self, ram="6M"):
        """ql.mm in some 8 shards."""
        self.ok("shard", "store", "metamath", SMALL, "--out", "s.store", "--quiet")
        self.ok("shard", "plan", "s.store", "--max-ram", ram, "--out", "p.fsp", "--quiet")
        return self.json("run", "s.store", "p.fsp", "--dry-run", code=3)

    def test_from_a_store_to_one_verdict(self):
        dry = self.planned()
        shards = len(dry["shards"])
        self.assertGreaterEqual(shards, 3)
        self.assertEqual(dry["pending"], shards)
        check = self.json("shard", "check", "s.store", "p.fsp")
        self.assertTrue(all(s["ok"] and not s["over_budget"] for s in check["shards"]))
        first = self.ok("run", "s.store", "p.fsp", "--jobs", "2", "--quiet")
        self.assertIn("verdict: complete: a disjoint cover of 1139 units", first.stdout)
        receipt = json.loads(self.read(self.path("p.receipt.json")))
        self.assertEqual(len(receipt["shards"]), shards)
        second = self.json("run", "s.store", "p.fsp")
        self.assertEqual((second["kept"], second["done"], second["pending"]), (shards, 0, 0))
        # One shard alone, as any scheduler would call it, finds its receipt.
        one = self.json("run", "s.store", "p.fsp", "--shard", "1")
        self.assertEqual(one["shards"][0]["state"], "kept")

    def test_from_a_profile_to_one_verdict(self):
        self.ok("shard", "store", "metamath", SMALL, "--out", "s.store", "--quiet")
        self.ok("shard", "profile", "s.store", "--out", "s.fprof", "--quiet", "--workers", "2")
        first = self.read_bytes(self.path("s.fprof"))
        self.ok("shard", "profile", "s.store", "--out", "s.fprof", "--quiet")
        self.assertEqual(self.read_bytes(self.path("s.fprof")), first, "workers change no byte")
        self.assertIn("work", self.ok("shard", "top", "s.fprof", "--top", "3").stdout)
        self.assertTrue(json.loads(self.ok("shard", "sweep", "s.fprof", "--json").stdout))
        self.ok("shard", "plan", "s.store", "--profile", "s.fprof", "--max-ram", "8M", "--out", "p.fsp", "--quiet")
        check = self.json("shard", "check", "s.store", "p.fsp", code=None)
        self.assertTrue(all(s["ok"] for s in check["shards"]))
        shards = len(check["shards"])
        self.assertGreaterEqual(shards, 2)
        self.assertIn("verdict: complete", self.ok("run", "s.store", "p.fsp", "--quiet").stdout)
        self.assertEqual(self.json("run", "s.store", "p.fsp")["kept"], shards)
        self.assertIn(f"over {shards} shards holds", self.ok("shard", "receipt", "s.store", "p.fsp", "p.receipt.json", "--quiet").stdout)
        # A fixed number of shards, and a plan by a model fitted on what was run.
        self.ok("shard", "plan", "s.store", "--profile", "s.fprof", "--shards", "4", "--out", "four.fsp", "--quiet")
        self.ok("run", "s.store", "four.fsp", "--quiet")
        self.assertEqual(json.loads(self.ok("shard", "show", "four.fsp", "--json").stdout)["what_if"]["shards"], 4)
        fit = self.ok("shard", "fit", "s.store", "p.fsp", "four.fsp", "--out", "m.json")
        self.assertIn("recommended usable share", fit.stdout)
        self.ok("shard", "plan", "s.store", "--max-ram", "16M", "--model", "m.json", "--out", "m.fsp", "--quiet")
        self.assertIn("verdict: complete", self.ok("run", "s.store", "m.fsp", "--quiet").stdout)

    def test_both_fail_fast_flags_are_a_usage_error_everywhere(self):
        self.planned()
        for command in (["shard", "plan", "s.store", "--max-ram", "1G", "--out", "q.fsp"], ["shard", "check", "s.store", "p.fsp"],
                        ["shard", "profile", "s.store", "--out", "q.fprof"], ["run", "s.store", "p.fsp"]):
            self.assertIn("choose one", self.refused(2, *command, "--fail-fast", "--no-fail-fast"))

    def test_no_file_is_written_over_another_that_is_read(self):
        self.planned()
        store, plan = self.read_bytes(self.path("s.store")), self.read_bytes(self.path("p.fsp"))
        for command in (["shard", "plan", "s.store", "--max-ram", "1G", "--out", "s.store"],
                        ["shard", "plan", "s.store", "--max-ram", "1G", "--out", "q.fsp", "--journal", "q.fsp"],
                        ["shard", "profile", "s.store", "--out", "./s.store"], ["run", "s.store", "p.fsp", "--out", "s.store"],
                        ["run", "s.store", "p.fsp", "--json", "p.fsp"]):
            self.assertIn("the same file", self.refused(2, *command))
        self.assertIn("no store", self.refused(2, "shard", "store", "metamath", SMALL, "--out", "p.fsp", "--replace"))
        self.assertEqual((store, plan), (self.read_bytes(self.path("s.store")), self.read_bytes(self.path("p.fsp"))))

    def test_the_same_journal_gives_the_same_plan_and_an_interrupted_one_goes_on(self):
        self.ok("shard", "store", "metamath", SMALL, "--out", "s.store", "--quiet")
        plan = ("shard", "plan", "s.store", "--max-ram", "6M", "--quiet", "--out")
        self.ok(*plan, "a.fsp")
        for workers in ("1", "2", "8"):
            self.ok(*plan, "b.fsp", "--journal", "a.fsp.journal", "--workers", workers)
            self.assertEqual(self.read_bytes(self.path("a.fsp")), self.read_bytes(self.path("b.fsp")))
        # Half of the journal, with a torn line at its end, as a kill leaves it.
        journal = self.read_bytes(self.path("a.fsp.journal"))
        lines = journal.split(b"\n")
        self.write_bytes(self.path("half.journal"), b"\n".join(lines[:len(lines) // 2]) + b"\n" + lines[-2][:9])
        self.ok(*plan, "c.fsp", "--journal", "half.journal")
        units = [self.json("run", "s.store", f, "--dry-run", code=3) for f in ("a.fsp", "c.fsp")]
        self.assertEqual([s["claim"] for s in units[0]["shards"]], [s["claim"] for s in units[1]["shards"]])

    def test_a_run_that_is_killed_keeps_what_was_finished(self):
        self.planned()
        for jobs in ("1", "4"):
            with self.subTest(jobs=jobs):
                self.killed_until_some_are_done(jobs, os.path.join("receipts", jobs))

    def killed_until_some_are_done(self, jobs, cache):
        command = ("run", "s.store", "p.fsp", "--cache", cache, "--jobs", jobs)
        entries = self.path(os.path.join(cache, "claims/*/*.json"))
        shards = len(self.json(*command, "--dry-run", code=3)["shards"])
        seen, before = set(), {}
        for attempt in range(6):
            run = subprocess.Popen([FURLONG, *command, "--quiet"], env=self.environment, cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # A kill at another moment each time, at last while some are done and some are not.
            time.sleep(0.02 + 0.05 * attempt)
            while attempt >= 3 and len(glob.glob(entries)) <= len(before) and run.poll() is None:
                time.sleep(0.001)
            run.send_signal(signal.SIGKILL)
            run.wait()
            state = self.json(*command, "--dry-run", code=None)
            kept = {s["claim"] for s in state["shards"] if s["state"] == "kept"}
            self.assertTrue(seen <= kept, "what was finished is never lost")
            for s in state["shards"]:
                self.assertNotIn("why", s, "no entry without a receipt that holds")
            after = {f: os.stat(f).st_mtime_ns for f in glob.glob(entries)}
            self.assertEqual(before, {f: after.get(f) for f in before}, "what was finished is not run again")
            self.assertGreaterEqual(len(after), len(kept))
            seen, before = kept, after
            if 0 < len(kept) < shards and attempt >= 3:
                break
        self.assertTrue(seen, "no attempt got as far as one shard")
        self.ok(*command, "--quiet")
        for file, changed in before.items():
            self.assertEqual(os.stat(file).st_mtime_ns, changed, "what was finished is not run again")
        self.assertEqual(self.json(*command)["kept"], shards)

    def test_ctrl_c_leaves_the_run_to_be_continued(self):
        shards = len(self.planned()["shards"])
        run = subprocess.Popen([FURLONG, "run", "s.store", "p.fsp", "--quiet"], env=self.environment, cwd=self.folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not glob.glob(self.path("cache/receipts/claims/*/*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        if run.returncode == 0:
            self.skipTest("it was done before the signal came")
        self.assertEqual(run.returncode, 130, errors)
        self.assertIn("the same command goes on", errors)
        self.ok("run", "s.store", "p.fsp", "--quiet")
        self.assertEqual(self.json("run", "s.store", "p.fsp")["kept"], shards)

    def test_damage_is_run_again_and_said(self):
        shards = len(self.planned()["shards"])
        self.ok("run", "s.store", "p.fsp", "--quiet")
        claims = sorted(glob.glob(self.path("cache/receipts/claims/*/*.json")))
        self.assertEqual(len(claims), shards)
        self.write_bytes(claims[0], b"garbage")
        swapped = self.read_bytes(claims[1])
        self.write_bytes(claims[2], swapped)
        receipt = glob.glob(self.path("cache/receipts/receipts/*/*.receipt"))[0]
        flipped = bytearray(self.read_bytes(receipt))
        flipped[-1] ^= 1
        self.write_bytes(receipt, bytes(flipped))
        state = self.json("run", "s.store", "p.fsp", "--dry-run", code=3)
        self.assertGreaterEqual(state["pending"], 2)
        self.assertTrue(all(s.get("why") for s in state["shards"] if s["state"] == "pending"))
        self.ok("run", "s.store", "p.fsp", "--quiet")
        self.assertEqual(self.json("run", "s.store", "p.fsp")["kept"], shards)

    def test_rebudget_splits_one_and_keeps_the_others_receipts(self):
        dry = self.planned()
        self.ok("run", "s.store", "p.fsp", "--quiet")
        before = {s["shard"]: s["claim"] for s in dry["shards"]}
        plan = self.read_bytes(self.path("p.fsp"))
        self.assertIn("lower the budget", self.refused(2, "shard", "rebudget", "s.store", "p.fsp", "--shard", "0", "--max-ram", "4G"))
        self.assertIn("no such shard", self.refused(2, "shard", "rebudget", "s.store", "p.fsp", "--shard", "999", "--max-ram", "5M"))
        self.assertEqual(self.read_bytes(self.path("p.fsp")), plan, "what fails leaves the plan alone")
        run = self.ok("shard", "rebudget", "s.store", "p.fsp", "--shard", "1", "--max-ram", "5M", "--quiet")
        self.assertIn("shard 1 became 1", run.stdout)
        after = self.json("run", "s.store", "p.fsp", "--dry-run", code=3)
        for shard in after["shards"]:
            if shard["shard"] in before and shard["shard"] != 1:
                self.assertEqual((shard["claim"], shard["state"]), (before[shard["shard"]], "kept"))
            else:
                self.assertEqual(shard["state"], "pending")
        self.ok("run", "s.store", "p.fsp", "--quiet")

    def test_a_rejected_unit_is_named_in_both_modes(self):
        text = self.read(os.path.join(DATABASES, "demo0.mm"))
        proof = "tt tze tpl tt weq tt tt weq tt a2"
        self.assertIn(proof, text)
        bad = self.write("bad.mm", text.replace(proof, proof.replace("tze", "tt"), 1))
        self.ok("shard", "store", "metamath", bad, "--out", "s.store", "--quiet")
        error = self.refused(3, "shard", "plan", "s.store", "--max-ram", "1G", "--out", "p.fsp", "--quiet")
        self.assertIn("unit 'th1' failed", error)
        self.assertFalse(os.path.exists(self.path("p.fsp")))
        self.assertIn("th1", self.read(self.path("p.failed.csv")))
        self.ok("shard", "plan", "s.store", "--max-ram", "1G", "--out", "p.fsp", "--quiet", "--no-fail-fast")
        self.assertIn("th1", self.read(self.path("p.failed.csv")))
        self.assertIn("th1", self.refused(2, "run", "s.store", "p.fsp", "--quiet"))
        error = self.refused(2, "run", "s.store", "p.fsp", "--fail-fast", "--no-fail-fast")
        self.assertIn("choose one", error)

    def test_a_slice_fails_the_gate_by_name(self):
        self.ok("shard", "store", "metamath", SMALL, "--out", "s.store", "--quiet")
        self.ok("shard", "plan", "s.store", "--max-ram", "1G", "--out", "p.fsp", "--quiet",
                environment={"FURLONG_SCAN_LIMIT_UNITS": "100"})
        self.assertIn("the first 100 of 1139 units", self.refused(2, "run", "s.store", "p.fsp"))
        self.assertIn("FURLONG_SCAN_LIMIT_UNITS=x", self.refused(2, "shard", "plan", "s.store", "--max-ram", "1G", "--out", "q.fsp",
                                                                 environment={"FURLONG_SCAN_LIMIT_UNITS": "x"}))

    def test_bad_input_names_the_culprit(self):
        self.assertIn("nothing.mm", self.refused(2, "shard", "store", "metamath", "nothing.mm", "--out", "s.store"))
        self.assertIn("did you mean 'metamath'", self.refused(2, "shard", "store", "metamat", SMALL, "--out", "s.store"))
        self.assertIn("--out", self.refused(2, "shard", "store", "metamath", SMALL))
        self.planned()
        self.assertIn("there already", self.refused(2, "shard", "store", "metamath", SMALL, "--out", "s.store"))
        self.assertIn("--max-ram", self.refused(2, "shard", "plan", "s.store", "--out", "q.fsp"))
        self.assertIn("'4X' is no amount", self.refused(2, "shard", "plan", "s.store", "--max-ram", "4X", "--out", "q.fsp"))
        self.assertIn("larger budget", self.refused(2, "shard", "plan", "s.store", "--max-ram", "1M", "--out", "q.fsp", "--quiet"))
        self.assertIn("not a store", self.refused(2, "shard", "plan", SMALL, "--max-ram", "1G", "--out", "q.fsp"))
        self.assertIn("p.fsp", self.refused(2, "run", "p.fsp", "s.store"))
        self.assertIn("no-such.fsp", self.refused(2, "run", "s.store", "no-such.fsp"))
        self.assertIn("--shard 99", self.refused(2, "run", "s.store", "p.fsp", "--shard", "99"))
        self.assertIn("--shard 99", self.refused(2, "shard", "check", "s.store", "p.fsp", "--shard", "99"))
        self.write("key", "zz")
        self.assertIn("not a signing key", self.refused(2, "run", "s.store", "p.fsp", "--key", "key"))
        # Another store than the plan's.
        self.ok("shard", "store", "metamath", os.path.join(DATABASES, "demo0.mm"), "--out", "d.store", "--quiet")
        self.assertIn("plan it anew", self.refused(3, "run", "d.store", "p.fsp"))
        # A plan that is torn, at several places.
        plan = self.read_bytes(self.path("p.fsp"))
        for keep in (0, 1, len(plan) // 2, len(plan) - 1):
            self.write_bytes(self.path("torn.fsp"), plan[:keep])
            self.assertIn("torn.fsp", self.refused(2, "run", "s.store", "torn.fsp"))

    def test_a_flipped_byte_of_the_store_is_found_and_nothing_is_recorded(self):
        self.planned()
        data = bytearray(self.read_bytes(self.path("s.store")))
        # In the text of a proof: any place where the store has long runs of small numbers will do.
        item = self.ok("shard", "check", "s.store", "p.fsp", "--quiet")
        self.assertEqual(item.returncode, 0)
        flips = 0
        for at in range(len(data) // 3, len(data) - 4096, len(data) // 40):
            damaged = bytearray(data)
            damaged[at] ^= 0x10
            self.write_bytes(self.path("f.store"), bytes(damaged))
            run = self.run_furlong("run", "f.store", "p.fsp", "--quiet", "--cache", "scratch")
            self.assertIn(run.returncode, (0, 2, 3), run.stderr)  # 0: the byte belongs to nothing
            flips += run.returncode != 0
        self.assertGreater(flips, 0)
        # Whatever was recorded from damaged stores holds against the good one, or is run again.
        self.ok("run", "s.store", "p.fsp", "--quiet", "--cache", "scratch")

    def test_a_full_disk_is_said_and_leaves_nothing_torn(self):
        self.planned()
        run = self.run_furlong("run", "s.store", "p.fsp", "--quiet", "--cache", "/dev/null/receipts")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("/dev/null", run.stdout + run.stderr)
        if os.path.exists("/dev/full"):
            run = self.run_furlong("run", "s.store", "p.fsp", "--quiet", "--json", "/dev/full")
            self.assertNotEqual(run.returncode, 0)


if __name__ == "__main__":
    unittest.main()
