"""examples/hot-swap: a stream whose filter changes while it runs, on the CPU and on a card that is not there. Nothing here depends on how
fast the machine is: a filter that is late is a missed swap, and the stream goes on until it is there."""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, SOURCE  # noqa: E402

BUILD = os.environ["FURLONG_BUILD"]
EXAMPLE = os.path.join(BUILD, "hot-swap")
FAKES = os.path.join(BUILD, "tests", "fake_cuda")
SWAP = re.compile(r"step (\d+): (\d+) taps, (\S+)( until its race is over)?; gap (\d+) us; (\d+) steps served meanwhile, (\d+) missed swaps, "
                  r"paused (\d+) ms")


@unittest.skipUnless(os.path.exists(EXAMPLE), "a build without the CUDA or OpenCL back end")
class HotSwap(Case):
    def example(self, *arguments, code=0):
        run = subprocess.run([EXAMPLE, *arguments], capture_output=True, text=True, timeout=900, env=self.environment, cwd=self.folder)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def check(self, run, filters, steps):
        """The swaps of a run that ended well, those of a base that took over early among them."""
        lines = run.stdout.strip().split("\n")
        swaps = [SWAP.fullmatch(line) for line in lines[:-1:2]]
        self.assertTrue(all(swaps), run.stdout)
        self.assertTrue(all(line.startswith("  ") for line in lines[1:-1:2]), run.stdout)
        end = re.fullmatch(r"(\d+) filters, (\d+) swaps, (\d+) missed; all (\d+) steps are right", lines[-1])
        self.assertTrue(end, run.stdout)
        self.assertEqual((int(end[1]), int(end[2])), (filters, filters))
        self.assertEqual(sum(int(swap[7]) for swap in swaps), int(end[3]))
        early = [swap for swap in swaps if swap[4]]
        self.assertEqual(len(swaps) - len(early), filters)
        self.assertTrue(all(swap[3] == "base" for swap in early))
        # Filters after the first come at a boundary: after `steps` steps and as many more for each that was missed.
        meanwhile = [int(swap[6]) for before, swap in zip(swaps, swaps[1:]) if not before[4]]
        missed = [int(swap[7]) for before, swap in zip(swaps, swaps[1:]) if not before[4]]
        self.assertEqual(meanwhile, [steps * (1 + count) for count in missed])
        self.assertEqual(run.stderr, "")
        return swaps

    def test_every_filter_takes_over_and_every_step_is_right(self):
        swaps = self.check(self.example("host", "3", "10", "15", "4096", "4", "2"), 3, 10)
        self.assertEqual(swaps[0][1], "0")
        # Texts that come once leave nothing behind.
        self.assertFalse(os.path.exists(self.path("cache/kernels")))

    def test_one_filter_and_one_tap(self):
        self.check(self.example("host", "1", "3", "1", "1", "2", "0"), 1, 3)

    def test_on_a_card(self):
        if not os.path.isdir(FAKES):
            self.skipTest("a build without the CUDA back end")
        self.environment.update({f"FURLONG_{variable}": os.path.join(FAKES, f"libfurlong_fake_{name}.so")
                                 for variable, name in (("CUDA_DRIVER", "cuda"), ("NVRTC", "nvrtc"), ("NVML", "nvml"))})
        self.environment["FURLONG_FAKE_CUDA"] = "cards = 1"
        self.check(self.example("cuda:0", "2", "3", "4", "512", "2", "0"), 2, 3)

    def test_says_what_is_wrong(self):
        for arguments in (("host", "many"), ("host", "0"), ("host", "1", "1", "1025"), ("host", "1", "1", "1", "1", "1", "1", "1")):
            self.assertIn("usage: ", self.example(*arguments, code=2).stderr)
        self.assertIn("no back end 'abacus'", self.example("abacus", code=4).stderr)

    def test_guide_shows_the_example(self):
        """The blocks about the hot kernel in the guide stand in the example, line by line and together; what it prints there is of its form."""
        guide = self.assert_guide_shows("examples/hot-swap/main.cpp", "hot", 3)
        (shown,) = [text for text in re.findall(r"^```console\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if "$ hot-swap" in text]
        lines = shown.strip().split("\n")[1:]
        self.assertTrue(all(SWAP.fullmatch(line) for line in lines[:-1:2]), shown)


if __name__ == "__main__":
    unittest.main()
