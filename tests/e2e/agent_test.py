"""The agent through the real program, with a scripted worker and a hub that misbehaves."""
import glob
import json
import os
import random
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_hub import Hub  # noqa: E402
from support import Case, FURLONG, SOURCE, living_processes  # noqa: E402

PATIENCE = 90  # s: no test waits for a time, each waits for something to be seen
FAKE_WORKER = os.path.join(SOURCE, "tests/e2e/fake_worker.py")


class AgentCase(Case):
    def setUp(self):
        super().setUp()
        self.data = self.path("data")
        self.agents = []
        self.addCleanup(lambda: [self.end(agent, signal.SIGKILL) for agent in self.agents])
        self.plan()
        self.environment["FAKE_WORKER"] = self.path("worker.json")

    def plan(self, **keys):
        """What the next workers do."""
        self.write("worker.json", json.dumps({"log": self.path("worker.log"), **keys}))

    def config(self, top="", device='devices = "all"', schedule='kind = "clock"\nepoch_s = 31000000\nlead_s = 1\nseed = "test"', rest=""):
        return self.write("agent.toml", f'format = 1\ndata = "data"\nfurlong = "{FAKE_WORKER}"\n{device}\n{top}\n'
                          f'[schedule]\n{schedule}\n{rest}\n')

    def hub(self, *script, **options):
        hub = Hub(script, **options)
        self.addCleanup(hub.close)
        return hub

    def with_hub(self, hub, **options):
        return self.config(rest=f'[hub]\nurl = "{hub.url}"\nenrol_token = "let-me-in"\nretry_most_s = 1\n' + options.pop("rest", ""), **options)

    def start(self):
        self.log = open(self.path("agent.log"), "ab")
        self.addCleanup(self.log.close)
        agent = subprocess.Popen([FURLONG, "agent", "--config", self.path("agent.toml")], env=self.environment, cwd=self.folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log)
        self.agents.append(agent)
        return agent

    def end(self, agent, how=signal.SIGTERM):
        if agent.poll() is None:
            agent.send_signal(how)
        return agent.wait(PATIENCE)

    def until(self, what, why):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            value = what()
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"not seen: {why}\n{self.read(self.path('agent.log'))[-4000:]}")

    def logged(self, pattern):
        return re.search(pattern, self.read(self.path("agent.log")), re.M)

    def until_logged(self, pattern):
        return self.until(lambda: self.logged(pattern), f"/{pattern}/ in the log")

    def worker_log(self):
        return self.read(self.path("worker.log")) if os.path.exists(self.path("worker.log")) else ""

    def state(self):
        try:
            return json.loads(self.read(os.path.join(self.data, "status.json")))
        except FileNotFoundError:
            return None

    def device(self):
        state = self.state()
        return state["devices"][0] if state else None

    def until_state(self, check, why):
        return self.until(lambda: (self.state() or None) and check(self.state()), why)

    def created(self):
        """The sources of all records that workers wrote: each is unique."""
        sources = []
        for file in glob.glob(os.path.join(self.data, "records-*.jsonl")):
            for line in self.read(file).splitlines():
                try:
                    sources.append(json.loads(line)["source"])
                except (ValueError, KeyError):
                    pass
        return sources

    def delivered_once(self, hub):
        created = sorted(self.created())
        delivered = sorted(json.loads(line)["source"] for line in hub.records.values())
        self.assertEqual(delivered, created)
        self.assertEqual(hub.bad_signatures, 0)

    def no_orphans(self):
        """No worker of ours is left a moment after its agent."""
        def left():
            return [pid for pid, line in living_processes(self.data).items() if self.data in line and "fake_worker" in line]
        self.until(lambda: not left(), "no worker left")


