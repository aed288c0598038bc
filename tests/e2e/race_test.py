"""Races through the real program: decisions, program files, packs, Ctrl-C."""
import glob
import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, FURLONG, GOOD_LOOP, QUICK, SOURCE, variant  # noqa: E402


class Race(Case):
    def test_lottery_on_host(self):
        race, run = self.race_json("lottery", "--device", "host:0", "--race-budget-s", "30", "--report", self.path("race.html"))
        self.assertIn(race["verdict"], ("winner", "dead-heat", "out-of-budget"))
        for v in race["variants"]:
            self.assertTrue(v["gated"] or v.get("same_code_as"), v)
        page = self.read(self.path("race.html"))
        for heading in ("Gain over base", "Heats over time", "Elimination order", "Clock and power", "Knob effects"):
            self.assertIn(heading, page)
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))
        self.assertNotIn("<script src", page)

    def test_lottery_on_opencl(self):
        devices = json.loads(self.run_furlong("devices", "--json").stdout)["devices"]
        if not any(d["address"] == "opencl:0" for d in devices):
            self.skipTest("no OpenCL device")
        race, _ = self.race_json("lottery", "--device", "opencl:0", "--race-budget-s", "120")
        self.assertEqual([v["name"] for v in race["variants"]],
                         ["base", "u2", "u8", "g64", "g128", "g256", "fast", "u2-g128", "u8-g128"])
        self.assertTrue(all(v["gated"] or v.get("same_code_as") for v in race["variants"]))

    def test_lottery_on_sim_finds_the_planted_winner(self):
        sim = self.write("sim.json", json.dumps({"schema": 1, "devices": [{"timing": {"gain": {"u2-ldg": 0.03}, "noise": 0.001}}]}))
        race, run = self.race_json("lottery", "--device", "sim:0", "--language", "cuda", environment={"FURLONG_SIM": sim})
        self.assertEqual(race["verdict"], "winner", run.stdout)
        self.assertEqual(race["winner"], "u2-ldg")
        self.assertEqual(len(race["variants"]), 17)

    def test_same_seed_same_race_on_sim(self):
        first, _ = self.race_json("lottery", "--device", "sim:0", "--language", "cuda", "--seed", "7")
        second, _ = self.race_json("lottery", "--device", "sim:0", "--language", "cuda", "--seed", "7")
        self.assertEqual(first, second)

    def sim(self, **device):
        return {"FURLONG_SIM": self.write("sim.json", json.dumps({"schema": 1, "devices": [device]}))}

    def race_on_sim(self, *arguments, environment=None, language="cuda"):
        return self.run_furlong("race", "lottery", "--device", "sim:0", "--language", language, "--quiet", *arguments,
                                environment=environment)

    def test_the_example_of_the_readme(self):
        """Its commands give what stands there."""
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            readme = file.read()
        file_line, race_line = re.findall(r"^    \$ (.*)$", readme, re.MULTILINE)[:2]
        self.assertEqual(race_line.split()[:2], ["FURLONG_SIM=sim.json", "build/release/furlong"])
        subprocess.run(["sh", "-c", file_line], cwd=self.folder, check=True)
        run = self.run_furlong(*race_line.split()[2:], environment={"FURLONG_SIM": self.path("sim.json")})
        shown = readme[readme.index(race_line) + len(race_line):].split("\nOn a real card", 1)[0].splitlines()
        shown = [line.strip() for line in shown if line.strip() not in ("", "…")]
        self.assertGreater(len(shown), 6)
        said = [line.strip() for line in run.stdout.splitlines()]
        self.assertEqual([line for line in shown if line not in said], [])
        self.assertEqual(sorted(shown, key=said.index), shown)

    def test_the_table_is_in_the_order_of_the_gains(self):
        noisy = self.sim(timing={"gain": {"u2-ldg": 0.03, "w4": -0.02}, "noise": 0.02, "window_noise": 0.02})
        lines = self.race_on_sim(environment=noisy).stdout.splitlines()
        table = lines[lines.index(next(line for line in lines if line.startswith("-------"))) + 1:]
        gains = []
        for line in table[:table.index("")]:
            gains.append(float(line.split()[2].rstrip("%")) if not line.startswith("base ") else 0.0)
        self.assertEqual(len(gains), 17)
        self.assertEqual(gains, sorted(gains, reverse=True))

    def test_nothing_timed_is_exit_3(self):
        throttled = self.sim(faults=[{"variant": "*", "fault": "throttle"}])
        # An odd number of windows in a heat: the throttle state is not at its end what it was at its beginning.
        run = self.race_on_sim("--json", "race.json", "--pareto", environment=throttled, language="host")
        self.assertEqual(run.returncode, 3, run.stdout)
        self.assertEqual(json.loads(self.read(self.path("race.json")))["verdict"], "none")
        self.assertRegex(run.stdout, r"\nbase +- .*not timed")
        self.assertIn("not dominated: none", run.stdout)
        self.assertNotIn("to do:", run.stdout)  # more seconds would not help

    def test_too_small_a_budget_says_what_to_do(self):
        run = self.race_on_sim("--race-budget-s", "2", "--json", "race.json", "--report", "race.html",
                               environment=self.sim(compile_ms=400, timing={"base_ms": 300}))
        self.assertEqual(run.returncode, 3, run.stdout)
        self.assertIn("to do: give it more seconds (--race-budget-s)", run.stdout)
        # What had no turn is not called wrong, whichever stage the budget ended at.
        late = [v for v in json.loads(self.read(self.path("race.json")))["variants"] if v["exit"] != "in"]
        self.assertGreater(len(late), 8)
        self.assertEqual(run.stdout.count(" no time "), len(late), run.stdout)
        page = self.read(self.path("race.html"))
        self.assertIn("To do: give it more seconds (--race-budget-s)", page)
        notes = json.loads(self.read(self.path("race.json")))["notes"]
        self.assertGreater(len(notes), 0)
        for note in notes:
            self.assertIn("note: " + note + "\n", run.stdout)
            self.assertIn("Note: " + html.escape(note, quote=False), page)

    def test_the_best_so_far_is_marked(self):
        close = self.sim(timing={"gain": {"u2-ldg": 0.031, "ldg": 0.029}, "noise": 0.002, "window_noise": 0.004})
        run = self.race_on_sim("--variants", "base,u2-ldg,ldg", "--max-pause-ms", "400", "--json", "race.json", "--report", "race.html",
                               environment=close)
        race = json.loads(self.read(self.path("race.json")))
        self.assertEqual(race["verdict"], "out-of-budget", run.stdout)
        self.assertNotEqual(race["winner"], "base", run.stdout)
        self.assertRegex(run.stdout, rf"\n{race['winner']} +\d.*best so far")
        self.assertNotIn("winner", run.stdout)
        self.assertIn("best so far", self.read(self.path("race.html")))
        self.assertIn("to do: give it more seconds", run.stdout)

    def test_a_lost_device_costs_the_variant_and_not_the_race(self):
        lossy = self.sim(timing={"gain": {"ldg": 0.02}}, faults=[{"variant": "u8", "fault": "trap"},
                                                              {"variant": "w2", "fault": "device_lost", "after_launches": 50}])
        run = self.race_on_sim("--json", "race.json", environment=lossy)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        race = json.loads(self.read(self.path("race.json")))
        self.assertEqual(race["winner"], "ldg", run.stdout)
        for name in ("u8", "w2"):
            self.assertNotEqual(variant(race, name)["exit"], "in")
            self.assertTrue(variant(race, name)["why"])

    def test_json_on_standard_output_is_nothing_else(self):
        run = self.race_on_sim("--json", "-", "--explain", "--pareto", "--line", "--report", "race.html")
        self.assertEqual(json.loads(run.stdout)["program"], "lottery")
        self.assertIn("dead heat", run.stderr)
        run = self.race_on_sim("--json", "-", "--sizes", "count=1024,4096")
        self.assertEqual(len(json.loads(run.stdout)["races"]), 2)

    def test_outputs_that_cannot_be_written_are_told_before_the_race(self):
        os.mkdir(self.path("folder"))
        self.write("file", "")
        for option in ("--report", "--json", "--record"):
            for name, what in (("folder", "is a folder"), ("file/race.out", "file is no folder")):
                run = self.race_on_sim(option, name)
                self.assertEqual((run.returncode, run.stdout), (2, ""), option)
                self.assertIn(option, run.stderr)
                self.assertIn(what, run.stderr)
            self.assertFalse(os.path.exists(self.path("new")))
            self.assertEqual(self.race_on_sim(option, "new/deep/race.out").returncode, 0)
            shutil.rmtree(self.path("new"))

    def test_sizes_without_a_value(self):
        for text in ("count=1,,2", "count=", "=1", "count"):
            run = self.race_on_sim("--sizes", text)
            self.assertEqual((run.returncode, run.stdout), (2, ""), text)
            self.assertIn(f"--sizes takes NAME=V1,V2,…, not '{text}'", run.stderr)

    def test_pareto_gives_the_figures(self):
        run = self.race_on_sim("--pareto", environment=self.sim(timing={"gain": {"u2-ldg": 0.03}}, registers={"u2-ldg": 48, "*": 32}))
        table = run.stdout[run.stdout.index("not dominated"):].splitlines()
        self.assertRegex(table[0], r"^not dominated +MH/s +gain over base .*registers")
        rows = {line.split()[0]: line.split() for line in table[2:]}
        self.assertIn("48", rows["u2-ldg"])
        self.assertIn("32", rows["base"])

    def test_a_real_winner_on_host(self):
        program = self.host_program("""
#if KIND == 0
  for (int again = 0; again < 40; ++again)
    for (unsigned i = begin; i < end; ++i) { y[i] = 2 * x[i] + again; asm volatile("" ::: "memory"); }
#endif
""" + GOOD_LOOP, knob='values = [0, 1]\ndefault = 0\ntags = ["", "fast"]')
        race, run = self.race_json(program, *QUICK)
        self.assertEqual((race["verdict"], race["winner"]), ("winner", "fast"), run.stdout)
        # Not "low": it is of the last heat, and what qualified a winner under noise may have been an earlier, narrower one.
        self.assertGreater(variant(race, "fast")["gain"], 0.005)


