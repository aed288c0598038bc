"""A worker as its driver sees it, and packs with planted faults."""
import hashlib
import json
import os
import queue
import random
import re
import signal
import struct
import subprocess
import threading
import time

from support import FURLONG, Case

WHERE = 0xABCDEF << 40  # nonces on which a planted fault shows
OFF = ("--race", "off")
PINNED = ("--variant", "n64")
SEEDS = {name: name * 64 for name in "abcdef"}


def digest(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def seal(folder):
    """Lists the files of a lottery pack anew, after one was edited."""
    path = os.path.join(folder, "pack.toml")
    def data(name):
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()

    text = data("pack.toml").decode()
    names = re.findall(r'^"([^"]+)" = "[0-9a-f]{64}"$', text, re.MULTILINE)
    for name in names:
        text = re.sub(rf'^"{re.escape(name)}" = "[0-9a-f]+"$', f'"{name}" = "{digest(data(name))}"',
                      text, flags=re.MULTILINE)
    lines = text.split("\n")
    fields = [b"furlong pack content 1"]
    for name in sorted(names):
        fields += [name.encode(), re.search(rf'^"{re.escape(name)}" = "([0-9a-f]+)"$', text, re.MULTILINE)[1].encode()]
    fields += [b"pack.toml", "\n".join(lines[:2] + lines[3:]).encode()]
    lines[2] = f'content = "{digest(b"".join(struct.pack("<Q", len(field)) + field for field in fields))}"'
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


class Worker:
    """A running worker: its events arrive in `events`, each a list of words."""

    def __init__(self, case, *arguments, environment=None):
        self.case = case
        self.process = subprocess.Popen(
            [FURLONG, "worker", "--serve", "--device", case.device, "--allow-unsigned", *arguments], cwd=case.folder,
            env={**case.environment, **(environment or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, bufsize=1)
        self.events = []
        self.queue = queue.Queue()
        self.reading = threading.Event()
        self.reading.set()
        self.errors = []
        self.threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self.threads:
            thread.start()
        case.addCleanup(self.kill)

    def _read(self):
        while True:
            self.reading.wait()
            line = self.process.stdout.readline()
            if not line:
                break
            self.queue.put(line.rstrip("\n"))
        self.queue.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip("\n"))

    def send(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def next(self, limit_s=120):
        """The next event's words, or None at the end."""
        line = self.queue.get(timeout=limit_s)
        if line is None:
            return None
        self.events.append(line)
        return line.split(" ")

    def wait(self, what, limit_s=180):
        """Until an event begins with `what`, or a function of its words holds; that event."""
        until = time.monotonic() + limit_s
        while True:
            try:
                words = self.next(max(until - time.monotonic(), 0.01))
            except queue.Empty:
                raise AssertionError(f"waited {limit_s} s for {what}:\n" + self.text()) from None
            if words is None:
                raise AssertionError(f"the worker ended, and did not say {what}:\n" + self.text())
            if words[0] == what if isinstance(what, str) else what(words):
                return words

    def quit(self, code=0):
        self.send("quit")
        self.end(code)

    def end(self, code=0):
        while self.next() is not None:
            pass
        self.case.assertEqual(self.process.wait(60), code, self.text())

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reading.set()
        for thread in self.threads:
            thread.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass

    def text(self):
        return "\n".join(self.events + self.errors)

    def of(self, kind):
        return [line.split(" ") for line in self.events if line.startswith(kind + " ")]

    def finds(self, job):
        return [(words[2], words[3]) for words in self.of("found") if words[1] == job]

    def back(self):
        """The process that owns the device."""
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/children", encoding="ascii") as file:
                children = file.read().split()
            for child in map(int, children):
                try:
                    with open(f"/proc/{child}/cmdline", "rb") as file:
                        if b"worker-back" in file.read():
                            return child
                except OSError:
                    pass
        return None


class WorkerCase(Case):
    device, geometry, text = "host:0", "small", "lottery.cpp"

    def pack(self, name, edit=None, folder="packs"):
        """A pack of seed aaaa…; `edit` changes the device's text. Returns the words `epoch day path`."""
        epoch = SEEDS[name][:16]
        out = self.path(f"{folder}/{epoch}-0")
        run = self.run_furlong("pack", "make", "lottery", "--epoch-seed", SEEDS[name], "--day", "0", "--geometry", self.geometry,
                               "--out", out)
        self.assertEqual(run.returncode, 0, run.stderr)
        if edit:
            path = os.path.join(out, self.text)
            text = edit(self.read(path))
            self.assertNotEqual(text, self.read(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            seal(out)
        return f"{epoch} 0 {out}"

    def worker(self, *arguments, **options):
        worker = Worker(self, *arguments, **options)
        worker.wait("ready")
        return worker

    def status(self, worker):
        worker.send("status")
        return json.loads(" ".join(worker.wait("status")[1:]))


def job(pack, name, start=0, count=0, target=1 << 48):
    epoch, day = pack.split(" ")[:2]
    return f"job {epoch} {day} {name} {target:016x} {start:016x} {count}"


def planted(statement):
    """An edit of the host text: variant n64 does this on the nonces from WHERE on."""
    return lambda text: text.replace(
        "  const uint64_t first = block.x * block.threads_x;",
        f"  if ((start >> 40) == {WHERE >> 40}u && block.threads_x == 64u) {{ {statement} }}\n"
        "  const uint64_t first = block.x * block.threads_x;")


class FaultCase(WorkerCase):
    pinned, count, target = "n64", 60_000, 1 << 55
    killed_race, killed_count, killed_target = "n64", 6_000_000, 1 << 49

    def clean(self, pack, count, target):
        """The finds of an undisturbed run on base."""
        worker = self.worker(*OFF)
        worker.send("prepare " + pack, job(pack, "j", start=WHERE, count=count, target=target))
        worker.wait("done")
        worker.quit()
        return worker.finds("j")

    def faulty(self, edit, *arguments):
        """The pinned variant is faulty on these nonces: the job is done all the same, each nonce once."""
        plain, pack = self.pack("a", folder="plain"), self.pack("a", edit=edit)
        count, target = self.count, self.target
        wanted = self.clean(plain, count, target)
        self.assertGreater(len(wanted), 20)
        worker = self.worker("--variant", self.pinned, *arguments)
        worker.send("prepare " + pack)
        self.assertEqual(worker.wait("prepared")[3], self.pinned)
        worker.send(job(pack, "j", start=WHERE, count=count, target=target))
        done = worker.wait("done", 300)
        self.assertEqual(done[2:], [f"{WHERE:016x}", str(count), "complete"])
        self.assertEqual(sorted(worker.finds("j")), sorted(wanted))
        return worker

    def killed(self, kills, prepare_next):
        """The process that owns the device is killed so many times in mid-job: each nonce is done once all the same."""
        first, second = self.pack("a"), self.pack("b")
        wanted = self.clean(first, self.killed_count, self.killed_target)
        worker = self.worker("--race", self.killed_race, "--race-budget-s", "6", "--rate-every-s", "0.5")
        worker.send("prepare " + first)
        worker.wait("prepared")
        worker.send(job(first, "j", start=WHERE, count=self.killed_count, target=self.killed_target))
        if prepare_next:
            worker.send("prepare " + second)
        chance = random.Random(5)
        made = 0
        while not worker.of("done"):
            try:
                worker.wait("done", chance.uniform(0.1, 0.8))
            except AssertionError as error:
                if "waited" not in str(error):
                    raise
                back = worker.back()
                if back and made < kills and len(worker.of("recovered")) == made:
                    os.kill(back, signal.SIGKILL)
                    made += 1
                    worker.wait("recovered")
        self.assertGreater(made, 0)
        self.assertEqual(worker.of("done")[0][2:], [f"{WHERE:016x}", str(self.killed_count), "complete"])
        found = worker.finds("j")
        self.assertEqual(sorted(found), sorted(wanted))
        self.assertEqual(len(set(found)), len(found))
        if prepare_next and not any(words[1] == SEEDS["b"][:16] for words in worker.of("prepared")):
            # It is prepared again.
            worker.wait(lambda words: words[0] == "prepared" and words[1] == SEEDS["b"][:16])
        worker.quit()
        return worker