class AgentCommands(AgentCase):
    def test_a_day_in_brief(self):
        self.plan(find_every=3)
        hub = self.hub()
        taken = self.path("finds.jsonl")
        self.with_hub(hub, rest=f'[finds]\ncommand = ["sh", "-c", "cat >> {taken}"]\n')
        check = self.run_furlong("agent", "check", "--config", self.path("agent.toml"))
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.assertIn("--device fake:0 --serve --records", check.stdout)
        self.assertFalse(os.path.exists(self.data), "a check makes nothing")
        none = self.run_furlong("agent", "status", "--data", self.data)
        self.assertEqual((none.returncode, "no agent has run" in none.stderr), (3, True), none.stderr)

        agent = self.start()
        self.until(lambda: hub.records, "a record at the hub")
        self.until_state(lambda s: s["hub"]["state"] == "ok" and s["spool"]["delivered"] >= 1 and s["devices"][0]["mhs"], "all is well")
        line = json.loads(next(iter(hub.records.values())))
        self.assertEqual(line["machine"], self.state()["machine"])
        self.assertRegex(line["id"], r"^[0-9a-f]{8}-[0-9a-f]{4}-7")
        self.assertEqual(line["slot"], self.device()["slot"])
        self.assertEqual(line["from_a_newer_worker"], [1])
        self.assertTrue(line["agent"])
        self.until_logged(r"^worker: race [0-9a-f]{16} device NVIDIA_GeForce_RTX_5090 ")
        self.assertEqual(json.loads(self.logged(r"^TUNING (\{.*\})$")[1])["source"], line["source"])
        self.until_logged(r"info: RTX 5090 kernel race: u2-ldg at 118\.3 MH/s \(\+2\.1% over base, 2 variants, 41 s\)$")
        self.until_logged(r"FOUND [0-9a-f]{16} \d+ nonce [0-9a-f]{16}")
        self.until(lambda: os.path.exists(taken) and self.read(taken), "a find given to the command")
        self.assertEqual(json.loads(self.read(taken).splitlines()[0])["hash"], "0000000000000001")
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.data, "machine.key")).st_mode), 0o600)
        self.assertRegex(self.worker_log(), r"start .* tuning=.*/data/tuning\.json")

        status = self.run_furlong("agent", "status", "--config", self.path("agent.toml"))
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertRegex(status.stdout, r"fake:0 +NVIDIA_GeForce_RTX_5090 +serving +u2-ldg +117\.5 +400 W +118\.3 +\+2\.07% +2 +3\.2 ms +0")
        document = json.loads(self.run_furlong("agent", "status", "--data", self.data, "--json").stdout)["devices"][0]
        self.assertEqual((document["variant"], document["race_mhs"], document["race_gain_pct"], document["race_variants"]),
                         ("u2-ldg", 118.3, 2.07, 2))
        second = self.run_furlong("agent", "--config", self.path("agent.toml"))
        self.assertEqual((second.returncode, "another agent works in this data folder" in second.stderr), (2, True))

        self.assertEqual(self.end(agent), 0)
        self.assertIn("fake:0 quit\n", self.worker_log())
        self.no_orphans()
        after = self.run_furlong("agent", "status", "--data", self.data)
        self.assertEqual((after.returncode, after.stdout.startswith("NO AGENT RUNS")), (3, True), after.stdout)
        self.delivered_once(hub)

    def test_relative_programs_are_beside_the_configuration(self):
        for name, text in (("chain", f"#!/bin/sh\necho '{json.dumps({'epoch_seed': '11' * 32, 'day': 1, 'height': 2, 'boundary': 1})}'\nexec sleep 1000\n"),
                           ("take", f"#!/bin/sh\ncat >> {self.path('finds.jsonl')}\n")):
            os.makedirs(self.path("programs"), exist_ok=True)
            self.write(f"programs/{name}", text)
            os.chmod(self.path(f"programs/{name}"), 0o755)
        self.plan(find_every=3)
        self.config(schedule='kind = "command"\ncommand = ["./programs/chain"]', rest='[finds]\ncommand = ["programs/take"]\n')
        agent = subprocess.Popen([FURLONG, "agent", "--config", self.path("agent.toml")], env=self.environment, cwd="/",
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.agents.append(agent)
        self.until(lambda: os.path.exists(self.path("finds.jsonl")), "a find")
        self.assertEqual(self.end(agent), 0)

    def test_faults_of_a_configuration(self):
        def fault(text, expected, **options):
            self.config(**{"schedule": 'seed = "x"', **options, "rest": text})
            for command in (["agent", "check"], ["agent"]):
                run = self.run_furlong(*command, "--config", self.path("agent.toml"))
                self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
                self.assertRegex(run.stdout + run.stderr, expected)
        fault("[work]\nrase = 1\n", r"agent\.toml:\d+:1: \[work\] has no key 'rase'.*'race'")
        fault("[work]\nrace = 1\n", r"agent\.toml:\d+:\d+: race: a string is wanted, not an integer")
        fault("[work]\ndataset_mib = 1\n", r"agent\.toml:\d+:\d+: dataset_mib: 1 is not between 64 and 8192")
        fault('[hub]\nurl = "http://hub.example"\n', r"url: plain http is for a hub on this machine only")
        fault("", r"lead_s: the lead of 30 s must be shorter than the epoch of 20 s", schedule='seed = "x"\nepoch_s = 20\nlead_s = 30')
        fault("", r"a schedule by the clock needs a seed", schedule="")
        fault("", r"device 'cuda:7' is not here; these are: fake:0", device='[[device]]\naddress = "cuda:7"\n')
        run = self.run_furlong("agent", "check", "--config", self.path("none.toml"))
        self.assertEqual((run.returncode, "none.toml" in run.stderr), (2, True))
        self.config(rest='[finds]\ncommand = ["no-such-program-here"]\n')
        run = self.run_furlong("agent", "check", "--config", self.path("agent.toml"))
        self.assertEqual(run.returncode, 2)
        self.assertIn("FAULT: 'no-such-program-here' is no program that can be run", run.stdout)

    def test_the_guides_example(self):
        guide = self.read(os.path.join(SOURCE, "docs/guide-fleet-operators.md"))
        text = re.search(r"```toml\n(format = 1\n.*?)```", guide, re.S)[1]
        self.write("ca.pem", "x")
        self.write("token", "t")
        text = re.sub(r'"/etc/furlong/(ca\.pem|token)"', lambda m: f'"{self.path(m[1])}"', text)
        text = text.replace('"/var/lib/furlong"', f'"{self.data}"').replace('"/usr/bin/furlong"', f'"{FAKE_WORKER}"')
        text = text.replace('"/usr/local/bin/take-find"', '"true"')
        self.write("agent.toml", text)
        check = self.run_furlong("agent", "check", "--config", self.path("agent.toml"))
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_the_demo_leaves_nothing(self):
        self.plan(find_every=5)
        run = self.run_furlong("agent", "demo", "--worker", FAKE_WORKER, "--epoch-s", "2", "--epochs", "2")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("RTX 5090 kernel race: u2-ldg at 118.3 MH/s", run.stdout)
        self.assertRegex(run.stdout, r"\nswaps      [3-9] \(the first is the start\), [2-9] of the others prepared ahead\ngaps       median 3\.20 ms")
        self.assertEqual(os.listdir(self.temporary), [])


class AgentWorkers(AgentCase):
    def test_a_crashed_worker_goes_on_where_it_was(self):
        self.plan(crash_after=5)
        self.config()
        agent = self.start()
        self.until_state(lambda s: s["devices"][0]["crashes"] >= 1, "a crash")
        self.until(lambda: self.worker_log().count(" start ") >= 3, "two restarts")
        self.plan()
        self.until_state(lambda s: s["devices"][0]["state"] == "serving" and s["devices"][0]["crashes"] >= 2, "it serves again")
        self.assertRegex(self.device()["culprit"], r"exit status 7: CUDA error 719: the card fell over$")
        starts = [int(word, 16) for word in re.findall(r" job \S+ \S+ \S+ \S+ (\S+) 0$", self.worker_log(), re.M)]
        self.assertEqual(starts[:3], [0, 5 * 4096, 10 * 4096])
        lines = self.worker_log().splitlines()
        self.assertTrue(all("prepare" in lines[i + 1] for i, line in enumerate(lines[:-1]) if " start " in line))
        self.assertEqual(self.end(agent), 0)
        # Another agent: the work resumes from the spool.
        agent = self.start()
        before = len(starts)
        self.until(lambda: len(re.findall(r" job ", self.worker_log())) > before, "a job after the restart")
        last = re.findall(r" job \S+ \S+ \S+ \S+ (\S+) 0$", self.worker_log(), re.M)[-1]
        self.assertGreaterEqual(int(last, 16), 10 * 4096)
        self.end(agent)

    def test_a_hung_worker_is_killed(self):
        self.plan(hang_after=3)
        self.config(top="hang_s = 1")
        agent = self.start()
        self.until_logged(r"the worker ended: hung: it said nothing for \d+ s and was killed")
        self.plan()
        self.until_state(lambda s: s["devices"][0]["state"] == "serving" and s["devices"][0]["crashes"] >= 1, "it serves again")
        self.end(agent)
        self.no_orphans()

    def test_a_worker_that_does_not_start(self):
        self.plan(start_fails=True)
        self.config()
        agent = self.start()
        self.until_state(lambda s: s["devices"][0]["crashes"] >= 2 and "no such card" in s["devices"][0]["culprit"], "two failed starts")
        self.until_logged(r"crash 2; started again in 2 s")
        self.assertEqual(self.end(agent), 0)

    def test_lines_that_are_none(self):
        self.plan(note_bad_line=True)
        self.config()
        agent = self.start()
        self.until_logged(r"a line of the worker cannot be read")
        self.until_state(lambda s: s["devices"][0]["state"] == "serving", "it serves all the same")
        self.end(agent)

    def test_two_cards_share_the_nonces(self):
        self.plan(devices=2)
        self.config(rest='[work]\nnonce_count = "0000000000100000"\n')
        agent = self.start()
        self.until(lambda: len(re.findall(r" job ", self.worker_log())) >= 2, "two jobs")
        jobs = {m[0]: m[1:] for m in re.findall(r"^(fake:\d) job \S+ \S+ \S+ \S+ (\S+) (\S+)$", self.worker_log(), re.M)}
        self.assertEqual(sorted(jobs.values()), [("0000000000000000", "524288"), ("0000000000080000", "524288")])
        self.end(agent)

    def test_a_schedule_by_a_command(self):
        first, second = "11" * 32, "22" * 32
        lines = self.path("chain.jsonl")
        def line(seed, height, boundary):
            return json.dumps({"epoch_seed": seed, "day": 3, "height": height, "boundary": boundary}) + "\n"
        self.write("chain.jsonl", "not JSON\n" + line(first, 100, 90))
        self.config(schedule=f'kind = "command"\ncommand = ["tail", "-n", "+1", "-f", "{lines}"]\nlead = 5')
        agent = self.start()
        self.until_logged(r"the schedule command: schedule line")
        self.until(lambda: f"job {first[:16]} 3" in self.worker_log(), "the first job")
        def add(text):
            with open(lines, "a", encoding="utf-8") as file:
                file.write(text)
        add(line(second, 101, 110))
        add(line(second, 105, 110))
        self.until(lambda: f"prepare {second[:16]} 3" in self.worker_log(), "the next is prepared")
        self.assertNotIn(f"job {second[:16]}", self.worker_log())
        add(line(second, 110, 110))
        self.until(lambda: f"job {second[:16]} 3" in self.worker_log(), "the swap")
        self.until(lambda: os.listdir(os.path.join(self.data, "packs")) == [f"{second[:16]}-3"], "old packs go")
        self.end(agent)
        self.no_orphans()


class AgentRecords(AgentCase):
    def test_every_misbehaviour_of_a_hub(self):
        hub = self.hub("500", "nonsense", "close", "half", "429", "foreign", "lost", "ok")
        self.with_hub(hub, schedule='epoch_s = 2\nlead_s = 1\nseed = "x"')
        agent = self.start()
        self.until(lambda: not hub.script and hub.records, "the script is through")
        self.until_logged(r"hub: .*: HTTP 500: <html>oops  \[2J</html>")
        self.until_logged(r"takes records again")
        self.end(agent)
        agent = self.start()  # what is left goes now
        self.until_state(lambda s: s["spool"]["records"] == 0 and s["hub"]["state"] == "ok", "the spool is empty")
        self.end(agent)
        agent = self.start()
        self.until_state(lambda s: s["pid"] == agent.pid and s["spool"]["records"] == 0, "also of the last moment")
        self.end(agent)
        self.assertTrue(any(times > 1 for times in hub.times.values()), "a batch came twice")
        ids = {}
        for batch, body in hub.batches:
            self.assertEqual(ids.setdefault(batch, body), body, "a batch has the same bytes each time")

    def test_a_hub_that_is_down_and_comes_back(self):
        hub = self.hub("slow")
        self.with_hub(hub)
        hub_url = hub.url
        agent = self.start()
        self.until(lambda: hub.requests >= 2, "it waits for an answer")
        self.assertEqual(self.end(agent), 0, "a slow hub does not hold up the end")
        hub.close()
        agent = self.start()
        self.until_state(lambda s: s["hub"]["state"] == "retrying" and s["spool"]["records"] >= 1, "it is down")
        self.assertIn(hub_url, self.state()["hub"]["error"])
        text = self.run_furlong("agent", "status", "--data", self.data).stdout
        self.assertRegex(text, r"hub +http://127\.0\.0\.1:\d+: retrying")
        self.end(agent)
        back = self.hub()
        self.with_hub(back)
        agent = self.start()
        self.until_state(lambda s: s["pid"] == agent.pid and s["hub"]["state"] == "ok" and s["spool"]["records"] == 0, "delivered")
        self.end(agent)
        self.delivered_once(back)

    def test_a_proxy_is_not_for_a_hub_on_this_machine(self):
        hub = self.hub()
        self.with_hub(hub)
        self.environment |= {name: "http://127.0.0.1:1" for name in ("http_proxy", "all_proxy", "ALL_PROXY")}
        for name in ("no_proxy", "NO_PROXY"):
            self.environment.pop(name, None)
        agent = self.start()
        self.until(lambda: hub.records, "a record at the hub")
        self.end(agent)

    def test_a_used_token_may_be_removed(self):
        hub = self.hub()
        self.write("token", "let-me-in\n")
        self.config(rest=f'[hub]\nurl = "{hub.url}"\nenrol_token_file = "token"\nretry_most_s = 1\n')
        agent = self.start()
        self.until_state(lambda s: s["hub"]["enrolled"], "enrolled")
        self.end(agent)
        os.remove(self.path("token"))
        check = self.run_furlong("agent", "check", "--config", self.path("agent.toml"))
        self.assertEqual((check.returncode, "this machine is enrolled" in check.stdout), (0, True), check.stdout)
        before = len(hub.records)
        agent = self.start()
        self.until(lambda: len(hub.records) > before, "it goes on without")
        self.end(agent)

    def test_a_replaced_key_sends_what_waits(self):
        hub = self.hub(token="another")  # which lets nobody in
        self.with_hub(hub)
        agent = self.start()
        self.until_state(lambda s: s["hub"]["state"] == "denied" and s["spool"]["records"] >= 1, "denied")
        before = self.state()["machine"]
        self.end(agent)
        os.remove(os.path.join(self.data, "machine.key"))
        friendly = self.hub()
        self.with_hub(friendly)
        agent = self.start()
        self.until(lambda: len(friendly.records) >= 2, "what waited and what came")
        self.end(agent)
        machines = {json.loads(line)["machine"] for line in friendly.records.values()}
        self.assertEqual(len(machines), 1)
        self.assertNotIn(before, machines)

    def test_refused_records_are_kept_apart(self):
        hub = self.hub("refuse")
        self.with_hub(hub)
        agent = self.start()
        self.until_state(lambda s: s["spool"]["refused"] >= 1 and s["spool"]["records"] == 0, "refused")
        self.until_logged(r"the hub refused record \S+: its base rate is impossible")
        self.end(agent)

    def test_a_batch_that_is_refused_as_a_whole(self):
        hub = self.hub("400", "400", "400")
        self.with_hub(hub)
        agent = self.start()
        self.until_state(lambda s: s["spool"]["delivered"] >= 1 and s["spool"]["records"] == 0, "delivered after all")
        self.end(agent)
        self.delivered_once(hub)

    def test_a_wrong_token(self):
        hub = self.hub(token="another")
        self.with_hub(hub)
        agent = self.start()
        self.until_state(lambda s: s["hub"]["state"] == "denied" and s["spool"]["records"] >= 1, "denied")
        self.assertEqual(hub.records, {})
        self.end(agent)

    def test_torn_lines_of_a_worker(self):
        hub = self.hub()
        self.plan(torn=True)
        self.with_hub(hub)
        agent = self.start()
        self.until(lambda: glob.glob(os.path.join(self.data, "records-*.jsonl")), "a torn line")
        self.until_state(lambda s: s["devices"][0]["state"] == "serving", "it serves")
        self.assertEqual(self.state()["spool"]["skipped_lines"], 0, "it may still become whole")
        self.end(agent)
        self.plan()
        agent = self.start()
        self.until_state(lambda s: s["spool"]["skipped_lines"] == 1 and s["spool"]["delivered"] == 1, "skipped, and the next is delivered")
        self.until_logged(r"skipped a line that is no race record")
        self.end(agent)
        self.delivered_once(hub)

    def test_kill_9_at_random_moments(self):
        seed = int(os.environ.get("FURLONG_KILL_SEED", "20261201"))
        kills = int(os.environ.get("FURLONG_KILLS", "12"))
        chance = random.Random(seed)
        words = ["ok", "ok", "lost", "close", "half", "500"]
        hub = self.hub(*(chance.choice(words) for _ in range(4 * kills)))
        self.plan(find_every=2, rate_every_s=0.02)
        taken = self.path("finds.jsonl")
        self.with_hub(hub, schedule='epoch_s = 2\nlead_s = 1\nseed = "kill"', rest=f'[finds]\ncommand = ["sh", "-c", "cat >> {taken}"]\n')
        for number in range(kills):
            agent = self.start()
            if number % 3 != 0:  # else it may not have come to its worker yet
                before = len(self.created())
                self.until(lambda: len(self.created()) > before, "a record of this agent's worker")
            time.sleep(chance.uniform(0.0, 0.8))
            self.end(agent, signal.SIGKILL)
        self.no_orphans()
        hub.script.clear()
        self.plan()
        self.with_hub(hub, schedule='epoch_s = 31000000\nlead_s = 1\nseed = "calm"', rest=f'[finds]\ncommand = ["sh", "-c", "cat >> {taken}"]\n')
        agent = self.start()
        def calm(state):
            return (state["pid"] == agent.pid and state["spool"]["records"] == 0 and state["spool"]["finds_waiting"] == 0
                    and state["devices"][0]["state"] == "serving" and len(hub.records) == len(self.created()))
        self.until_state(calm, f"all is delivered (seed {seed})")
        self.end(agent)
        self.delivered_once(hub)
        self.assertGreater(len(hub.records), 1)
        database = sqlite3.connect(os.path.join(self.data, "spool.sqlite"))
        self.addCleanup(database.close)
        finds = set(database.execute("SELECT epoch, day, nonce FROM find"))
        given = {(f["epoch"], f["day"], f["nonce"]) for f in map(json.loads, self.read(taken).splitlines())} if finds else set()
        self.assertEqual(given, finds, "each find was given at least once")


if __name__ == "__main__":
    unittest.main()
