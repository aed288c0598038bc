"""Kernels that are wrong, hang, trap or end the process, through the real program, and the quarantine that keeps them."""
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, FURLONG, GOOD_LOOP, QUICK, variant  # noqa: E402


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
        self.assertNotIn("to do:", run.stdout)  # only base was left: more seconds would change nothing
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
        self.assertRegex(run.stdout, r"\nbad .*no compile +kernel\.cpp:\d+:\d+: error: ")

    def test_a_reason_that_the_table_cuts_stands_below_it(self):
        race, run = self.race_json(self.host_program(GOOD_LOOP + "\n#if KIND\n  if (end == n) y[n - 1] ^= 0x40000000;\n#endif",
                                                     check='kind = "tolerance"\nbound = 1e-6\nreference = "host:reference.cpp:reference"'), *QUICK)
        why = variant(race, "bad")["why"]
        self.assertGreater(len(why), 90)
        self.assertRegex(run.stdout, r"\nbad .*…\n")
        self.assertIn(f"\nbad: {why}\n", run.stdout)

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


class LateFaults(Case):
    """A variant that is good until it has run often ends the race's process; the race goes on without it."""

    def late(self, crime):
        # Gates and the trial launch it some tens of times; a window batches so short a kernel by the hundred.
        return self.host_program("#if KIND\n  static int launches;\n  if (begin == 0 && n == 65536 && ++launches > 48) { " + crime
                                 + " }\n#endif\n" + GOOD_LOOP)

    def survived(self, crime, why, *more):
        program = self.late(crime)
        race, run = self.race_json(program, *QUICK, *more)
        self.assertRegex(variant(race, "bad")["why"], why)
        self.assertTrue(variant(race, "base")["rate"], run.stdout)
        self.assertRegex(run.stderr, "'bad' ended the race's process")
        self.assertIn("note: the race began anew without bad", run.stdout)
        listed = json.loads(self.run_furlong("quarantine", "list", "--json").stdout)["quarantine"]
        self.assertEqual([e["variant"] for e in listed], ["bad"])
        again, run = self.race_json(program, *QUICK)
        self.assertEqual(variant(again, "bad")["exit"], "quarantined")
        self.assertEqual(run.stderr, "")
        self.assertEqual(os.listdir(self.temporary), [])

    def test_trap(self):
        self.survived("__builtin_trap();", "trap: killed by signal 4")

    def test_end_of_the_process(self):
        self.survived("asm volatile(\"syscall\" :: \"a\"(231), \"D\"(0));",
                      "trap: exit status 0")

    def test_hang(self):
        self.survived("for (volatile bool go = true; go;) {}", "hang: ran past", "--trial-timeout-s", "3")

    def test_several_sizes_are_recorded_once(self):
        program = self.late("__builtin_trap();")
        run = self.run_furlong("race", program, *QUICK, "--quiet", "--sizes", "n=256,65536", "--record", self.path("r.jsonl"),
                               "--json", self.path("race.json"))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(len(self.read(self.path("r.jsonl")).splitlines()), 2)
        self.assertEqual(len(json.loads(self.read(self.path("race.json")))["races"]), 2)
        self.assertEqual(run.stdout.count("planted on host:0"), 3)  # n=256 in both attempts

    def test_a_good_slow_kernel_is_not_taken_for_hung(self):
        # Three launches of it take longer than one may.
        program = self.host_program("#if KIND\n  if (begin == 0 && n == 65536) usleep(400000);\n#endif\n" + GOOD_LOOP,
                                    check='kind = "exact"\nreference = "host:reference.cpp:reference"\nproblem = { n = 1024 }')
        self.write("kernel.cpp", "#include <unistd.h>\n" + self.read(self.path("kernel.cpp")))
        race, run = self.race_json(program, *QUICK, "--trial-timeout-s", "0.8")
        self.assertTrue(variant(race, "bad")["rate"], run.stdout + run.stderr)

    def test_a_reader_that_leaves_is_no_fault(self):
        run = subprocess.run(["sh", "-c", f"{FURLONG} race {self.host_program(GOOD_LOOP)} --device host:0 --race-budget-s 5 --quiet | true"],
                             stderr=subprocess.PIPE, text=True, env=self.environment, cwd=self.folder, timeout=240)
        self.assertEqual(run.stderr, "")

    def test_a_reference_that_ends_the_process_is_named(self):
        for crime, why, *more in (("__builtin_trap();", "killed by signal 4"), ("asm volatile(\"syscall\" :: \"a\"(231), \"D\"(0));", "exit status 0"),
                                  ("for (volatile bool go = true; go;) {}", "ran past", "--trial-timeout-s", "0.2")):
            program = self.host_program(GOOD_LOOP)
            text = self.read(self.path("reference.cpp"))
            self.write("reference.cpp", text.replace("  for (unsigned i", "  " + crime + "\n  for (unsigned i", 1))
            run = self.run_furlong("race", program, *QUICK, "--quiet", *more)
            self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
            self.assertRegex(run.stderr, "reference.*'reference' of reference.cpp.*" + why)

    def test_a_kernel_that_prints_does_not_spoil_the_document(self):
        program = self.host_program(GOOD_LOOP + "\n  if (begin == 0) printf(\"kernel speaks\\n\");")
        self.write("kernel.cpp", "#include <cstdio>\n" + self.read(self.path("kernel.cpp")))
        run = self.run_furlong("race", program, *QUICK, "--quiet", "--json", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)["program"], "planted")


class Quarantine(Case):
    def test_a_broken_one_costs_trials_and_not_the_race(self):
        program = self.host_program(GOOD_LOOP)
        state = self.environment["FURLONG_STATE_DIR"]
        for broken in ("bytes", "folder"):
            shutil.rmtree(state, ignore_errors=True)
            os.mkdir(state)
            if broken == "bytes":
                self.write_bytes(os.path.join(state, "quarantine.sqlite"), bytes(range(256)) * 64)
            else:
                os.mkdir(os.path.join(state, "quarantine.sqlite"))
            race, run = self.race_json(program, *QUICK)
            self.assertTrue(variant(race, "bad")["gated"])
            self.assertRegex(run.stdout, r"note: .*quarantine\.sqlite")
            self.assertRegex(self.run_furlong("doctor").stdout, r"quarantine .*quarantine\.sqlite")


if __name__ == "__main__":
    unittest.main()
