"""The hub through the real program, on a real SQLite store: what it takes, what it answers, what outlives it."""
import gzip
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet_manifest_test  # noqa: E402
import postgres  # noqa: E402
from hub_client import BATCH, Client, Machine  # noqa: E402
from support import Case, FURLONG, SOURCE  # noqa: E402

PATIENCE = 90  # s: no test waits for a time, each waits for something to be seen


class HubCase(Case):
    def setUp(self):
        super().setUp()
        self.store = "sqlite:" + self.path("hub.sqlite")
        self.hubs = []
        self.addCleanup(lambda: [self.end_hub(hub, signal.SIGKILL) for hub in self.hubs])

    def hub_log(self):
        return self.read(self.path("hub.log"))

    def start_hub(self, *options, limit_bytes=None, open_files=None):
        """Returns when it listens."""
        def limit():
            if limit_bytes:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
            if open_files:
                resource.setrlimit(resource.RLIMIT_NOFILE, open_files)
        log = open(self.path("hub.log"), "ab")
        self.addCleanup(log.close)
        before = os.path.getsize(self.path("hub.log"))
        hub = subprocess.Popen([FURLONG, "hub", "--listen", "127.0.0.1:0", "--store", self.store, *options], env=self.environment,
                               cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                               preexec_fn=limit)
        self.hubs.append(hub)
        found = self.until_seen(lambda: hub.poll() is not None or re.search(r"listens on (\w+)://127\.0\.0\.1:(\d+)", self.hub_log()[before:]),
                                "the hub's address")
        self.assertIsNone(hub.poll(), self.hub_log())
        self.port = int(found[2])
        return hub

    def end_hub(self, hub, how=signal.SIGTERM):
        if hub.poll() is None:
            hub.send_signal(how)
        return hub.wait(PATIENCE)

    def until_seen(self, what, why):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            value = what()
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"not seen: {why}\n{self.hub_log()[-4000:]}")

    def token(self, *options):
        run = self.run_furlong("hub", "token", self.store, *options)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.strip()

    def client(self, **options):
        client = Client(self.port, **options)
        self.addCleanup(client.close)
        return client

    def enrolled(self, number, client=None):
        machine = Machine(number)
        status, reply = (client or self.client()).enrol(machine, self.token("--label", f"box-{number}"))
        self.assertEqual((status, reply.get("machine")), (200, machine.id), reply)
        return machine


