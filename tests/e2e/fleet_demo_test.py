"""`furlong fleet demo`: the whole loop, live, on the host's processor; and what Ctrl-C leaves."""
import json
import os
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import support  # noqa: E402

# An epoch is long enough for two workers that compile and race on two busy cores; a slow machine may take more of them.
EPOCH_S = "30"


class Demo(support.Case):
    def start(self, *words, device=("--device", "host:0", "--epoch-s", EPOCH_S), **environment):
        run = support.Run([support.FURLONG, "fleet", "demo", *device, *words], {**self.environment, **environment}, self.folder,
                          support.Transcript(self.id()))
        self.addCleanup(run.kill)
        return run

    def assert_nothing_left(self):
        self.assertEqual(os.listdir(self.temporary), [])
        self.assertEqual(support.living_processes(self.temporary), {})

    def test_the_loop_is_seen_whole(self):
        kept = self.path("kept")
        run = self.start("--epochs", "60", "--keep", kept)
        self.assertEqual(run.end(timeout=1800), 0, run.text())
        self.assertIn("the loop was seen whole", run.lines[-1])
        for part in (r"hub +listens; dashboard: http://127\.0\.0\.1:\d+/", r"manifest 1 is published", r"pins \S+ to (n64|n1024)", r"every agent serves the pinned variant",
                     r"manifest 2 is published", r"stop 1: race locally"):
            self.assertRegex(run.text(), part)
        for agent in ("agent 1", "agent 2"):
            told = "\n".join(line for line in run.lines if agent in line)
            self.assertEqual(len(re.findall("worker ready", told)), 1, "no restart")
            self.assertRegex(told, "(?s)enrolled.*raced in full.*in the tuning's order.*pinned by the tuning.*swap to \\S+ variant (n64|n1024).*raced in full")
        machines = json.loads(self.run_furlong("hub", "machines", f"sqlite:{kept}/hub.sqlite", "--json").stdout)["machines"]
        self.assertEqual([each["manifest"] for each in machines], ["2", "2"], "as each agent reported")
        records = self.run_furlong("fleet", "records", "--store", f"sqlite:{kept}/hub.sqlite", "--limit", "1000")
        self.assertIn("pinned", records.stdout)
        self.assertTrue(os.path.exists(os.path.join(kept, "fleet", "manifest.json")))
        self.assert_nothing_left()

    def test_an_interrupt_leaves_nothing(self):
        run = self.start("--agents", "1")
        end = time.monotonic() + 300
        while "worker ready" not in run.text() and time.monotonic() < end:
            time.sleep(0.2)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.end(), 130, run.text())
        self.assert_nothing_left()

    def test_a_worker_that_never_works_is_not_awaited_for_ever(self):
        fake = os.path.join(support.SOURCE, "tests/e2e/fake_worker.py")
        for plan in ({"start_fails": True}, {"silent_ready": True}):
            file = self.write("worker.json", json.dumps({"log": self.path("worker.log"), **plan}))
            run = self.start("--agents", "1", "--epoch-s", "2", "--epochs", "2", "--worker", fake, device=(), FAKE_WORKER=file)
            self.assertEqual(run.end(timeout=300), 3, run.text())
            self.assertIn("2 epochs are over, and this was not seen: a race of every machine in the store", run.text())
            self.assert_nothing_left()

    def test_bad_usage(self):
        for words, part in ((["--agents", "0"], "--agents"), (["--device", "cuda:77"], "cuda:77"), (["--keep", self.folder], "is there already")):
            bad = self.run_furlong("fleet", "demo", *words)
            self.assertEqual(bad.returncode in (2, 4), True, words)
            self.assertIn(part, bad.stderr)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