class Trial(Case):
    """The trial process as an application that embeds Furlong starts it (docs/guide-application-developers.md)."""

    def events(self, program):
        request = json.dumps({"furlong-trial": 1, "program": json.dumps(program), "device": "host:0", "variants": ["base", "bad"]})
        request = request.replace('{"furlong-trial": 1', '{"furlong-trial":1', 1)
        run = subprocess.run([FURLONG, "trial"], input=request + "\n", capture_output=True, text=True, env=self.environment,
                             cwd=self.folder, timeout=240)
        return [json.loads(line) for line in run.stdout.splitlines() if line.startswith('{"furlong-trial":')], run

    def test_a_program_is_its_file_and_its_language(self):
        program = self.host_program(GOOD_LOOP)
        for more in ({}, {"problem": {"n": 4096}}):
            events, run = self.events({"what": program, "language": "host", **more})
            self.assertEqual([(e["event"], e.get("variant")) for e in events if e["event"] in ("passed", "error", "failed")],
                             [("passed", "base"), ("passed", "bad")], run.stdout + run.stderr)

    def test_what_cannot_be_read_is_named(self):
        program = self.host_program(GOOD_LOOP)
        for bad, word in (({"language": "host"}, "what"), ({"what": program}, "language"),
                          ({"what": program, "language": "host", "problem": 4096}, "problem"),
                          ({"what": program, "language": "host", "day": "x"}, "day")):
            events, run = self.events(bad)
            self.assertEqual(events[-1]["event"], "error", run.stdout)
            self.assertIn(word, events[-1]["why"])