class Hub(HubCase):
    def test_a_day_in_brief(self):
        hub = self.start_hub("--refresh-s", "0.2")
        client = self.client()
        box = self.enrolled(1, client)
        records = [box.record(epoch) for epoch in range(5)]
        body = box.batch(records, agent="0.1.0", manifest="7")
        status, reply, headers = client.send_body(box, body)
        self.assertEqual((status, reply["accepted"]), (200, [r["id"] for r in records]))
        self.assertEqual(client.send_body(box, body)[1]["duplicate"], [r["id"] for r in records])
        status, reply, _ = client.send(box, [box.record(9, at=time.time() + 3600), {"schema": 1}])
        self.assertEqual((status, len(reply["refused"])), (200, 2))
        self.assertIn("ahead of the hub's clock", reply["refused"][0]["why"])
        status, reply, _ = client.send(Machine(2), [])
        self.assertEqual(status, 403)
        self.assertIn("furlong hub token", reply["error"]["message"])
        packed = box.batch([box.record(10)])
        status, reply, _ = client.ask("POST", "/v1/records", gzip.compress(packed), {**box.headers(BATCH, packed), "Content-Encoding": "gzip"})
        self.assertEqual(status, 200, reply)
        self.assertEqual(client.send(box, [], agent="0.2.0")[:2], (200, {"schema": 1, "accepted": [], "duplicate": [], "refused": []}))

        self.until_seen(lambda: client.get("/v1/cards")["races"] == 6, "the aggregates")
        row = client.get("/v1/cards/NVIDIA_H200")["rows"][0]
        self.assertEqual((row["variant"], row["races"], row["machines"]), ("u2", 6, 1))
        tuned = client.get("/v1/tuning")["cards"]["NVIDIA_H200"]
        self.assertEqual(tuned.get("variant") or tuned["classes"][0]["variant"], "u2", tuned)
        machine = client.get("/v1/machines")["machines"][0]
        self.assertEqual((machine["label"], machine["agent"], machine["accepted"], machine["duplicate"], machine["refused"]),
                         ("box-1", "0.2.0", 6, 5, 2))
        shown = client.get("/v1/races?limit=2")
        self.assertEqual(len(shown["races"]), 2)
        one = client.get("/v1/races/" + records[3]["id"])
        self.assertEqual((one["record"], one["batch"]["verified"]), (records[3], True))
        self.assertTrue(any(p["program"] == "lottery" for p in client.get("/v1/knobs")["programs"]))
        self.assertEqual(client.get("/healthz"), {"schema": 1, "status": "ok"})
        self.assertEqual(client.get("/v1/openapi.json"), json.loads(self.read(os.path.join(SOURCE, "furlong/fleet/hub/openapi.json"))))
        status, text, headers = client.ask("GET", "/metrics")
        self.assertIn(b'furlong_hub_records_total{fate="accepted"} 6\n', text)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        status, page, headers = client.ask("GET", "/")
        self.assertEqual((status, headers["Content-Security-Policy"].split(";")[0]), (200, "default-src 'self'"))
        status, page, headers = client.ask("HEAD", "/v1/machines")
        self.assertEqual((status, page), (200, b""))
        tag = client.ask("GET", "/v1/machines")[2]["ETag"]
        self.assertEqual(client.ask("GET", "/v1/machines", headers={"If-None-Match": tag})[0], 304)

        self.assertEqual(self.end_hub(hub), 0)
        self.assertIn("stopped; what was acknowledged is in the store", self.hub_log())
        self.start_hub()
        again = self.client()
        self.assertEqual(again.send_body(box, body)[1]["duplicate"], [r["id"] for r in records])
        self.assertEqual(len(again.get("/v1/races")["races"]), 6)

    def test_retired_and_replaced(self):
        self.start_hub()
        client = self.client()
        old = self.enrolled(1, client)
        self.assertEqual(client.send(old, [old.record(1)])[0], 200)
        new = Machine(2)
        token = self.token("--replaces", old.id)
        self.assertEqual(client.enrol(new, token)[0], 200)
        self.assertEqual(client.enrol(new, token)[0], 200, "the answer may have been lost")
        self.assertEqual(client.enrol(Machine(3), token)[0], 403)
        status, reply, _ = client.send(old, [])
        self.assertEqual((status, "is retired here" in reply["error"]["message"]), (403, True))
        self.assertEqual(self.run_furlong("hub", "retire", self.store, new.id).returncode, 0)
        self.assertEqual(client.send(new, [])[0], 403, "retired by another process, at once")

    def test_open_files_are_allowed_as_far_as_the_system_allows(self):
        hub = self.start_hub(open_files=(256, 8192))
        with open(f"/proc/{hub.pid}/limits", encoding="utf-8") as file:
            self.assertRegex(file.read(), r"Max open files +4608 +8192")
        self.end_hub(hub)
        self.start_hub(open_files=(256, 1024))
        self.assertIn("1024 open files are allowed here, which is enough for 512 connections", self.hub_log())

    def test_killed_during_intake_every_acknowledged_record_is_there(self):
        hub = self.start_hub("--batches-per-minute", "1000000")
        machines = [self.enrolled(number) for number in range(1, 7)]
        acknowledged, lock, stop = set(), threading.Lock(), threading.Event()

        def send(machine):
            epoch = 0
            while not stop.is_set():
                try:
                    client = Client(self.port, timeout=20)
                    while not stop.is_set():
                        records = [machine.record(epoch + i) for i in range(7)]
                        epoch += 7
                        status, reply, _ = client.send(machine, records)
                        with lock:
                            acknowledged.update(reply.get("accepted", ()) if status == 200 else ())
                except (OSError, ValueError, json.JSONDecodeError) as _:
                    time.sleep(0.05)
                except Exception as _:  # http.client's own: the hub was killed in the middle of a reply
                    time.sleep(0.05)

        threads = [threading.Thread(target=send, args=(machine,)) for machine in machines]
        for thread in threads:
            thread.start()
        try:
            for kill in range(4):
                with lock:
                    goal = len(acknowledged) + 300
                self.until_seen(lambda: len(acknowledged) >= goal, f"{goal} records acknowledged")
                hub.kill()
                hub.wait()
                hub = self.start_hub("--batches-per-minute", "1000000")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        there, before = set(), None
        client = self.client()
        while True:
            page = client.get("/v1/races?limit=1000" + (f"&before={before}" if before else ""))
            there.update(race["id"] for race in page["races"])
            before = page.get("next")
            if not before:
                break
        self.assertGreater(len(acknowledged), 1200)
        self.assertEqual(acknowledged - there, set())
        print(f"{len(acknowledged)} acknowledged, {len(there)} there, 4 kills")

    def test_a_full_store_is_told_and_recovers(self):
        hub = self.start_hub("--batches-per-minute", "1000000", limit_bytes=1 << 20)
        client = self.client()
        box = self.enrolled(1, client)
        acknowledged, epoch = set(), 0
        while True:
            records = [box.record(epoch + i, notes=["x" * 500]) for i in range(20)]
            status, reply, headers = client.send(box, records)
            epoch += 20
            if status != 200:
                break
            acknowledged.update(reply["accepted"])
            self.assertLess(epoch, 20000, "the limit was never met")
        self.assertEqual(status, 503, reply)
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        self.assertIn("the hub's store is", reply["error"]["message"])
        self.assertEqual(client.ask("GET", "/v1/races")[0], 200, "readers are served")
        self.until_seen(lambda: "batches are answered 503" in self.hub_log(), "the log tells")
        self.assertEqual(self.end_hub(hub), 0)
        self.start_hub()
        status, reply, _ = self.client().send(box, records)
        self.assertEqual((status, len(reply["accepted"])), (200, 20))
        there = self.run_furlong("hub", "machines", self.store, "--json")
        self.assertEqual(json.loads(there.stdout)["machines"][0]["accepted"], len(acknowledged) + 20)

    def test_a_store_that_was_moved_takes_nothing_until_it_is_back(self):
        hub = self.start_hub()
        client = self.client()
        box = self.enrolled(1, client)
        first, second = [box.record(1)], [box.record(2)]
        self.assertEqual(client.send(box, first)[0], 200)

        def move(name, to):
            for suffix in ("", "-wal", "-shm"):
                os.rename(self.path(name + suffix), self.path(to + suffix))
        move("hub.sqlite", "away")
        for _ in range(2):
            status, reply, headers = client.send(box, second)
            self.assertEqual(status, 503, reply)
            self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            self.assertEqual(client.ask("GET", "/healthz")[0], 503)
            self.assertEqual(client.ask("GET", "/v1/machines")[0], 503)
            self.assertEqual(client.send(Machine(2), [])[0], 503, "whether a machine is known, nobody knows")
        self.assertFalse(os.path.exists(self.path("hub.sqlite")), "no empty store is made in its place")
        move("away", "hub.sqlite")
        self.assertEqual(client.ask("GET", "/healthz")[0], 200)
        status, reply, _ = client.send(box, second)
        self.assertEqual((status, reply["accepted"]), (200, [second[0]["id"]]))
        self.assertEqual(self.end_hub(hub), 0)
        there = self.run_furlong("hub", "machines", self.store, "--json")
        self.assertEqual(json.loads(there.stdout)["machines"][0]["accepted"], 2)

    def test_a_server_that_is_killed_loses_nothing_that_was_acknowledged(self):
        if why := postgres.missing():
            self.skipTest(why)
        server = postgres.Server(self, self.path("pg"))
        self.store = server.url
        hub = self.start_hub("--batches-per-minute", "1000000", "--refresh-s", "0.2")
        boxes = [self.enrolled(number) for number in range(3)]
        acknowledged = [set() for _ in boxes]
        failures, ending = [0 for _ in boxes], threading.Event()

        def send(number):
            """What was not acknowledged is sent again, as agents do."""
            client, epoch, waiting = self.client(), 0, None
            while not ending.is_set() or waiting:
                if waiting is None:
                    waiting, epoch = boxes[number].batch([boxes[number].record(epoch)]), epoch + 1
                status, reply, _ = client.send_body(boxes[number], waiting)
                if status == 200:
                    acknowledged[number].update(reply["accepted"] + reply["duplicate"])
                    waiting = None
                elif status == 503:
                    failures[number] += 1
                    time.sleep(0.02)
                else:
                    raise AssertionError((status, reply))
        threads = [threading.Thread(target=send, args=(number,)) for number in range(len(boxes))]
        for thread in threads:
            thread.start()
        asked = self.client()
        try:
            for _ in range(2):
                counts = [len(ids) for ids in acknowledged]
                self.until_seen(lambda: all(len(ids) > count + 2 for ids, count in zip(acknowledged, counts)), "records are taken")
                before = list(failures)
                server.kill()
                self.until_seen(lambda: all(now > then for now, then in zip(failures, before)), "batches are answered 503")
                status, page, _ = asked.ask("GET", "/healthz")
                self.assertEqual(status, 503, page)
                self.assertNotIn(b"s3cret", page)
                server.start()
                self.until_seen(lambda: asked.ask("GET", "/healthz")[0] == 200, "it answers again")
        finally:
            ending.set()
            for thread in threads:
                thread.join(PATIENCE)
        self.until_seen(lambda: "it can be written to again" in self.hub_log(), "the log tells")
        self.assertEqual(self.end_hub(hub), 0)
        self.assertNotIn("s3cret", self.hub_log())
        exported = self.run_furlong("fleet", "export", "--store", self.store).stdout
        there = {json.loads(line)["id"] for line in exported.splitlines()}
        self.assertEqual(there, set().union(*acknowledged), "what was acknowledged, and nothing else")

    def test_tls(self):
        cert, key = self.path("cert.pem"), self.path("key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                        cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        self.start_hub("--tls-cert", cert, "--tls-key", key)
        self.assertIn("listens on https://", self.hub_log())
        client = self.client(ca=cert)
        box = self.enrolled(1, client)
        self.assertEqual(client.send(box, [box.record(1)])[0], 200)

    def test_what_cannot_start_says_why(self):
        def fault(expected, *options, store=True):
            run = self.run_furlong("hub", *(["--store", self.store] if store else []), *options)
            self.assertEqual(run.returncode != 0, True, run.stderr)
            self.assertRegex(run.stderr, expected)
        fault(r"--store URL is missing", store=False)
        fault(r"the kinds are .*sqlite:FILE", "--store", "mysql:x", store=False)
        fault(r"--listen 'nowhere'", "--listen", "nowhere")
        fault(r"--listen '127.0.0.1:99999'", "--listen", "127.0.0.1:99999")
        fault(r"--tls-cert and --tls-key go together", "--tls-cert", "x")
        fault(r"no-such\.pem", "--listen", "127.0.0.1:0", "--tls-cert", "no-such.pem", "--tls-key", "no-such.pem")
        fault(r"--stop-key signs stops into the file of --manifest", "--stop-key", "x")
        fault(r"no-such-key", "--stop-key", "no-such-key", "--manifest", "x")
        fault(r"no-web", "--web", self.path("no-web"))
        hub = self.start_hub()
        fault(rf"127\.0\.0\.1:{self.port}", "--listen", f"127.0.0.1:{self.port}")
        self.assertIsNone(hub.poll())


class WithAgents(HubCase, fleet_manifest_test.Fleet):
    """The real agent at the real hub."""

    def configure(self, token, rest="", **options):
        self.config(**options, rest=f'[hub]\nurl = "http://127.0.0.1:{self.port}"\nenrol_token = "{token}"\nretry_most_s = 1\n{rest}')

    def races_there(self):
        return self.asked("/v1/races?limit=1000")["races"]

    def asked(self, path):
        client = Client(self.port)
        try:
            return client.get(path)
        finally:
            client.close()

    def test_an_agent_delivers_and_outlives_the_hub(self):
        hub = self.start_hub()
        port = self.port
        self.configure(self.token("--label", "the box"), schedule='kind = "clock"\nepoch_s = 4\nlead_s = 1\nseed = "test"')
        agent = self.start()
        self.until(self.races_there, "a race at the hub")
        self.until_state(lambda s: s["hub"]["state"] == "ok", "all is well")
        machine = self.asked("/v1/machines")["machines"][0]
        self.assertEqual((machine["id"], machine["label"], machine["state"]), (self.state()["machine"], "the box", "active"))
        hub.kill()
        hub.wait()
        self.until_state(lambda s: s["hub"]["state"] == "retrying", "the agent misses it")
        log = open(self.path("hub.log"), "ab")
        self.addCleanup(log.close)
        hub = subprocess.Popen([FURLONG, "hub", "--listen", f"127.0.0.1:{port}", "--store", self.store], env=self.environment, cwd=self.folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        self.hubs.append(hub)
        self.until_state(lambda s: s["hub"]["state"] == "ok" and s["spool"]["records"] == 0, "it is found again")
        self.assertEqual(self.end(agent), 0)
        created = sorted(self.created())
        self.assertTrue(created)
        sources = {race["source"] for race in self.races_there()}
        self.assertEqual(sources - set(created), set())

    def test_an_agent_obeys_the_manifest_that_the_hub_serves(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        self.start_hub("--manifest", os.path.join(self.folder_of_fleet, "manifest.json"), "--stop-key", self.path("stop.key"))
        self.configure(self.token(), rest='manifest_every_s = 10\n[manifest]\nroot = "fleet/root.json"\n')
        agent = self.start()

        def tuned():
            file = os.path.join(self.data, "tuning.json")
            return json.loads(self.read(file))["cards"]["NVIDIA_GeForce_RTX_5090"]["variant"] if os.path.exists(file) else None
        self.until(lambda: tuned() == "u2-ldg", "the tuning of the manifest")
        client = self.client()
        self.until(lambda: [row for row in client.get("/v1/rollout")["by_version"] if row.get("manifest") == "1"], "the hub knows who follows")
        self.assertEqual(client.get("/v1/rollout")["stragglers"], [])
        self.publish("--tuning", self.tuning_file("w4"))
        self.until(lambda: client.get("/v1/rollout")["manifest"]["version"] == 2, "the new manifest is served, with no restart")
        self.until(lambda: tuned() == "w4", "the agent obeys")
        self.assertEqual(self.end(agent), 0)



if __name__ == "__main__":
    unittest.main()
