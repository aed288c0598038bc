"""furlong emit: the text of a variant for any card, and its machine code where NVIDIA's compiler is."""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, GOOD_LOOP, SOURCE  # noqa: E402

SMALL = ["--problem", "n=64,k=512"]


class Emit(Case):
    def emit(self, *arguments):
        return self.run_furlong("emit", *arguments)

    def document(self, *arguments):
        run = self.emit(*arguments, "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_a_variants_text_is_printed(self):
        base, other = self.emit("gemv", *SMALL), self.emit("gemv", "--variant", "u2", *SMALL)
        self.assertEqual((base.returncode, other.returncode), (0, 0), base.stderr + other.stderr)
        self.assertIn("__global__", base.stdout)
        self.assertNotEqual(base.stdout, other.stdout)
        self.assertEqual(self.emit("gemv", *SMALL).stdout, base.stdout)
        file = os.path.join(SOURCE, "programs", "linear", "gemv.toml")
        self.assertEqual(self.emit(file, *SMALL).stdout, base.stdout)

    def test_the_card_need_not_be_present(self):
        self.assertIn("rtx3060 (sm_86)", self.emit("gemv", *SMALL).stdout)
        self.assertEqual(self.emit("gemv", *SMALL, "--chip", "rtx3060").stdout, self.emit("gemv", *SMALL).stdout)
        self.assertIn("Default: rtx3060.", self.emit("--help").stdout)
        self.assertIn("b200 (sm_100)", self.emit("gemv", *SMALL, "--chip", "b200").stdout)
        self.assertIn("b200 (sm_100)", self.emit("gemv", "--problem", "n=64,k=512,chip=b200").stdout)
        run = self.emit("gemv", "--chip", "h2000")
        self.assertEqual(run.returncode, 2)
        self.assertIn("h200", run.stderr)

    def test_outputs_that_cannot_be_are_refused_before_any_work(self):
        same = self.path("same")
        run = self.emit("gemv", *SMALL, "--out", same, "--cubin", same)
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("--out and --cubin both name", run.stderr)
        self.assertFalse(os.path.exists(same))
        run = self.emit("gemv", *SMALL, "--out", "")
        self.assertEqual(run.returncode, 2)
        self.assertIn("the value of --out is empty", run.stderr)

    def test_launches_and_notes(self):
        document = self.document("gemv", "--variant", "s4", "--problem", "n=64,k=4096,rotate_mib=1", "--chip", "h200")
        self.assertEqual((document["schema"], document["emitter"], document["arch"]), (1, "linear.gemv", "sm_90"))
        self.assertEqual([launch["once"] for launch in document["launches"][:2]], [True, False])
        copies = [launch["scalars"]["copy"] for launch in document["launches"] if launch["entry"] == "gemv_rows"]
        self.assertEqual(copies, list(range(len(copies))))
        self.assertGreater(len(copies), 1)
        run = self.emit("gemm", "--problem", "m=32,n=32,k=32")
        self.assertRegex(run.stderr, r"furlong emit: base: .*int64")

    def test_strict_refuses_what_is_not_made_as_asked(self):
        ragged = ["gemm", "--variant", "imma", "--problem", "m=33,n=32,k=32"]
        run = self.emit(*ragged)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stderr, r"imma: .*int64")
        self.assertTrue(self.document(*ragged)["fallback"])
        strict = self.emit(*ragged, "--strict")
        self.assertEqual((strict.returncode, strict.stdout), (3, ""))
        self.assertIn("--strict", strict.stderr)
        self.assertEqual(self.emit("gemm", "--problem", "m=33,n=32,k=32", "--strict").returncode, 0)

    def test_bad_requests(self):
        for arguments, word in ((["gemv", "--variant", "u3"], "u2"),
                                (["gemv", "--problem", "n=0"], "n is 0"),
                                (["gemv", "--variant", "s16", "--problem", "k=512"], "not valid"),
                                (["gemw"], "did you mean 'gem"),
                                (["gemv", "--device", "host:0", "--chip", "h200"], "not both"),
                                (["gemv", "--chip", "h100", "--problem", "chip=a100"],
                                 "give --chip h100 or --problem chip=a100, not both"),
                                (["lottery"], "--language")):
            run = self.emit(*arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn(word, run.stderr)

    def test_a_source_has_its_rewrites_and_defines(self):
        run = self.emit(self.host_program(GOOD_LOOP), "--variant", "bad")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"^#define \w+ ")
        self.assertEqual(self.emit(self.host_program(GOOD_LOOP), "--chip", "h200").returncode, 2)

    def test_machine_code(self):
        code, text = os.path.join(self.folder, "gemv.cubin"), os.path.join(self.folder, "gemv.cu")
        run = self.emit("gemv", *SMALL, "--chip", "h200", "--cubin", code, "--out", text)
        if run.returncode == 4:
            self.skipTest(run.stderr)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"for sm_90 by NVRTC .*: \d+ registers, \d+ bytes spilled, \d+ bytes of static")
        with open(code, "rb") as file:
            self.assertEqual(file.read(4), b"\x7fELF")
        with open(text, encoding="utf-8") as file:
            self.assertIn("__global__", file.read())
        document = self.document("gemv", *SMALL, "--cubin", code)
        self.assertGreater(document["cubin"]["registers"], 0)
        self.assertTrue(any(re.search("gemv_rows", entry) for entry in document["cubin"]["entries"]))
        self.assertEqual(self.emit(self.host_program(GOOD_LOOP), "--cubin", code).returncode, 2)

    def test_a_shipped_program_is_linted_as_one_and_packed(self):
        file = os.path.join(SOURCE, "programs", "linear", "gemv.toml")
        strict = self.run_furlong("knobs", "lint", file, "--strict")
        for program in ("gemv", file):  # shipped, however it is named
            self.assertEqual(self.run_furlong("knobs", "lint", program).stdout, strict.stdout)
        pack = os.path.join(self.folder, "pack")
        made = self.run_furlong("pack", "make", "gemv", "--out", pack)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.emit(pack, *SMALL).stdout, self.emit("gemv", *SMALL).stdout)


if __name__ == "__main__":
    unittest.main()