class BadFiles(Case):
    def message(self, edit, *words, code=2):
        program = self.host_program(GOOD_LOOP)
        self.write("planted.toml", edit(self.read(program)))
        run = self.run_furlong("race", program, "--device", "host:0", "--quiet")
        self.assertEqual(run.returncode, code, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def test_unknown_key(self):
        self.message(lambda t: t.replace("entry =", "entri ="), "planted.toml:", "entri", "entry")

    def test_wrong_type(self):
        self.message(lambda t: t.replace('name = "planted"', "name = 5"), "planted.toml:", "name")

    def test_undefined_name(self):
        self.message(lambda t: t.replace("ceil_div(n, 256)", "ceil_div(m, 256)"), "planted.toml:", "m")

    def test_cycle(self):
        self.message(lambda t: t.replace("[launch]", '[let]\na = "b + 1"\nb = "a + 1"\n[launch]'), "planted.toml:", "a", "b")

    def test_anchors(self):
        knob = 'applies = "rewrite"\nrewrites = [{{ value = 1, anchor = "{}", replace = "" }}]'
        for anchor, what in [("nowhere to be found", "not found"), ("begin", "times")]:
            program = self.host_program(GOOD_LOOP)
            text = self.read(program).replace('applies = "define"', knob.format(anchor))
            self.write("planted.toml", text)
            run = self.run_furlong("race", program, "--device", "host:0", "--quiet")
            self.assertIn("bad", run.stdout + run.stderr)
            self.assertIn(what, run.stdout + run.stderr)

    def test_missing_files(self):
        run = self.run_furlong("race", "gone.toml", "--device", "host:0")
        self.assertEqual(run.returncode, 2)
        self.assertIn("gone.toml", run.stderr)
        self.message(lambda t: t.replace("kernel.cpp", "gone.cpp"), "gone.cpp")


class Packs(Case):
    def make(self):
        run = self.run_furlong("pack", "make", "lottery", "--geometry", "small", "--out", self.path("pack"))
        self.assertEqual(run.returncode, 0, run.stderr)
        return self.path("pack")

    def test_same_inputs_same_bytes(self):
        first = self.make()
        run = self.run_furlong("pack", "make", "lottery", "--geometry", "small", "--out", self.path("again"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(subprocess.run(["diff", "-r", first, self.path("again")]).returncode, 0)

    def test_another_pack_in_its_place(self):
        pack = self.make()
        other = ("pack", "make", "lottery", "--geometry", "small", "--day", "1", "--out", pack)
        run = self.run_furlong(*other)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--replace", run.stderr)
        self.assertEqual(self.run_furlong(*other, "--replace").returncode, 0)

    def test_flipped_byte_and_missing_file(self):
        pack = self.make()
        for name in sorted(glob.glob(os.path.join(pack, "**", "*"), recursive=True)):
            if os.path.isdir(name):
                continue
            good = self.read_bytes(name)
            bad = bytearray(good)
            bad[len(bad) // 2] ^= 1
            self.write_bytes(name, bytes(bad))
            run = self.run_furlong("race", pack, "--device", "host:0", "--allow-unsigned", "--quiet")
            self.assertEqual(run.returncode, 2, name)
            self.assertIn("pack", run.stderr)
            os.remove(name)
            run = self.run_furlong("pack", "verify", pack)
            self.assertNotEqual(run.returncode, 0, name)
            self.assertIn(os.path.basename(name), run.stderr)
            self.write_bytes(name, good)
        self.assertEqual(self.run_furlong("pack", "verify", pack).returncode, 0)

    def test_trust(self):
        pack = self.make()
        run = self.run_furlong("race", pack, "--device", "host:0", "--quiet")
        self.assertEqual(run.returncode, 2)
        self.assertIn("--allow-unsigned", run.stderr)
        made = self.run_furlong("pack", "keygen").stdout
        public = next(line.split()[-1] for line in made.splitlines() if line.startswith("public"))
        self.assertEqual(self.run_furlong("pack", "sign", pack).returncode, 0)
        run = self.run_furlong("pack", "verify", pack, "--signature")
        self.assertEqual(run.returncode, 2)
        self.assertIn(f"by {public}, which is not in {self.path('config/trusted-keys')}", run.stderr)
        self.assertIn(f"by {public}, which is not in", self.run_furlong("pack", "show", pack).stdout)
        self.write("config/trusted-keys", public + "\n")
        self.assertEqual(self.run_furlong("pack", "verify", pack, "--signature").returncode, 0)
        self.assertIn(f"by the trusted key {public}", self.run_furlong("pack", "show", pack).stdout)
        self.assertEqual(os.stat(self.path("config/signing-key")).st_mode & 0o077, 0)


class Interrupt(Case):
    def children(self):
        """Live processes whose environment names this test's state folder."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if self.environment["FURLONG_STATE_DIR"].encode() in self.read_bytes(f"/proc/{entry}/environ") \
                            and self.read(f"/proc/{entry}/stat").split(") ")[1][0] != "Z":
                        found.append(int(entry))
                except OSError:
                    pass
        return found

    def interrupted(self, program, delay, number=signal.SIGINT):
        process = subprocess.Popen([FURLONG, "race", program, "--device", "host:0", "--quiet", "--trial-timeout-s", "60"],
                                   env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + number, errors)
        deadline = time.monotonic() + 10
        while self.children() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(self.children(), [])
        self.assertEqual(os.listdir(self.temporary), [])

    def test_ctrl_c_leaves_nothing(self):
        # In the trial of a variant that hangs, and so at a moment that does not depend on the machine's speed.
        program = self.host_program(GOOD_LOOP + "\n#if KIND\n  for (volatile bool go = true; go;) {}\n#endif")
        for number in (signal.SIGINT, signal.SIGTERM):
            self.interrupted(program, 6, number)

    def test_ctrl_c_at_once(self):
        self.interrupted(self.host_program(GOOD_LOOP + "\n#if KIND\n  for (volatile bool go = true; go;) {}\n#endif"), 0.7)


if __name__ == "__main__":
    unittest.main()
