"""The noise of simulated fleets is what the recorded traces give."""
import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


class Noise(unittest.TestCase):
    def test_the_table_is_what_the_traces_give(self):
        run = subprocess.run([sys.executable, os.path.join(ROOT, "bench/fleet_noise.py"), "--check"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_it_falls_with_the_root_of_the_heats(self):
        run = subprocess.run([sys.executable, os.path.join(ROOT, "bench/fleet_noise.py"), "--spread"], capture_output=True, text=True)
        spread = {int(line.split()[0]): float(line.split("sd ")[1].split("%")[0]) for line in run.stdout.splitlines()}
        self.assertEqual(sorted(spread), [1, 4, 8, 16, 32])
        for heats, sd in spread.items():
            self.assertAlmostEqual(sd * heats ** 0.5 / spread[1], 1, delta=0.15)


if __name__ == "__main__":
    unittest.main(verbosity=2)
