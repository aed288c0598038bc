"""A soak: the real agent over the real worker in short epochs, while processes are killed at random and the hub comes and
goes. It ends with: records created = records delivered, each once; no orphan process; no growth of memory or open files.

FURLONG_SOAK_S: how long (40; the soak of docs/figures.md takes 1800). FURLONG_SOAK_SEED: of the kills.
"""
import json
import os
import random
import signal
import sqlite3
import statistics
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agent_test import AgentCase  # noqa: E402
from fake_hub import Hub  # noqa: E402
from support import FURLONG, living_processes  # noqa: E402

SECONDS = float(os.environ.get("FURLONG_SOAK_S", "40"))
SEED = int(os.environ.get("FURLONG_SOAK_SEED", "1"))
PAGE = os.sysconf("SC_PAGE_SIZE")
STEADY_S = 200  # a process that lives as long is looked at for growth


class Growth:
    """Resident memory and open files of processes, by what they are."""

    def __init__(self):
        self.seen = {}  # (what, pid) → [(time, bytes, files)]

    def look(self, what, pid):
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                resident = int(file.read().split()[1]) * PAGE
            files = len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return
        self.seen.setdefault((what, pid), []).append((time.monotonic(), resident, files))

    def judge(self, case):
        """Of the processes that lived long: the highest of their last third beside that of the third before, since a worker
        has one dataset or two by turns."""
        told = []
        for (what, pid), samples in self.seen.items():
            if samples[-1][0] - samples[0][0] < STEADY_S:
                continue
            third = len(samples) // 3
            before, after = samples[third:2 * third], samples[2 * third:]
            memory = [max(sample[1] for sample in part) for part in (before, after)]
            files = [max(sample[2] for sample in part) for part in (before, after)]
            told.append(f"{what} {pid}: {samples[-1][0] - samples[0][0]:.0f} s, {memory[0] / 2**20:.1f} → {memory[1] / 2**20:.1f} MiB, "
                        f"{files[0]} → {files[1]} open files")
            case.assertLess(memory[1], memory[0] + max(8 * 2**20, 0.25 * memory[0]), told[-1])
            case.assertLess(files[1], files[0] + 4, told[-1])
        return told


class Soak(AgentCase):
    def configure(self):
        self.write("agent.toml", f'''format = 1
data = "data"
furlong = "{FURLONG}"
[[device]]
address = "host:0"
[schedule]
kind = "clock"
epoch_s = 30
lead_s = 15
seed = "soak"
[work]
geometry = "small"
target = "0000200000000000"
race = "n64"
race_budget_s = 4
arguments = ["--rate-every-s", "1", "--hang-s", "15"]
[hub]
url = "{self.hub_now.url}"
enrol_token = "let-me-in"
retry_most_s = 1
''')

    def mine(self):
        return living_processes(self.data)

    def of(self, word):
        return [pid for pid, line in self.mine().items() if word in line]

    def created_records(self):
        """What the workers wrote, without what the agent adds."""
        records = []
        for name in sorted(os.listdir(self.data)):
            if not (name.startswith("records-") and name.endswith(".jsonl")):
                continue
            for line in self.read(os.path.join(self.data, name)).splitlines():
                try:
                    records.append(json.loads(line))
                except ValueError:
                    pass  # torn by a kill; the worker begins a new line
        return sorted(self.bare(record) for record in records)

    @staticmethod
    def bare(record):
        return json.dumps({key: value for key, value in record.items() if key not in ("id", "machine", "agent", "slot")}, sort_keys=True)

    def delivered_records(self):
        return sorted(self.bare(json.loads(line)) for line in self.hub_now.records.values())

    def kill(self, chance):
        """One fault; its name."""
        what = chance.choice(["back", "back", "front", "child", "agent", "hub", "stall"] if self.kill_agents else ["back", "front", "child", "hub", "stall"])
        if what == "agent":
            self.agents[-1].kill()
            self.agents[-1].wait()
            time.sleep(chance.uniform(0, 1))
            self.start()
        elif what == "hub":
            self.hub_now.script += chance.choices(["500", "close", "nonsense", "half", "lost", "429"], k=3)
        else:
            word = {"back": " worker-back ", "front": " worker --device", "child": " trial", "stall": " worker-back "}[what]
            pids = self.of(word)
            if not pids:
                return None
            pid = chance.choice(pids)
            try:
                if what == "stall":
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(1)
                    os.kill(pid, signal.SIGCONT)
                else:
                    os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return None
        return what

    def test_nothing_is_lost_and_nothing_counted_twice(self):
        chance = random.Random(SEED)
        self.hub_now = self.hub()
        self.configure()
        self.environment.pop("FAKE_WORKER", None)
        self.kill_agents = True
        agent_begun = self.start()
        growth, faults = Growth(), {}
        begin = time.monotonic()
        self.until(lambda: self.device() and self.device()["state"] == "serving", "work")
        next_fault = time.monotonic() + chance.uniform(2, 6)
        # In the first half all is killed; then the agent lives, and at the end all, so that growth shows.
        while time.monotonic() - begin < SECONDS:
            self.kill_agents = time.monotonic() - begin < SECONDS / 2
            if time.monotonic() >= next_fault and time.monotonic() - begin < 0.8 * SECONDS:
                what = self.kill(chance)
                if what:
                    faults[what] = faults.get(what, 0) + 1
                next_fault = time.monotonic() + chance.uniform(3, max(8, SECONDS / 60))
            growth.look("agent", self.agents[-1].pid)
            for word in ("worker --device", "worker-back"):
                for pid in self.of(f" {word}"):
                    growth.look(word, pid)
            self.assertIsNone(self.agents[-1].poll(), "the agent ended by itself")
            time.sleep(1)
        del agent_begun
        # Work resumed by itself after all that.
        self.hub_now.script.clear()
        hashes = lambda: (self.device() or {}).get("hashes") or 0  # noqa: E731
        self.until(lambda: self.device()["state"] == "serving", "work goes on")
        before = hashes()
        self.until(lambda: hashes() != before, "hashes are counted")
        if SECONDS < 60:
            self.until(self.created_records, "a record")
        # What the last kills left is delivered; a race that ends just now may add one.
        self.until(lambda: self.delivered_records() == self.created_records(), "all records delivered")
        self.assertEqual(self.end(self.agents[-1]), 0)
        self.until(lambda: not self.mine(), "no process left: " + str(self.mine()))
        if self.delivered_records() != self.created_records():
            self.start()
            self.until(lambda: self.delivered_records() == self.created_records(), "all records delivered")
            self.end(self.agents[-1], signal.SIGKILL)
            self.until(lambda: not self.mine(), "no process left")
        created, delivered = self.created_records(), self.delivered_records()
        self.assertEqual(created, delivered)
        self.assertEqual(self.hub_now.bad_signatures, 0)
        spools = [name for name in os.listdir(self.data) if name.endswith(".sqlite")]
        self.assertEqual(len(spools), 1)
        with sqlite3.connect(os.path.join(self.data, spools[0])) as spool:
            finds = spool.execute("SELECT count(*), count(DISTINCT epoch || day || slot || nonce) FROM find").fetchone()
        spool.close()
        self.assertEqual(finds[0], finds[1])
        told = growth.judge(self)
        if SECONDS >= 600:
            self.assertTrue(told, "no process lived long enough to see growth")
        print(f"\n{time.monotonic() - begin:.0f} s; faults: {faults}; records created {len(created)}, delivered {len(delivered)}; "
              f"finds {finds[0]}, none twice; no process left", *told, sep="\n", flush=True)


if __name__ == "__main__":
    unittest.main()
