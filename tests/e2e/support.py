"""What the end-to-end tests share: running the program in its own folders, small programs to race."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

FURLONG = os.environ["FURLONG"]
SOURCE = os.environ["FURLONG_SOURCE"]
QUICK = ["--device", "host:0", "--race-budget-s", "20"]


def variant(race, name):
    return next(v for v in race["variants"] if v["name"] == name)


def living_processes(mark):
    """pid → command line of the processes, no zombies, that have the mark in their command line or environment."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read().decode(errors="replace")
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                zombie = file.read().rsplit(") ", 1)[1][0] in "ZX"
        except OSError:
            continue
        if not zombie and int(pid) != os.getpid() and (mark in line or mark in environment):
            found[int(pid)] = line
    return found


class Transcript:
    """Lines of several tellers, with the time since the beginning."""

    def __init__(self, title):
        self.begin = time.monotonic()
        print(f"--- {title}", flush=True)

    def say(self, line):
        print(f"{time.monotonic() - self.begin:6.1f} s  {line}", flush=True)


class Run:
    """A furlong run in the background."""

    def __init__(self, argv, environment, folder, transcript):
        self.lines = []
        self.transcript = transcript
        transcript.say("$ " + " ".join([os.path.basename(FURLONG), *(os.path.basename(word) for word in argv[1:])]))
        self.process = subprocess.Popen(argv, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.threads = [threading.Thread(target=self._read, args=(stream,))
                        for stream in (self.process.stdout, self.process.stderr)]
        for thread in self.threads:
            thread.start()

    def _read(self, stream):
        for line in stream:
            self.lines.append(line.rstrip("\n"))
            if line.strip() and not re.match(r"\s*(\d+ +(kept|done|pending|failed)|shard  state|-----) ", line):
                self.transcript.say("  " + line.rstrip("\n"))

    def end(self, timeout=120):
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            for thread in self.threads:
                thread.join()
            for stream in (self.process.stdout, self.process.stderr):
                stream.close()
        self.transcript.say(f"  exit {code}")
        return code

    def kill(self):
        """Where a test failed before the end."""
        if self.process.poll() is None:
            self.process.kill()
            self.end()

    def text(self):
        return "\n".join(self.lines)


class Case(unittest.TestCase):
    """Each test has its own cache, state, configuration and temporary folder."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="furlong-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.environment = {**os.environ,
                            "FURLONG_CACHE_DIR": os.path.join(self.folder, "cache"),
                            "FURLONG_STATE_DIR": os.path.join(self.folder, "state"),
                            "FURLONG_CONFIG_DIR": os.path.join(self.folder, "config"),
                            "TMPDIR": self.temporary}
        self.environment.pop("FURLONG_SIM", None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        full = self.path(name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        return full

    def read(self, full):
        with open(full, encoding="utf-8") as file:
            return file.read()

    def read_bytes(self, full):
        with open(full, "rb") as file:
            return file.read()

    def write_bytes(self, full, data):
        with open(full, "wb") as file:
            file.write(data)

    def run_furlong(self, *arguments, environment=None, timeout=240, stdin=None):
        return subprocess.run([FURLONG, *arguments], capture_output=True, text=True, timeout=timeout, stdin=stdin,
                              env={**self.environment, **(environment or {})}, cwd=self.folder)

    def race_json(self, *arguments, code=0, **options):
        run = self.run_furlong("race", *arguments, "--json", self.path("race.json"), "--quiet", **options)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        with open(self.path("race.json"), encoding="utf-8") as file:
            return json.load(file), run

    def assert_guide_shows(self, example, word, count):
        """The `count` blocks of code about `word` in the guide for application developers stand in the example, line by line and
        together. Returns the guide."""
        guide = self.read(os.path.join(SOURCE, "docs/guide-application-developers.md"))
        blocks = [text for text in re.findall(r"^```cpp\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if word in text]
        self.assertEqual(len(blocks), count)
        source = [line.strip() for line in self.read(os.path.join(SOURCE, example)).split("\n")]
        for block in blocks:
            lines = [line.strip() for line in block.strip().split("\n")]
            self.assertIn(lines, [source[i:i + len(lines)] for i in range(len(source))])
        return guide

    def host_program(self, body, knob='values = [0, 1]\ndefault = 0\ntags = ["", "bad"]', check='kind = "exact"\nreference = "host:reference.cpp:reference"',
                     name="planted"):
        """A host program with one knob KIND; `body` sees n, x, y and KIND."""
        self.write("kernel.cpp", 'extern "C" void kernel(const furlong_block& block, unsigned n, const int* x, int* y) {\n'
                   "  const unsigned begin = block.x * 256, end = begin + 256 < n ? begin + 256 : n;\n  (void)begin; (void)end;\n"
                   + body + "\n}\n")
        self.write("reference.cpp", 'extern "C" void reference(const furlong_block&, unsigned n, const int* x, int* y) {\n'
                   "  for (unsigned i = 0; i < n; ++i) y[i] = 2 * x[i];\n}\n")
        return self.write(f"{name}.toml", f'''format = 1
[program]
name = "{name}"
language = "host"
source = "kernel.cpp"
entry = "kernel"
[problem]
n = 65536
[launch]
grid = "ceil_div(n, 256)"
block = 1
[[argument]]
name = "n"
kind = "scalar"
type = "u32"
value = "n"
[[argument]]
name = "x"
kind = "buffer"
type = "i32"
size = "n"
fill = "random"
low = -1000
high = 1000
[[argument]]
name = "y"
kind = "buffer"
type = "i32"
size = "n"
direction = "out"
fill = "poison"
[check]
{check}
[work]
unit = "element"
amount = "n"
[[knob]]
name = "KIND"
{knob}
applies = "define"
wins = "never: it is planted"
loses = "always: it is planted"
''')


GOOD_LOOP = "  for (unsigned i = begin; i < end; ++i) y[i] = 2 * x[i];"
