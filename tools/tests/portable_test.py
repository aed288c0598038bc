"""The reader of portable programs against real programs with one fault each, and against readelf's words for those
that this machine cannot link."""
import importlib.machinery
import importlib.util
import os
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "portable")
loader = importlib.machinery.SourceFileLoader("portable", TOOL)
portable = importlib.util.module_from_spec(importlib.util.spec_from_loader("portable", loader))
loader.exec_module(portable)

# Throws, prints and takes a logarithm, so that libstdc++, libgcc and libm are all needed.
PROGRAM = """#include <cmath>
#include <iostream>
#include <stdexcept>
int main(int argc, char** argv) {
  try { if (argc > 9) throw std::runtime_error(argv[1]); } catch (const std::exception& e) { std::cout << e.what(); }
  std::cout << std::log(argc) << SOURCE;
}
"""
STATIC = ["-static-libstdc++", "-static-libgcc"]

# What `readelf -W -l -d -V --dyn-syms` writes, cut to the lines that count.
WORDS = """      [Requesting program interpreter: {loader}]
Dynamic section at offset 0x2de0 contains 27 entries:
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
Symbol table '.dynsym' contains 3 entries:
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND __isoc23_strtol@{version} (3)
     2: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND puts@GLIBC_2.2.5 (2)
Version needs section '.gnu.version_r' contains 1 entry:
  000000: Version: 1  File: libc.so.6  Cnt: 2
  0x0010:   Name: {version}  Flags: none  Version: 3
  0x0020:   Name: GLIBC_2.2.5  Flags: none  Version: 2
"""


def words(version="GLIBC_2.36", loader="/lib64/ld-linux-x86-64.so.2"):
    return WORDS.format(version=version, loader=loader)


class RealPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.object = os.path.join(cls.folder.name, "main.o")
        cls.compile("main.o", "-c", source='""')

    @classmethod
    def compile(cls, name, *options, source=None):
        main = os.path.join(cls.folder.name, "main.cpp")
        with open(main, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        path = os.path.join(cls.folder.name, name)
        inputs = [cls.object] if source is None else [f"-DSOURCE={source}", main]
        subprocess.run(["g++", *inputs, "-o", path, *options], check=True)
        return path

    def check(self, *arguments):
        run = subprocess.run([TOOL, *arguments], capture_output=True, text=True)
        return run.returncode, run.stdout, run.stderr

    def test_portable(self):
        path = self.compile("good", *STATIC)
        code, out, err = self.check(path)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"good: \d+\.\d MiB, needs only glibc 2\.\d+ or newer \((ld-linux\S+ )?libc\.so\.6 libm\.so\.6\)\n")
        self.assertEqual(self.check("--quiet", path), (0, "", ""))

    def test_names_each_shared_library(self):
        code, _, err = self.check(self.compile("shared"))
        self.assertEqual(code, 1)
        self.assertIn("shared needs libstdc++.so.6", err)
        self.assertIn("shared needs libgcc_s.so.1", err)
        self.assertNotIn("needs libm", err)
        code, _, err = self.check(self.compile("half", "-static-libgcc"))
        self.assertEqual(code, 1)
        self.assertIn("half needs libstdc++.so.6", err)

    def test_one_bad_program_among_good_ones(self):
        code, out, err = self.check(self.compile("one", *STATIC), self.compile("two"), self.compile("three", *STATIC))
        self.assertEqual(code, 1)
        self.assertIn("two needs", err)
        self.assertNotIn("two", out)
        self.assertEqual(len(out.split("\n")), 3)

    def test_wholly_static(self):
        code, _, err = self.check(self.compile("static", "-static"))
        self.assertEqual(code, 1)
        self.assertIn("could open no library of a card", err)

    def test_search_path(self):
        code, _, err = self.check(self.compile("rpath", *STATIC, "-Wl,-rpath,/opt/here"))
        self.assertEqual(code, 1)
        self.assertRegex(err, r"looks for libraries in /opt/here \(R(UN)?PATH\)")

    def test_source_tree(self):
        path = self.compile("reader", *STATIC, source='"/home/somebody/furlong/programs"')
        self.assertEqual(self.check("--source", "/home/nobody/furlong", path)[0], 0)
        code, _, err = self.check("--source", "/home/somebody/furlong/", path)
        self.assertEqual(code, 1)
        self.assertIn("holds the path /home/somebody/furlong:", err)

    def test_no_program_at_all(self):
        for path in (self.object + ".none", os.path.join(self.folder.name, "main.cpp"), self.folder.name):
            code, out, err = self.check(path)
            self.assertEqual((code, out), (2, ""), path)
            self.assertIn(path, err)
        self.assertEqual(self.check(self.object)[0], 1)

    def test_usage(self):
        for arguments in ([], ["--source"], ["--nonsense"]):
            code, _, err = self.check(*arguments)
            self.assertEqual(code, 2)
            self.assertIn("usage: tools/portable", err)


class Words(unittest.TestCase):
    def test_newest_allowed(self):
        self.assertEqual(portable.breaches(words()), [])
        self.assertEqual(portable.breaches(words("GLIBC_2.4")), [])
        self.assertEqual(portable.breaches(words("GLIBC_ABI_DT_RELR")), [])

    def test_too_new_names_the_function(self):
        for version in ("GLIBC_2.38", "GLIBC_2.36.1", "GLIBC_3.0"):
            found = portable.breaches(words(version))
            self.assertEqual(len(found), 1)
            self.assertIn("needs glibc " + version[6:], found[0])
            self.assertIn("__isoc23_strtol", found[0])
            self.assertNotIn("puts", found[0])

    def test_private_version(self):
        self.assertIn("GLIBC_PRIVATE", portable.breaches(words("GLIBC_PRIVATE"))[0])

    def test_loader(self):
        self.assertIn("/opt/lib/ld-linux.so.2", portable.breaches(words(loader="/opt/lib/ld-linux.so.2"))[0])
        self.assertEqual(portable.breaches(words(loader="/lib/ld-linux-aarch64.so.1")), [])

    def test_words_that_it_does_not_know_are_no_pass(self):
        self.assertNotEqual(portable.breaches(""), [])
        self.assertNotEqual(portable.breaches(words().replace("Version needs section", "Versions needed")), [])
        self.assertNotEqual(portable.breaches(words().replace("(NEEDED)", "(WANTED)")), [])


if __name__ == "__main__":
    unittest.main()
