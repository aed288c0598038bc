"""examples/linear-cuda on a card that is not there: the raced matrix-vector product, the choice that the next start finds, and what is
refused."""
import glob
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, SOURCE  # noqa: E402

BUILD = os.environ["FURLONG_BUILD"]
EXAMPLE = os.path.join(BUILD, "linear-cuda")
FAKES = os.path.join(BUILD, "tests", "fake_cuda")
SCRIPT = os.path.join(SOURCE, "bench/card/raced_kernel.sh")


@unittest.skipUnless(os.path.isdir(FAKES), "a build without the CUDA back end")
class LinearCuda(Case):
    def setUp(self):
        super().setUp()
        self.environment.update({f"FURLONG_{variable}": os.path.join(FAKES, f"libfurlong_fake_{name}.so")
                                 for variable, name in (("CUDA_DRIVER", "cuda"), ("NVRTC", "nvrtc"), ("NVML", "nvml"))})
        self.environment["FURLONG_FAKE_CUDA"] = "cards = 1"

    def example(self, *arguments, code=0):
        run = subprocess.run([EXAMPLE, *arguments], capture_output=True, text=True, timeout=900, env=self.environment, cwd=self.folder)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def test_races_once_and_is_right_from_the_cache(self):
        shape = ("16", "64", "2", "4", "0")
        first = self.example(*shape)
        self.assertRegex(first.stdout, r"^16 x 64 by 2 on Furlong_Test_Card: \w+")
        self.assertRegex(first.stdout, r"\nraced after \d+\.\d s\nright to \d\.\de-0\d of the norm; ")
        (kept,) = glob.glob(self.path("cache/kernels/*.json"))
        variant = re.search(r"Card: (\S+)\n", first.stdout)[1]
        self.assertIn(f'"variant": "{variant}"', self.read(kept))

        second = self.example(*shape)
        self.assertRegex(second.stdout, r"\nfrom the cache after \d+\.\d s\nright to ")
        self.assertEqual(second.stdout.split("\n")[:2], first.stdout.split("\n")[:2])
        self.assertEqual(second.stderr, "")

        self.write(kept, self.read(kept)[:400])
        third = self.example(*shape)
        self.assertIn("\nraced after ", third.stdout)
        self.assertRegex(third.stderr, "warning: the kept choice .* is not used, and the variants are raced: the file: byte 400")

    def test_says_what_is_wrong(self):
        self.assertIn("n is 0; it must be 1 to 1073741824", self.example("0", "64", code=1).stderr)
        self.assertIn("batch is 9; it must be 1 to 8", self.example("16", "64", "9", code=1).stderr)
        self.assertIn("usage: ", self.example("many", "64", code=2).stderr)
        self.assertIn("usage: ", self.example("16", code=2).stderr)
        self.environment["FURLONG_FAKE_CUDA"] = "cards = 0"
        self.assertIn("no CUDA card here: ", self.example(code=4).stderr)

    def test_guide_shows_the_example(self):
        """The blocks about the raced kernel in the guide stand in the example, line by line and together."""
        guide = self.assert_guide_shows("examples/linear-cuda/main.cpp", "gemv", 2)
        (shown,) = [text for text in re.findall(r"^```console\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if "$ linear-cuda" in text]
        self.assertRegex(shown, r"^(\$ linear-cuda \d+ \d+ .*\n\d+ x \d+ by \d+ on \S+: \S+\n.+\n(raced|from the cache) after \d+\.\d s\n"
                                r"right to \d\.\de-\d\d of the norm; \S+ us, \S+ GB/s of weights\n){2}$")

    def test_script_names_the_step_that_failed(self):
        run = subprocess.run(["bash", SCRIPT, "/bin/false", self.path("out")], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("raced_kernel: FAILED at: race 4096 x 4096 by 1", run.stderr)
        run = subprocess.run(["bash", SCRIPT], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 2)
        self.assertIn("usage: bench/card/raced_kernel.sh EXAMPLE OUT_DIR", run.stderr)


if __name__ == "__main__":
    unittest.main()
