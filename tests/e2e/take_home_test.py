"""Taking choices home: the exported header in the CUDA program of examples/take-home-cuda, the tuning file and furlong::select() in
examples/select-cuda, and the script that does both on a machine with a card."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, SOURCE  # noqa: E402

REDUCTION = os.path.join(SOURCE, "examples/reduction/reduction.toml")
SELECT = os.path.join(os.environ["FURLONG_BUILD"], "select-cuda")
SCRIPT = os.path.join(SOURCE, "bench/card/take_home.sh")
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


class TakeHome(Case):
    def run_here(self, *command, timeout=300):
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=self.environment, cwd=self.folder)

    def host_race(self, *more):
        race, _ = self.race_json(REDUCTION, "--device", "host:0", "--variants", "p16,s16", "--race-budget-s", "60", "--trial-timeout-s",
                                 "60", "--classic", "--rounds", "1", *more)
        return race

    def tuning(self):
        self.host_race("--sizes", "n=65536,1048576")
        run = self.run_furlong("export", "race.json", "--tuning", "tuning.json")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(self.read(self.path("tuning.json")))

    def test_header_in_a_cuda_program(self):
        if not os.access(NVCC, os.X_OK):
            self.skipTest("no nvcc")
        self.race_json(REDUCTION, "--device", "host:0", "--language", "cuda", "--variants", "w4-u4-cs", "--problem", "n=20001", "--classic",
                       "--rounds", "1", "--race-budget-s", "200", "--no-trial")
        run = self.run_furlong("export", "race.json", "--header", "reduction_choices.h")
        self.assertEqual(run.returncode, 0, run.stderr)
        choice = re.search(r"#define (REDUCTION_\w+_N20001)_BLOCK ", self.read(self.path("reduction_choices.h")))[1]
        compile_it = [NVCC, "-O3", "-arch=sm_90", "-I", self.folder, "-I", os.path.join(SOURCE, "examples/reduction"),
                      os.path.join(SOURCE, "examples/take-home-cuda/main.cu"), "-o", self.path("take_home")]
        run = self.run_here(*compile_it)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("say which row of reduction_choices.h to compile", run.stderr)
        run = self.run_here(*compile_it, "-DCHOICE=" + choice)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        run = self.run_here(self.path("take_home"), "20001")
        self.assertIn(run.returncode, (0, 4), run.stderr)
        if run.returncode == 4:
            self.assertIn("no CUDA card here: ", run.stderr)
        else:
            self.assertIn("right: ", run.stdout)
        self.assertEqual(self.run_here(self.path("take_home"), "0").returncode, 2)

    def test_tuning_of_races(self):
        tuning = self.tuning()
        self.assertEqual(tuning["schema"], 1)
        (card,) = tuning["cards"].values()
        (row,) = card["programs"]
        self.assertEqual((row["program"], row["worker"], row["races"]), ("reduction", "host", 2))
        self.assertEqual([size["problem"] for size in row["sizes"]], [{"n": 65536}, {"n": 1048576}])
        for size in row["sizes"]:
            self.assertIn(size["variant"], ("base", "p16", "s16"))
            self.assertEqual(set(size["gains_pct"]), {"p16", "s16"})
        run = self.run_furlong("export", "race.json", "--header", "-", "--tuning", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("reduction_choose", run.stdout)

    def test_export_says_what_it_cannot_take(self):
        self.write("race.json", '{"schema":1,"races":[]}')
        run = self.run_furlong("export", "race.json", "--tuning", "-")
        self.assertEqual(run.returncode, 2)
        self.assertIn("no race to make a tuning of", run.stderr)
        run = self.run_furlong("export", "race.json")
        self.assertEqual(run.returncode, 2)
        self.assertIn("--tuning FILE", run.stderr)

    def select(self, n, tuning="tuning.json", program=REDUCTION):
        return self.run_here(SELECT, program, tuning, str(n))

    def test_select_at_run_time(self):
        """Where there is no card, the CPU is what was raced and what is asked for."""
        tuning = self.tuning()
        sizes = next(iter(tuning["cards"].values()))["programs"][0]["sizes"]
        run = self.select(65536)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("right: ", run.stdout)
        if "no CUDA card: " not in run.stdout:
            self.assertIn("base: tuning.json has no card of this vendor and back end", run.stdout)
            return
        self.assertIn("running on the CPU instead", run.stdout)
        verb = "was not beaten" if sizes[0]["variant"] == "base" else "won"
        self.assertIn(f"{sizes[0]['variant']} {verb} on this card", run.stdout)
        self.assertIn("at n=65536; nothing to lose by what was measured", run.stdout)
        run = self.select(900001)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("at n=1048576, the nearest of 2 measured sizes to n=900001; expected to lose", run.stdout)

    def test_select_says_what_is_wrong(self):
        tuning = self.tuning()
        card = next(iter(tuning["cards"].values()))
        card["programs"][0]["program"] = "transpose"
        self.write("other.json", json.dumps(tuning))
        run = self.select(65536, "other.json")
        self.assertEqual(run.returncode, 1)
        self.assertIn("other.json is of program 'transpose' and has nothing for 'reduction'", run.stderr)
        tuning["schema"] = 2
        self.write("newer.json", json.dumps(tuning))
        run = self.select(65536, "newer.json")
        self.assertEqual(run.returncode, 1)
        self.assertIn("newer.json: tuning of schema 2, expected 1", run.stderr)
        self.assertEqual(self.select("much").returncode, 2)

    def test_guide_shows_the_example(self):
        """The block about select() in the guide stands in the example, line by line and together."""
        guide = self.read(os.path.join(SOURCE, "docs/guide-application-developers.md"))
        (block,) = (text for text in re.findall(r"^```cpp\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if "select(" in text)
        example = self.read(os.path.join(SOURCE, "examples/select-cuda/main.cpp"))
        self.assertIn([line.strip() for line in block.strip().split("\n")],
                      [[line.strip() for line in example.split("\n")[i:i + block.strip().count("\n") + 1]]
                       for i in range(example.count("\n"))])

    def test_script_names_the_step_that_failed(self):
        self.environment["SELECT_CUDA"] = "/bin/true"
        run = self.run_here("bash", SCRIPT, "/bin/false", self.path("out"))
        self.assertNotEqual(run.returncode, 0)
        step = "race convolution" if os.access(NVCC, os.X_OK) else "look for nvcc"
        self.assertIn("take_home: FAILED at: " + step, run.stderr)
        self.environment["SELECT_CUDA"] = self.path("absent")
        run = self.run_here("bash", SCRIPT, "/bin/false", self.path("out"))
        self.assertIn("FAILED at: look for nvcc and the select example", run.stderr)
        run = self.run_here("bash", SCRIPT)
        self.assertEqual(run.returncode, 2)
        self.assertIn("usage: bench/card/take_home.sh FURLONG_BINARY OUT_DIR", run.stderr)


if __name__ == "__main__":
    unittest.main()
