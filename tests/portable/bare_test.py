"""The portable program on an empty root: a folder with glibc, the program and nothing else, not even a shell.
Needs root, or user namespaces; without them it is reported as skipped."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

FURLONG = os.environ["FURLONG"]
GLIBC = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d+")
# A chroot is root's alone; a user namespace makes a user root of its own folder.
CHROOT = shutil.which("chroot", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or "chroot"
ENTER = [CHROOT] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", CHROOT]


class Bare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="furlong-bare-")
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        listed = subprocess.run(["ldd", FURLONG], capture_output=True, text=True, check=True).stdout
        for line in listed.split("\n"):
            # "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)" and "/lib64/ld-linux-x86-64.so.2 (0x…)"
            path = next((word for word in line.split() if word.startswith("/")), None)
            if path and (GLIBC.fullmatch(os.path.basename(path)) or os.path.basename(path).startswith("ld-linux")):
                cls.copy(path, path)
        cls.copy(FURLONG, "/furlong")
        cls.names = sorted(name for _, _, files in os.walk(cls.root) for name in files)  # before anything ran there
        for folder in ("/tmp", "/home"):
            os.mkdir(cls.root + folder)
        probe = subprocess.run([*ENTER, cls.root, "/furlong", "--help"], capture_output=True, text=True)
        if ENTER[0] == "unshare" and probe.stderr.startswith("unshare:"):
            raise unittest.SkipTest("neither root nor user namespaces here: " + probe.stderr.strip())

    @classmethod
    def copy(cls, path, to):
        os.makedirs(os.path.dirname(cls.root + to), exist_ok=True)
        shutil.copy(path, cls.root + to)

    def furlong(self, *arguments, code=0):
        run = subprocess.run([*ENTER, self.root, "/furlong", *arguments], capture_output=True, text=True, timeout=120,
                             env={"PATH": "/usr/bin:/bin", "HOME": "/home"})
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def test_holds_nothing_but_glibc_and_the_program(self):
        names = self.names
        for name in names:
            self.assertTrue(name == "furlong" or GLIBC.fullmatch(name) or name.startswith("ld-linux"), names)
        self.assertIn("libc.so.6", names)

    def test_version(self):
        run = self.furlong("version")
        self.assertRegex(run.stdout, r"^furlong \d+\.\d+\.\d+ \([0-9a-f]{12}\)\n")
        backends = re.search(r"^back ends: (.*)$", run.stdout, re.MULTILINE)[1].split()
        self.assertLessEqual({"host", "opencl", "cuda", "sim"}, set(backends))

    def test_doctor_says_what_to_install(self):
        run = self.furlong("doctor", code=3)  # nothing here can run a kernel
        self.assertIn("none can run a kernel", run.stdout)
        self.assertIn("apt-get install g++", run.stdout)

    def test_a_race_names_the_missing_compiler(self):
        run = self.furlong("race", "lottery", "--device", "host:0", "--quiet", code=4)
        self.assertIn("no C++ compiler answers", run.stderr)


if __name__ == "__main__":
    unittest.main()
