#!/usr/bin/env python3
"""What the engines of furlong run do with processes: an end that leaves nothing behind, and what jobs are told."""
import json
import os
import signal
import subprocess
import time
import unittest

from support import FURLONG, Case

AMPLE_S = 60  # no test depends on how fast the machine is

# At the plan it is done at once; at the run it has a child that would go on for long.
COMMAND = "if [ -e slow ]; then sleep 1000 & echo $! > pid.new; mv pid.new pid; wait; fi; echo x > out"


def stat(pid):
    """Its state and process group; nothing for one that is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(") ")[2].split()
        return (fields[0], int(fields[2]))
    except (OSError, IndexError):
        return None


def is_guarded(group):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"kill -KILL 0" in file.read() and (stat(pid) or (None, None))[1] == group:
                    return True
        except OSError:
            continue
    return False


class Engines(Case):
    def ok(self, *arguments, **options):
        run = self.run_furlong(*arguments, **options)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run

    def until(self, condition, what):
        deadline = time.monotonic() + AMPLE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    def planned(self):
        self.write("list.jsonl", json.dumps({"name": "slow", "shell": COMMAND, "inputs": [], "outputs": ["out"]}) + "\n")
        self.ok("shard", "store", "command", "list.jsonl", "--out", "c.store", "--quiet")
        self.ok("shard", "plan", "c.store", "--max-ram", "1G", "--out", "c.fsp", "--quiet")

    def at_work(self):
        """A run, and the process that its command has started."""
        self.write("slow", "")
        run = subprocess.Popen([FURLONG, "run", "c.store", "c.fsp", "--quiet"], env=self.environment, cwd=self.folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        self.until(lambda: os.path.exists(self.path("pid")), "the command has not begun")
        return run, int(self.read(self.path("pid")))

    def gone(self, pid):
        return (stat(pid) or "Z")[0] in "ZX"

    def test_ctrl_c_ends_the_commands_with_all_that_they_started(self):
        self.planned()
        run, grandchild = self.at_work()
        self.assertFalse(self.gone(grandchild))
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=AMPLE_S)
        self.assertEqual(run.returncode, 130, errors)
        self.assertIn("the same command goes on", errors)
        self.until(lambda: self.gone(grandchild), "an orphan is left")
        os.remove(self.path("slow"))
        self.ok("run", "c.store", "c.fsp", "--quiet")

    def test_kill_9_does_too(self):
        self.planned()
        run, grandchild = self.at_work()
        _, group = stat(grandchild)
        self.until(lambda: is_guarded(group), "no guard has come")
        run.kill()
        run.communicate(timeout=AMPLE_S)
        self.until(lambda: self.gone(grandchild), "an orphan is left")
        os.remove(self.path("slow"))
        self.ok("run", "c.store", "c.fsp", "--quiet")

    def test_jobs_are_told_how_receipts_are_verified(self):
        self.planned()
        # A Slurm that takes down what it is given, and refuses.
        for name, does in (("sbatch", f"cat > {self.path('script')}; echo Invalid account >&2; exit 1"),
                           ("squeue", "exit 0"), ("scancel", "exit 0"), ("scontrol", "echo MaxArraySize = 1001")):
            tool = self.write(f"bin/{name}", f'#!/bin/sh\ncase "$*" in *--version) exit 0;; esac\n{does}\n')
            os.chmod(tool, 0o755)
        run = self.run_furlong("run", "c.store", "c.fsp", "--engine", "slurm", "--seed", "77", "--verify", "0.5",
                               "--quiet", environment={"PATH": f"{self.path('bin')}:{os.environ['PATH']}"})
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assertIn("Invalid account", run.stderr)
        script = self.read(self.path("script"))
        self.assertIn("'--verify' '0.5' '--seed' '77'", script)
        self.assertIn("'--shard' \"$shard\"", script)


if __name__ == "__main__":
    unittest.main()
