#!/usr/bin/env python3
"""Stands in for the furlong program where the agent starts it: `devices --json`, `pack make`, `worker`.

What the worker does is told by a JSON file, named by FAKE_WORKER and read again at every start:
  rate_every_s, find_every (rates), crash_after (rates), hang_after (rates), start_fails, torn (the record's line is cut),
  silent_ready (never ready), note_bad_line (prints a line that is none).
Its commands are appended to the file's `log`.
"""
import fcntl
import json
import os
import queue
import sys
import threading
import time
import uuid


def option(words, name, otherwise=""):
    return words[words.index(name) + 1] if name in words else otherwise


def devices():
    with open(os.environ["FAKE_WORKER"], encoding="utf-8") as file:
        count = json.load(file).get("devices", 1)
    cards = [{"address": f"fake:{i}", "label": "NVIDIA_GeForce_RTX_5090", "uuid": f"GPU-{i}", "runs_on_host_cpu": False,
              "silicon": {"hash": "00"}} for i in range(count)]
    print(json.dumps({"schema": 1, "devices": cards}))


def make_pack(words):
    folder = option(words, "--out")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "pack.toml"), "w", encoding="utf-8") as file:
        file.write(" ".join(words) + "\n")


class Worker:
    def __init__(self, words):
        with open(os.environ["FAKE_WORKER"], encoding="utf-8") as file:
            self.plan = json.load(file)
        self.device = option(words, "--device")
        self.records = option(words, "--records")
        self.words = words
        self.job = None
        self.served = None
        self.rates = 0
        self.hashes = 0
        self.commands = queue.Queue()

    def log(self, text):
        with open(self.plan["log"], "a", encoding="utf-8") as file:
            file.write(f"{self.device} {text}\n")

    def say(self, line):
        print(line, flush=True)

    def read(self):
        for line in sys.stdin:
            self.commands.put(line.rstrip("\n"))
        self.commands.put("quit")

    def record(self, pair):
        record = {"schema": 1, "ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "slot": "", "card": "NVIDIA_GeForce_RTX_5090",
                  "backend": "cuda", "program": "lottery", "source": uuid.uuid4().hex, "epoch": pair[0], "class": {"loads": 128, "wide": 0},
                  "unit": "MH/s", "variants": {"base": 115.9, "u2-ldg": 118.3}, "winner": "u2-ldg", "rate": 118.3, "base_rate": 115.9,
                  "gain_pct": 2.07, "verdict": "winner", "total_ms": 41000.0, "from_a_newer_worker": [1]}
        line = json.dumps(record)
        descriptor = os.open(self.records, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                os.write(descriptor, b"\n")
            os.write(descriptor, line.encode()[:-20] if self.plan.get("torn") else line.encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if self.plan.get("torn"):
            self.say("note the disk is full")
            return
        self.say(f"race {pair[0]} device NVIDIA_GeForce_RTX_5090 driver 1 arch sm_120 loads 128 wide 0 variants 2 base=115.9 u2-ldg=118.3 "
                 "winner u2-ldg 118.3 base 115.9 gain +2.07% compile 1 bench 2 total 41000 ms verdict winner")
        self.say("record " + line)

    def take(self, line):
        self.log(line)
        words = line.split(" ")
        if words[0] == "prepare":
            if not os.path.exists(os.path.join(words[3], "pack.toml")):
                self.say(f"error invalid prepare {words[1]} {words[2]}: no pack")
                return
            self.record(words[1:3])
            self.say(f"prepared {words[1]} {words[2]} u2-ldg 41000.000")
        elif words[0] == "job":
            if self.job:
                self.say(f"done {self.job[3]} {self.job[5]} {self.next - int(self.job[5], 16)} cut")
            self.job = words
            self.next = int(words[5], 16)
            if self.served != words[1:3]:
                self.served = words[1:3]
                self.say(f"swap {words[1]} 3.200 day {words[2]} variant u2-ldg chunks 0.400 late 1.000 prepared")
        elif words[0] == "status":
            self.say('status {"state":"fine"}')
        elif words[0] == "stop":
            self.job = None
        elif words[0] == "quit":
            self.say("bye")
            sys.stdout.flush()
            os._exit(0)

    def rate(self):
        self.rates += 1
        self.hashes += 4096
        if self.plan.get("find_every") and self.rates % self.plan["find_every"] == 0:
            self.say(f"found {self.job[3]} {self.next + 7:016x} 0000000000000001")
        self.next += 4096
        self.say(f"rate {self.job[1]} {self.job[2]} u2-ldg 117.5 hashes {self.hashes} job {self.job[3]} next {self.next:016x} power 400")
        if self.rates == self.plan.get("crash_after"):
            print("warming up\nCUDA error 719: the card fell over", file=sys.stderr, flush=True)
            os._exit(7)
        if self.rates == self.plan.get("hang_after"):
            time.sleep(3600)

    def run(self):
        self.log("start " + " ".join(self.words) + " tuning=" + os.environ.get("FURLONG_TUNING_FILE", ""))
        if self.plan.get("start_fails"):
            print("no such card", file=sys.stderr)
            return 4
        if not self.plan.get("silent_ready"):
            self.say(f"ready 1 {self.device} NVIDIA_GeForce_RTX_5090 driver 580.1 arch sm_120")
        if self.plan.get("note_bad_line"):
            self.say("rate what is this")
        threading.Thread(target=self.read, daemon=True).start()
        while True:
            try:
                self.take(self.commands.get(timeout=self.plan.get("rate_every_s", 0.05)))
            except queue.Empty:
                if self.job:
                    self.rate()


def main(words):
    if words[:1] == ["devices"]:
        return devices()
    if words[:2] == ["pack", "make"]:
        return make_pack(words)
    if words[:1] == ["worker"]:
        return Worker(words[1:]).run()
    print(f"fake worker: {words}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
