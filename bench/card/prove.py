"""What bench/card/prove.sh runs: the sections one after another, each with a time of its own, and one result file.

Written to OUT_DIR: prove.json (metrics, rows and bounds of every section, and where they were measured),
lottery.json (every variant in every cell), prove.log (all that the sections said).
"""
import argparse
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START = time.monotonic()
GRACE_S = 12  # between a bench's own limit, past which it begins nothing new, and its end by force

# Section → most seconds. In this order: what is short and what must hold first.
LIMITS = {"conformance": 60, "compile": 40, "faults": 75, "sanitizer": 90, "lottery": 140, "copies": 220, "classic": 230}
WORDS = {0: "ok", 1: "failed", 2: "failed", 3: "missed"}


def seconds():
    return time.monotonic() - START


def say(text):
    print(f"[{seconds():6.1f} s] {text}", flush=True)


class Run:
    """How one command ended."""

    def __init__(self, code, out, timed_out, wall_s):
        self.code, self.out, self.timed_out, self.wall_s = code, out, timed_out, wall_s


class Proof:
    def __init__(self, arguments, extra):
        self.arguments = arguments
        self.extra = extra
        self.scratch = tempfile.mkdtemp(prefix="furlong-prove-")
        self.log = open(os.path.join(arguments.out, "prove.log"), "w", encoding="utf-8")
        self.sections = {}
        self.environment = {}
        self.child = None
        self.env = dict(os.environ)
        self.env.setdefault("FURLONG_CACHE_DIR", os.path.join(self.scratch, "cache"))
        self.env.setdefault("FURLONG_COMMIT", self.commit())
        self.env["FURLONG_STATE_DIR"] = os.path.join(self.scratch, "state")

    # ---- running

    def program(self, name):
        for folder, _, files in os.walk(self.arguments.bin):
            path = os.path.join(folder, name)
            if name in files and os.access(path, os.X_OK):
                return path
        return None

    def run(self, command, limit_s, shown=r"."):
        """Runs it in the repository's root; lines of standard error that match `shown` are progress."""
        self.log.write(f"\n[{seconds():.1f} s] $ {' '.join(command)}\n")
        self.log.flush()
        started = time.monotonic()
        child = subprocess.Popen(command, cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        self.child = child
        out = []

        def follow(pipe, is_error):
            for line in pipe:
                self.log.write(line)
                self.log.flush()
                if not is_error:
                    out.append(line)
                elif re.search(shown, line):
                    print("   " + line.rstrip(), flush=True)

        readers = [threading.Thread(target=follow, args=(child.stdout, False)),
                   threading.Thread(target=follow, args=(child.stderr, True))]
        for reader in readers:
            reader.start()
        timed_out = False
        try:
            child.wait(max(1.0, limit_s))
        except subprocess.TimeoutExpired:
            timed_out = True
            for how in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(child.pid, how)
                    child.wait(4)
                    break
                except (subprocess.TimeoutExpired, ProcessLookupError):
                    pass
        for reader in readers:
            reader.join(5)
        self.child = None
        return Run(child.returncode, "".join(out), timed_out, time.monotonic() - started)

    def bench(self, name, limit_s, *options, command=(), shown=r"^\["):
        """bench_card with a section; its result file, and what went wrong ('' when nothing did)."""
        program = self.program("bench_card")
        if program is None:
            return None, "there is no bench_card in " + self.arguments.bin
        result = os.path.join(self.scratch, name + ".json")
        words = [*command, program, "--section", name, "--device", self.arguments.device, "--json", result,
                 "--limit-s", f"{max(1.0, limit_s - GRACE_S):.0f}", *options]
        if self.arguments.quick:
            words.append("--smoke")
        if name in ("lottery", "copies", "classic", "compile"):
            words += self.extra
        ended = self.run(words, limit_s, shown)
        found = None
        if os.path.exists(result):
            with open(result, encoding="utf-8") as file:
                found = json.load(file)
            os.remove(result)
        if ended.timed_out:
            return found, f"ran past {limit_s:.0f} s"
        if ended.code not in (0, 3):
            return found, (found or {}).get("failure") or f"ended with {ended.code} (see prove.log)"
        return found, ""

    def from_bench(self, name, limit_s, *options):
        found, wrong = self.bench(name, limit_s, *options)
        section = {key: (found or {}).get(key, {}) for key in ("metrics", "better", "noise")}
        section["rows"] = (found or {}).get("rows", [])
        section["missed"] = (found or {}).get("missed", [])
        if found:
            self.environment.update({key: value for key, value in found["environment"].items() if value})
        section["status"] = "failed" if wrong else "missed" if section["missed"] else "ok"
        if wrong:
            section["failure"] = wrong
        return section

    # ---- sections

    def conformance(self, limit_s):
        backend = self.arguments.device.split(":")[0]
        program = self.program(f"furlong_device_{backend}_test")
        if program is None:
            return {"status": "failed", "failure": f"there is no furlong_device_{backend}_test in {self.arguments.bin}"}
        report = os.path.join(self.scratch, "conformance.json")
        ended = self.run([program, f"--gtest_output=json:{report}"], limit_s, r"Failure|FAILED")
        section = {"metrics": {}, "missed": []}
        if not os.path.exists(report):
            return {**section, "status": "failed",
                    "failure": f"ran past {limit_s:.0f} s" if ended.timed_out else f"ended with {ended.code}"}
        with open(report, encoding="utf-8") as file:
            tests = [test for suite in json.load(file)["testsuites"] for test in suite["testsuite"]]
        failed = [test for test in tests if test.get("failures")]
        skipped = [test for test in tests if test.get("result") == "SKIPPED"]
        # The back end's own tests need no card and run anywhere: they prove nothing of it.
        ran = sum("conformance" in test["classname"] and test not in skipped for test in tests)
        section["metrics"] = {"conformance_tests": ran, "all_tests": len(tests) - len(skipped), "conformance_failures": len(failed),
                              "conformance_skipped": len(skipped)}
        section["skipped"] = [f"{test['classname']}.{test['name']}" for test in skipped]
        for test in failed:
            section["missed"].append(f"{test['classname']}.{test['name']} failed")
            say(section["missed"][-1])
        if ran == 0:
            section["missed"].append("every conformance test was skipped: is there a card?")
        section["status"] = "missed" if section["missed"] else "ok"
        return section

    def sanitizer(self, limit_s):
        """Every variant once: without a checker (which fills the compile cache), then under each."""
        until = seconds() + limit_s
        section = {"metrics": {}, "missed": [], "rows": []}
        found, wrong = self.bench("launch-all", limit_s)
        if wrong:
            return {**section, "status": "failed", "failure": wrong}
        section["rows"] = found["rows"]
        section["metrics"]["variants_launched"] = found["metrics"]["variants_launched"]
        if not self.arguments.device.startswith("cuda"):
            section["status"] = "ok"
            section["note"] = "launched without a checker: compute-sanitizer knows CUDA only"
            return section
        checker = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.access(checker, os.X_OK):
            return {**section, "status": "failed", "failure": "no compute-sanitizer: install the CUDA toolkit"}
        # The lottery's kernels have no shared memory: nothing there to race on.
        tools = [("memcheck", []), ("racecheck", ["--classes", "none"]), ("synccheck", ["--classes", "none"])]
        for tool, options in tools:
            log = os.path.join(self.scratch, tool + ".log")
            # Answers of the driver are no faults: a kernel's parameters are counted by asking for one too many.
            checked = ["--report-api-errors", "no"] if tool == "memcheck" else []
            left = until - seconds()
            if left < 5:
                section["missed"].append(f"{tool} had no time left")
                continue
            found, wrong = self.bench("launch-all", left, *options,
                                      command=[checker, "--tool", tool, "--target-processes", "application-only", *checked,
                                               "--error-exitcode", "99", "--log-file", log])
            text = ""
            if os.path.exists(log):
                with open(log, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                self.log.write(text)
            summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)
            errors = int(summary[-1]) if summary else None
            launched = (found or {}).get("metrics", {}).get("variants_launched", 0)
            section["metrics"][f"{tool}_errors"] = errors
            section["metrics"][f"{tool}_variants"] = launched
            say(f"{tool}: {launched:.0f} variants, {'no summary' if errors is None else errors} errors")
            if wrong or errors != 0:
                first = re.search(r"=========\s+((?:Invalid|Error|Program hit|Race|Warning|Barrier).*)", text)
                section["missed"].append(f"{tool}: {wrong or str(errors) + ' errors'}" +
                                         (f": {first[1]}" if first else ""))
        section["status"] = "missed" if section["missed"] else "ok"
        return section

    def race(self, variants, name, limit_s, *options):
        furlong = self.program("furlong")
        result = os.path.join(self.scratch, name + ".json")
        ended = self.run([furlong, "race", "bench/data/card/faults.toml", "--device", self.arguments.device, "--variants",
                          variants, "--trial-timeout-s", "3", "--race-budget-s", "12", "--quiet", "--json", result,
                          *options], limit_s, r"furlong")
        document = None
        if os.path.exists(result):
            with open(result, encoding="utf-8") as file:
                document = json.load(file)
        return ended, document

    def faults(self, limit_s):
        """Each planted fault in a race through the program, twice: the second time it is not tried again."""
        until = seconds() + limit_s
        section = {"metrics": {}, "missed": [], "rows": []}
        furlong = self.program("furlong")
        if furlong is None:
            return {**section, "status": "failed", "failure": "there is no furlong in " + self.arguments.bin}
        # A launch of a CPU's takes far longer than a card's: fewer of them there before the late fault.
        late = "10000" if self.arguments.device.startswith("cuda") else "500"
        for fault in ("illegal", "endless", "late"):
            missed = []
            options = ["--window", "50", "--problem", "late=" + late] if fault == "late" else []
            first, document = self.race("base,b128," + fault, fault + "-first", min(40, until - seconds()), *options)
            if first.timed_out or first.code != 0 or document is None:
                words = "ran out of time" if first.timed_out else f"ended with {first.code}"
                section["missed"].append(f"{fault}: the race {words}")
                continue
            variants = {variant["name"]: variant for variant in document["variants"]}
            culprit = variants[fault]
            row = {"row": fault, "exit": culprit["exit"], "why": culprit.get("why", ""), "notes": document["notes"],
                   "race_s": round(first.wall_s, 2)}
            if culprit["exit"] not in ("trial", "launch"):
                missed.append(f"it is '{culprit['exit']}', not found out")
            if not re.match(r"trap|hang", culprit.get("why", "")):
                missed.append(f"its fault is not named: '{culprit.get('why', '')}'")
            if any(variants[name].get("rate") is None for name in ("base", "b128")):
                missed.append("the healthy variants were not timed")
            reopened = [float(found) for note in document["notes"]
                        for found in re.findall(r"(?:open|ready) again after ([\d.]+) s", note)]
            if reopened:
                row["recover_s"] = reopened[0]
                section["metrics"][f"fault_{fault}_recover_s"] = reopened[0]
            section["metrics"][f"fault_{fault}_race_s"] = round(first.wall_s, 2)
            listed = self.run([furlong, "quarantine", "list"], 10)
            if fault not in listed.out:
                missed.append("it is not in `furlong quarantine list`")
            second, document = self.race("base,b128," + fault, fault + "-second", min(40, until - seconds()), *options)
            if second.code != 0 or document is None:
                missed.append(f"the second race ended with {second.code}")
            else:
                again = {variant["name"]: variant for variant in document["variants"]}[fault]
                row["second_exit"] = again["exit"]
                if again["exit"] != "quarantined":
                    missed.append(f"the second race tried it again: '{again['exit']}'")
            if fault == "late" and not reopened:
                missed.append("the time to recover was not told")
            section["rows"].append(row)
            section["missed"] += [f"{fault}: {what}" for what in missed]
            say(f"{fault}: {row['exit']}: {row['why']}; " +
                (f"open again after {row['recover_s']} s; " if reopened else "") +
                f"race {first.wall_s:.1f} s, the second {second.wall_s:.1f} s ({row.get('second_exit', 'failed')})")
        section["metrics"]["faults_contained"] = sum(
            1 for row in section["rows"] if not any(what.startswith(row["row"]) for what in section["missed"]))
        section["status"] = "missed" if section["missed"] else "ok"
        return section

    def compile(self, limit_s):
        return self.from_bench("compile", limit_s)

    def lottery(self, limit_s):
        details = os.path.join(self.arguments.out, "lottery.json")
        return self.from_bench("lottery", limit_s, "--details", details)

    def copies(self, limit_s):
        return self.from_bench("copies", limit_s)

    def classic(self, limit_s):
        return self.from_bench("classic", limit_s)

    # ---- the whole

    @staticmethod
    def commit():
        """Asked once here, not by every program; $FURLONG_COMMIT where the repository was not carried."""
        try:
            ended = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"], cwd=ROOT,
                                   capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return "unknown"
        return ended.stdout.strip() if ended.returncode == 0 else "unknown"

    def card(self):
        """What nvidia-smi says of the card; nothing where there is none."""
        fields = ("name", "driver_version", "memory.total", "clocks.max.sm", "clocks.max.memory", "power.limit",
                  "temperature.gpu", "ecc.mode.current", "compute_mode", "persistence_mode")
        try:
            ended = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"],
                                   capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return {}
        if ended.returncode != 0:
            return {}
        values = [value.strip() for value in ended.stdout.split("\n")[0].split(",")]
        return dict(zip(fields, values))

    def write(self):
        self.environment["commit"] = self.env["FURLONG_COMMIT"]
        def together(key):
            return {f"{name}.{metric}": value for name, section in self.sections.items()
                    for metric, value in section.get(key, {}).items()}

        document = {"name": "prove", "version": 1,  # a bench's result file, so that --compare reads it
                    "status": max((section["status"] for section in self.sections.values()),
                                  key=("ok", "missed", "failed").index, default="failed"),
                    "metrics": together("metrics"), "better": together("better"), "noise": together("noise"),
                    "missed": [f"{name}: {what}" for name, section in self.sections.items()
                               for what in section.get("missed", [])],
                    "sections": self.sections,
                    "card": self.card_facts,
                    "environment": {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                    "command": " ".join(sys.argv[1:]), "cores": str(os.cpu_count()), **self.environment}}
        path = os.path.join(self.arguments.out, "prove.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        os.replace(path + ".new", path)
        return document["status"]

    def prove(self):
        self.card_facts = self.card()
        say(f"card: {self.card_facts or 'none that nvidia-smi knows'}; device {self.arguments.device}")
        for name in self.arguments.only:
            left = self.arguments.limit_s - seconds()
            if left < 15:
                self.sections[name] = {"status": "missed", "missed": ["no time was left for it"], "metrics": {}}
                say(f"{name}: no time left")
                continue
            limit_s = min(LIMITS[name], left)
            say(f"{name}: at most {limit_s:.0f} s")
            before = seconds()
            try:
                section = getattr(self, name)(limit_s)
            except Exception as error:  # a failure of one section does not stop the next
                section = {"status": "failed", "failure": f"{type(error).__name__}: {error}", "metrics": {}}
            section["wall_s"] = round(seconds() - before, 1)
            self.sections[name] = section
            say(f"{name}: {section['status']}" + (f": {section['failure']}" if "failure" in section else ""))
            for what in section.get("missed", []):
                say(f"  missed: {what}")
            self.write()  # so that a call that is cut short leaves what it had
        status = self.write()
        self.summary()
        shutil.rmtree(self.scratch, ignore_errors=True)
        return {"ok": 0, "failed": 1, "missed": 3}[status]

    def summary(self):
        print("\nsection      status  wall s  metrics")
        for name, section in self.sections.items():
            metrics = ", ".join(f"{key} {value:.6g}" if isinstance(value, (int, float)) else f"{key} {value}"
                                for key, value in section.get("metrics", {}).items() if not key.startswith("share_"))
            print(f"{name:<12} {section['status']:<7} {section.get('wall_s', 0):6.1f}  {metrics}")
        print(f"in all {seconds():.0f} s; {os.path.join(self.arguments.out, 'prove.json')}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="bench/card/prove.sh", description="Proves the CUDA back end on one card.",
                                     epilog="Further options go to bench_card (bench_card --help).")
    parser.add_argument("bin", metavar="FURLONG_BIN_DIR", help="folder with furlong, bench_card and the device's tests")
    parser.add_argument("out", metavar="OUT_DIR")
    parser.add_argument("--only", default=",".join(LIMITS), help="sections: " + ",".join(LIMITS))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--limit-s", type=float, default=530, help="for all sections together")
    parser.add_argument("--quick", action="store_true", help="tiny runs, to try the script itself")
    arguments, extra = parser.parse_known_args()
    arguments.only = arguments.only.split(",")
    for name in arguments.only:
        if name not in LIMITS:
            parser.error(f"no section '{name}'; there are {', '.join(LIMITS)}")
    if not os.path.isdir(arguments.bin):
        parser.error(f"{arguments.bin} is no folder: build it first (./dev build portable)")
    arguments.bin = os.path.abspath(arguments.bin)
    arguments.out = os.path.abspath(arguments.out)
    os.makedirs(arguments.out, exist_ok=True)
    proof = Proof(arguments, extra)

    def stop(number, _):
        if proof.child is not None:
            try:
                os.killpg(proof.child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return proof.prove()


if __name__ == "__main__":
    sys.exit(main())
