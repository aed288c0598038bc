#!/usr/bin/env python3
"""furlong run --engine slurm on a real Slurm of two nodes (tests/slurm/cluster.py): a node that goes away in the
middle, a run that is killed, Ctrl-C, a limit of memory, a refusal. Prints what happened, as it happened."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from support import FURLONG, Case, Run, Transcript

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "slurm"))
import cluster  # noqa: E402

DATABASE = "/usr/share/metamath/databases/iset.mm"
MISSING = cluster.missing_programs()
PROGRAM = os.path.basename(FURLONG)


@unittest.skipIf(MISSING, f"Slurm is not here: no {', '.join(MISSING)} (apt-get install slurmctld slurmd slurm-client munge)")
@unittest.skipUnless(os.path.exists(DATABASE), f"no {DATABASE} (apt-get install metamath-databases)")
class Slurm(Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="furlong-slurm-")
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.cluster = cluster.Cluster(os.path.join(cls.shared, "cluster"))
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        cls.store, cls.plan = os.path.join(cls.shared, "iset.store"), os.path.join(cls.shared, "iset.fsp")
        settings = {**os.environ, "FURLONG_CACHE_DIR": os.path.join(cls.shared, "cache"),
                    "FURLONG_STATE_DIR": os.path.join(cls.shared, "state"),
                    "FURLONG_CONFIG_DIR": os.path.join(cls.shared, "config")}
        for argv in (["shard", "store", "metamath", DATABASE, "--out", cls.store],
                     ["shard", "plan", cls.store, "--max-ram", "64M", "--no-merge", "--quiet", "--out", cls.plan]):
            subprocess.run([FURLONG, *argv], check=True, capture_output=True, env=settings, stdin=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        self.environment.update(self.cluster.environment())
        self.cache, self.logs = self.path("receipts"), self.path("logs")
        self.frozen = set()
        self.addCleanup(self.clear_queue)
        self.transcript = Transcript(self.id().rpartition(".")[2].replace("_", " "))

    def clear_queue(self):
        self.cluster.thaw(self.frozen)
        self.cluster.command("scancel", "--user", str(os.geteuid()))

    def arguments(self, *more):
        return [FURLONG, "run", self.store, self.plan, "--engine", "slurm", "--cache", self.cache, "--logs", self.logs,
                "--out", self.path("combined.json"), "--json", self.path("run.json"), *more]

    def start(self, *more):
        run = Run(self.arguments(*more), self.environment, self.folder, self.transcript)
        self.addCleanup(run.kill)
        return run

    def freeze(self, node, least_bytes=0):
        pids = self.cluster.freeze(node, PROGRAM, least_bytes)
        self.frozen |= pids
        return pids

    def report(self):
        with open(self.path("run.json"), encoding="utf-8") as file:
            return json.load(file)

    def queue(self):
        return self.cluster.command("squeue", "--noheader", "--array", "--format=%i %T").splitlines()

    def submissions(self):
        """By shard, how many jobs of it have begun: each has a log."""
        counts = {}
        for log in glob.glob(os.path.join(self.logs, "*_*.log")):
            shard = int(re.search(r"_(\d+)\.log$", log)[1])
            counts[shard] = counts.get(shard, 0) + 1
        return counts

    def resubmitted(self, run):
        return sorted({int(found) for found in re.findall(r"shard (\d+) \(job \S+\): .*submitting it again", run.text())})

    def assert_complete(self, run, code):
        self.assertEqual(code, 0, run.text())
        self.assertIn("verdict: complete", run.text())
        self.assertTrue(os.path.exists(self.path("combined.json")))
        self.assertEqual(self.queue(), [])

    def test_a_node_goes_away_in_the_middle(self):
        run = self.start()
        caught = self.freeze("n2")
        self.transcript.say(f"node n2 is taken away, with {len(caught)} job(s) of furlong at work on it")
        self.cluster.take_away("n2")
        self.addCleanup(self.cluster.give_back, "n2")
        code = run.end()
        self.assert_complete(run, code)
        again = self.resubmitted(run)
        self.transcript.say(f"submitted again: shards {again}")
        self.assertGreaterEqual(len(again), 1)
        self.assertIn("its node n2 failed", run.text())
        for shard, count in self.submissions().items():  # a job that was lost at its very start left no log
            self.assertIn(count, (1, 2) if shard in again else (1,), f"shard {shard}")

        second = self.start()  # nothing is pending: Slurm is not asked for anything
        self.assert_complete(second, second.end())
        self.assertNotIn("array ", second.text())

    def test_a_run_that_was_killed_waits_for_its_jobs(self):
        run = self.start()
        caught = self.freeze("n1") | self.freeze("n2")
        self.transcript.say(f"furlong run is killed (kill -9), with {len(caught)} job(s) at work")
        run.process.kill()
        self.assertEqual(run.end(), -signal.SIGKILL)
        self.assertNotEqual(self.queue(), [])

        second = self.start()
        limit = time.monotonic() + 60
        while "of an earlier run" not in second.text() and time.monotonic() < limit:
            time.sleep(0.1)
        self.cluster.thaw(self.frozen)
        self.assert_complete(second, second.end())
        self.assertIn("of an earlier run: waiting for them", second.text())
        self.assertEqual(set(self.submissions().values()), {1}, "no shard was at work twice")

    def test_ctrl_c_leaves_nothing_in_the_queue(self):
        run = self.start("--jobs", "2")
        self.freeze("n1")
        self.transcript.say(f"Ctrl-C, with {len(self.queue())} jobs in the queue")
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.end(), 128 + signal.SIGINT, run.text())
        self.assertEqual(self.queue(), [])

        second = self.start()
        self.assert_complete(second, second.end())

    def test_a_job_over_its_memory_is_not_submitted_again(self):
        run = self.start("--jobs", "1", "--sbatch=--mem=4M")
        try:
            self.freeze("n1", 8 << 20)  # what the program itself takes; Slurm looks once a second
        except RuntimeError:
            self.assertIsNotNone(run.process.poll(), run.text())  # Slurm saw it by itself
        self.assertEqual(run.end(), 3, run.text())
        self.assertIn("it took more memory than", run.text())
        self.assertIn("rebudget", run.text())
        self.assertEqual(self.resubmitted(run), [])
        self.assertEqual(self.queue(), [])

    def test_a_refusal_is_told_in_the_words_of_sbatch(self):
        run = self.start("--sbatch=--partition=nowhere")
        self.assertEqual(run.end(), 2, run.text())
        self.assertIn("invalid partition specified: nowhere", run.text())


class NoSlurm(Case):
    def test_without_its_commands_the_package_is_named(self):
        database = self.write("tiny.mm", "$c |- wff ( ) -> $. $v p $. wp $f wff p $. ax $a |- p $. th $p |- p $= wp ax $.\n")
        for argv in (["shard", "store", "metamath", database, "--out", self.path("tiny.store")],
                     ["shard", "plan", self.path("tiny.store"), "--max-ram", "1", "--out", self.path("tiny.fsp")]):
            done = self.run_furlong(*argv)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_furlong("run", self.path("tiny.store"), self.path("tiny.fsp"), "--engine", "slurm",
                                environment={"PATH": self.path("nothing")})
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("sbatch is not on this machine", done.stderr)
        self.assertIn("slurm-client", done.stderr)

    def test_options_of_slurm_are_refused_without_it(self):
        self.write("x.store", "")
        done = self.run_furlong("run", self.path("x.store"), self.path("x.fsp"), "--resubmit", "3")
        self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
