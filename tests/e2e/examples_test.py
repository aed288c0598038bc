"""The examples: the variants of their catalogues are right on the host, on OpenCL and, through the host shim, in CUDA; a planted
wrong edit is caught."""
import json
import os
import shutil
import sys
import tomllib
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, SOURCE  # noqa: E402

# The variants of one race, six at most with base: between them every knob of the language leaves its default.
VARIANTS = {
    ("reduction", "host"): "p16-s16,s1",
    ("reduction", "opencl"): "p16-w4,g64-w4",
    ("reduction", "cuda"): "w4-u4-cs,p256-b128-w4,w4-tree",
    ("transpose", "host"): "t8,t32-wc",
    ("transpose", "opencl"): "t8,direct,t32-k4-pad",
    ("transpose", "cuda"): "t8,t32-k4-xor,t64-k8-pad,t32-k4-pad-cs,t32-k4-direct",
    ("convolution", "host"): "r2,c1024-r32-u",
    ("convolution", "opencl"): "x64-y2-wy4-u,x32-local-u,wx4",
    ("convolution", "cuda"): "local-pad,x32-wx2-wy2-local-ws-u,x64-y2-wy4-u,ws-u",
    ("histogram", "host"): "p8,h4-b4",
    ("histogram", "opencl"): "g256,p8-h4-b4",
    ("histogram", "cuda"): "p8-h8-v4-bw,h4-v16,v4-m,b512,global",
}

# Sizes for the shim, which runs a thread of a card at a time: not multiples of a load or a tile. The gate's problem in the file
# stands first.
SMALL = {
    "reduction": ("n = 100003", "n = 30001"),
    "transpose": ("rows = 333, columns = 517", "rows = 130, columns = 99"),
    "convolution": ("width = 333, height = 111", "width = 99, height = 21"),
    "histogram": ("n = 100003", "n = 10001"),
}
MOST_IN_CATALOGUE = {"host": 8, "opencl": 8, "cuda": 13}

# One edit a program that leaves it valid but makes it wrong: the file, the text, what stands there instead. Each is inside the
# part that only the variant compiles, so base stays right.
WRONG = {
    "reduction": ("p16-s16", "for (unsigned k = 0; k < SUMS; ++k) total", "for (unsigned k = 0; k < (SUMS > 4 ? 15 : SUMS); ++k) total"),
    "transpose": ("t32-wc", "for (uint32_t row = first_row; row < last_row; ++row)\n    for",
                  "for (uint32_t row = first_row; row + 1 < last_row; ++row)\n    for"),
    "convolution": ("u", "weights[fy * FILTER + fx] * pixels[x + fx]", "weights[fy * FILTER + fx] * pixels[x + (fx ^ 1)]"),
    "histogram": ("h4-b4", "word >> 24", "word >> 25"),
}


