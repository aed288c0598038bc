"""The installed library: every public header compiles alone, and a program outside the tree builds and races."""
import concurrent.futures
import os
import re
import subprocess
import tempfile
import unittest

SOURCE = os.environ["FURLONG_SOURCE"]
BUILD = os.environ["FURLONG_BUILD"]


def furlong_includes(path):
    with open(path, encoding="utf-8") as file:
        return re.findall(r'^#include "(furlong/[^"]+)"', file.read(), re.M)


def built_first(header):
    """Whether the build itself has compiled it alone: it is the first line of its own source."""
    source = os.path.join(SOURCE, header[:-2] + ".cpp")
    if not os.path.exists(source):
        return False
    with open(source, encoding="utf-8") as file:
        first = re.search(r"^#include .*$", file.read(), re.M)
    return first is not None and first.group() == f'#include "{header}"'


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_units_name_a_page_that_is_installed(self):
        for unit in ("furlong-agent.service", "furlong-hub.service"):
            with open(os.path.join(SOURCE, "packaging", unit), encoding="utf-8") as file:
                page = re.search(r"^Documentation=file:///usr/(\S+)$", file.read(), re.M).group(1)
            self.assertTrue(os.path.exists(os.path.join(self.prefix, page)), page)

    def test_headers_compile_alone(self):
        include = os.path.join(self.prefix, "include")
        headers = []
        for folder, _, names in os.walk(os.path.join(include, "furlong")):
            self.assertNotIn("internal", folder.split(os.sep))
            headers += [os.path.relpath(os.path.join(folder, name), include) for name in names if name.endswith(".h")]
        self.assertGreater(len(headers), 30)

        def compile_alone(header):
            run = subprocess.run(["g++", "-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-I", include,
                                  "-x", "c++", "-include", os.path.join(include, header), "/dev/null"], capture_output=True, text=True)
            return header, run

        rest = []
        for header in headers:
            for other in furlong_includes(os.path.join(include, header)):
                self.assertTrue(os.path.exists(os.path.join(include, other)), f"{header} includes {other}, which is not installed")
            if not built_first(header):
                rest.append(header)
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            for header, run in pool.map(compile_alone, rest):
                self.assertEqual(run.returncode, 0, f"{header} does not compile alone:\n{run.stderr}")

    def test_shipped_programs_are_found(self):
        furlong = os.path.join(self.prefix, "bin", "furlong")
        run = subprocess.run([furlong, "emit", "gemv"], capture_output=True, text=True, cwd=self.folder.name, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("__global__", run.stdout)

    def test_consumer_builds_and_races(self):
        build = os.path.join(self.folder.name, "consumer")
        environment = {**os.environ, "FURLONG_CACHE_DIR": os.path.join(self.folder.name, "cache"),
                       "FURLONG_STATE_DIR": os.path.join(self.folder.name, "state")}
        subprocess.run(["cmake", "-S", os.path.join(SOURCE, "examples/consumer"), "-B", build, "-G", "Ninja",
                        f"-DCMAKE_PREFIX_PATH={self.prefix}"], check=True, capture_output=True)
        subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
        run = subprocess.run([os.path.join(build, "consumer")], capture_output=True, text=True, env=environment, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"base|u8")

    def test_select_example_builds_and_chooses(self):
        build = os.path.join(self.folder.name, "select")
        environment = {**os.environ, "FURLONG_CACHE_DIR": os.path.join(self.folder.name, "cache")}
        subprocess.run(["cmake", "-S", os.path.join(SOURCE, "examples/select-cuda"), "-B", build, "-G", "Ninja",
                        f"-DCMAKE_PREFIX_PATH={self.prefix}"], check=True, capture_output=True)
        subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
        tuning = os.path.join(self.folder.name, "tuning.json")
        with open(tuning, "w", encoding="utf-8") as file:
            file.write('{"schema": 1, "cards": {}}')
        run = subprocess.run([os.path.join(build, "select-cuda"), os.path.join(SOURCE, "examples/reduction/reduction.toml"), tuning,
                              "100003"], capture_output=True, text=True, env=environment, timeout=120)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("base: " + tuning + " has no card of this vendor and back end", run.stdout)
        self.assertIn("right: ", run.stdout)

    def test_linear_example_builds_and_looks_for_a_card(self):
        build = os.path.join(self.folder.name, "linear")
        subprocess.run(["cmake", "-S", os.path.join(SOURCE, "examples/linear-cuda"), "-B", build, "-G", "Ninja",
                        f"-DCMAKE_PREFIX_PATH={self.prefix}"], check=True, capture_output=True)
        subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
        run = subprocess.run([os.path.join(build, "linear-cuda")], capture_output=True, text=True, timeout=120,
                             env={**os.environ, "FURLONG_CUDA_DRIVER": "/nowhere/libcuda.so"})
        self.assertEqual(run.returncode, 4, run.stdout + run.stderr)
        self.assertIn("no CUDA card here: ", run.stderr)

    def test_hot_swap_example_builds_and_swaps(self):
        build = os.path.join(self.folder.name, "hot-swap")
        environment = {**os.environ, "FURLONG_CACHE_DIR": os.path.join(self.folder.name, "cache")}
        subprocess.run(["cmake", "-S", os.path.join(SOURCE, "examples/hot-swap"), "-B", build, "-G", "Ninja",
                        f"-DCMAKE_PREFIX_PATH={self.prefix}"], check=True, capture_output=True)
        subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
        run = subprocess.run([os.path.join(build, "hot-swap"), "host", "2", "5", "7", "4096", "3"], capture_output=True, text=True,
                             env=environment, timeout=300)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"\n2 filters, 2 swaps, \d+ missed; all \d+ steps are right\n$")


if __name__ == "__main__":
    unittest.main()
