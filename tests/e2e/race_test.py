"""Races through the real program: decisions, planted faults, quarantine, Ctrl-C."""
import glob
import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, FURLONG, GOOD_LOOP  # noqa: E402

QUICK = ["--device", "host:0", "--race-budget-s", "20"]


def variant(race, name):
    return next(v for v in race["variants"] if v["name"] == name)


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
        race, _ = self.race_json("lottery", "--device", "opencl:0", "--race-budget-s", "60")
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


class PlantedFaults(Case):
    """Each kind of wrong variant is caught; the other variants go on; the exit code stays 0."""

    def caught(self, body, exit_word, why, *more):
        program = self.host_program(body)
        race, run = self.race_json(program, *QUICK, *more)
        bad = variant(race, "bad")
        self.assertEqual(bad["exit"], exit_word, bad)
        self.assertRegex(bad["why"], why)
        self.assertTrue(variant(race, "base")["gated"])
        self.assertEqual(race["winner"], "base")
        return program, run

    def test_one_wrong_element(self):
        self.caught(GOOD_LOOP + "\n#if KIND\n  if (begin <= 777 && 777 < end) y[777] ^= 1;\n#endif", "gate", r"777")

    def test_last_element(self):
        self.caught(GOOD_LOOP + "\n#if KIND\n  if (end == n) y[n - 1] = 0x55555555;\n#endif", "gate", r"65535")

    def test_one_lane_left_out(self):
        self.caught("  for (unsigned i = begin; i < end; ++i) {\n#if KIND\n    if (i % 32 == 5) continue;\n#endif\n    y[i] = 2 * x[i];\n  }",
                    "gate", r"element 5\b")

    def test_leftovers_of_an_earlier_run(self):
        # It writes nothing at all: whatever base left in the buffer would pass without poison.
        self.caught("#if KIND == 0\n" + GOOD_LOOP + "\n#endif", "gate", r"wrong|expected")

    def test_small_write_out_of_bounds(self):
        self.caught_in(GOOD_LOOP + "\n#if KIND\n  if (end == n) y[n + 3] = 7;\n#endif", ("gate", "trial"),
                       r"guard|bounds|outside|past|signal")

    def caught_in(self, body, words, why):
        program = self.host_program(body)
        race, _ = self.race_json(program, *QUICK)
        bad = variant(race, "bad")
        self.assertIn(bad["exit"], words, bad)
        self.assertRegex(bad["why"], why)
        self.assertEqual(race["winner"], "base")

    def test_does_not_compile(self):
        program, run = self.caught(GOOD_LOOP + "\n#if KIND\n  this is no C++;\n#endif", "compile", r"kernel\.cpp:\d+")

    def test_trap_is_survived_quarantined_and_not_tried_again(self):
        program, _ = self.caught(GOOD_LOOP + "\n#if KIND\n  __builtin_trap();\n#endif", "trial", r"signal|trap")
        listed = json.loads(self.run_furlong("quarantine", "list", "--json").stdout)["quarantine"]
        self.assertEqual([(e["program"], e["variant"]) for e in listed], [("planted", "bad")])
        race, _ = self.race_json(program, *QUICK)
        self.assertEqual(variant(race, "bad")["exit"], "quarantined")
        self.assertIn("cleared 1", self.run_furlong("quarantine", "clear", "bad").stdout)
        race, _ = self.race_json(program, *QUICK)
        self.assertEqual(variant(race, "bad")["exit"], "trial")

    def test_hang_is_survived_and_quarantined(self):
        program, _ = self.caught(GOOD_LOOP + "\n#if KIND\n  for (volatile bool go = true; go;) {}\n#endif", "trial", r"hang|ran past|time",
                                 "--trial-timeout-s", "2")
        started = time.monotonic()
        race, _ = self.race_json(program, *QUICK, "--trial-timeout-s", "60")
        self.assertEqual(variant(race, "bad")["exit"], "quarantined")
        self.assertLess(time.monotonic() - started, 60)

    def test_memory_that_is_not_there(self):
        program = self.host_program(GOOD_LOOP)
        text = self.read(program).replace('size = "n"\ndirection', 'size = "n * 1000000000"\ndirection')
        self.write("planted.toml", text)
        run = self.run_furlong("race", program, *QUICK, "--quiet")
        self.assertIn(run.returncode, (2, 3))
        self.assertRegex(run.stderr, r"y|memory|bytes|GiB|TiB")

    def test_base_wrong_is_exit_3(self):
        program = self.host_program("  for (unsigned i = begin; i < end; ++i) y[i] = 3 * x[i];")
        run = self.run_furlong("race", program, *QUICK, "--quiet")
        self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
        self.assertIn("base", run.stderr)


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
        self.assertEqual(self.run_furlong("pack", "verify", pack, "--signature").returncode, 2)
        self.write("config/trusted-keys", public + "\n")
        self.assertEqual(self.run_furlong("pack", "verify", pack, "--signature").returncode, 0)
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