class Examples(Case):
    def example(self, name, replace=None):
        """A copy of the example's folder, one text of its program file replaced; the path of that."""
        folder = self.path(name)
        shutil.copytree(os.path.join(SOURCE, "examples", name), folder)
        program = os.path.join(folder, name + ".toml")
        if replace is not None:
            text = self.read(program)
            self.assertEqual(text.count("problem = { " + replace[0] + " }"), 1, name)
            self.write(program, text.replace(*replace))
        return program

    def race(self, program, device, variants, *more):
        budget = [] if "--race-budget-s" in more else ["--race-budget-s", "60"]
        race, run = self.race_json(program, "--device", device, "--variants", variants, *budget, "--trial-timeout-s", "60",
                                   "--cache", "hot", "--classic", "--rounds", "1", *more)
        self.assertEqual([v["name"] for v in race["variants"]][0], "base", run.stdout)
        self.assertEqual({v["name"] for v in race["variants"]}, {"base", *variants.split(",")})
        return {v["name"]: v for v in race["variants"]}

    def all_right(self, name, backend):
        self.race_is_right(self.example(name), backend + ":0", VARIANTS[name, backend])

    def race_is_right(self, program, device, variants, *more):
        for v in self.race(program, device, variants, *more).values():
            self.assertTrue(v["gated"] or v.get("same_code_as"), v)
            self.assertNotIn(v.get("exit"), ("gate", "compile", "trial", "quarantined"), v)

    def opencl_right(self, name):
        devices = json.loads(self.run_furlong("devices", "--json").stdout)["devices"]
        if not any(d["address"] == "opencl:0" for d in devices):
            self.skipTest("no OpenCL device")
        self.all_right(name, "opencl")

    def cuda_right(self, name):
        self.race_is_right(self.example(name, SMALL[name]), "host:0", VARIANTS[name, "cuda"], "--language", "cuda", "--problem",
                           SMALL[name][1].replace(" ", ""), "--race-budget-s", "300",
                           "--no-trial")  # which launches each variant often, and the shim is slow

    def wrong_is_caught(self, name):
        variant, right, wrong = WRONG[name]
        program = self.example(name)
        kernel = os.path.join(os.path.dirname(program), name + ".cpp")
        text = self.read(kernel)
        self.assertEqual(text.count(right), 1, f"{name}.cpp: the text to edit is not there once: {right}")
        self.write(kernel, text.replace(right, wrong))
        variants = self.race(program, "host:0", variant)
        self.assertEqual(variants[variant].get("exit"), "gate", variants[variant])
        self.assertFalse(variants[variant]["gated"])
        self.assertRegex(variants[variant]["why"], r"\d")
        self.assertTrue(variants["base"]["gated"], variants["base"])

    def test_variants_are_of_the_catalogues(self):
        """The lists above name variants that exist; the catalogues hold eight at most."""
        for (name, backend), variants in VARIANTS.items():
            program = os.path.join(SOURCE, "examples", name, name + ".toml")
            run = self.run_furlong("knobs", "list", program, "--language", backend, "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            catalogue = json.loads(run.stdout)["editions"][0]["catalogue"]
            self.assertLessEqual(len(catalogue), MOST_IN_CATALOGUE[backend])
            self.assertEqual(set(variants.split(",")) - set(catalogue), set(), (name, backend))

    def test_every_knob_leaves_its_default(self):
        for (name, backend), variants in VARIANTS.items():
            with open(os.path.join(SOURCE, "examples", name, name + ".toml"), "rb") as file:
                knobs = tomllib.load(file)["knob"]
            for knob in knobs:
                if backend in knob.get("languages", [backend]):
                    self.assertTrue(set(knob["tags"]) & set(variants.replace(",", "-").split("-")), (name, backend, knob["name"]))

    def test_lint(self):
        for name in WRONG:
            run = self.run_furlong("knobs", "lint", os.path.join(SOURCE, "examples", name, name + ".toml"), "--strict")
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_every_example_is_here(self):
        there = {name for name in os.listdir(os.path.join(SOURCE, "examples"))
                 if os.path.exists(os.path.join(SOURCE, "examples", name, name + ".toml"))}
        self.assertEqual(there, set(WRONG))
        self.assertEqual({name for name, _ in VARIANTS}, there)

    def test_reduction_on_host(self):
        self.all_right("reduction", "host")

    def test_transpose_on_host(self):
        self.all_right("transpose", "host")

    def test_convolution_on_host(self):
        self.all_right("convolution", "host")

    def test_histogram_on_host(self):
        self.all_right("histogram", "host")

    def test_reduction_on_opencl(self):
        self.opencl_right("reduction")

    def test_transpose_on_opencl(self):
        self.opencl_right("transpose")

    def test_convolution_on_opencl(self):
        self.opencl_right("convolution")

    def test_histogram_on_opencl(self):
        self.opencl_right("histogram")

    def test_reduction_in_cuda(self):
        self.cuda_right("reduction")

    def test_transpose_in_cuda(self):
        self.cuda_right("transpose")

    def test_convolution_in_cuda(self):
        self.cuda_right("convolution")

    def test_histogram_in_cuda(self):
        self.cuda_right("histogram")

    def test_wrong_reduction_is_caught(self):
        self.wrong_is_caught("reduction")

    def test_wrong_transpose_is_caught(self):
        self.wrong_is_caught("transpose")

    def test_wrong_convolution_is_caught(self):
        self.wrong_is_caught("convolution")

    def test_wrong_histogram_is_caught(self):
        self.wrong_is_caught("histogram")


if __name__ == "__main__":
    unittest.main()
