"""The repository rules against planted breaches."""
import os
import subprocess
import tempfile
import unittest

from layers_test import load

rules = load("rules")


class Rules(unittest.TestCase):
    def findings(self, files):
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            for path, text in {**{name: "x\n" for name in rules.REQUIRED}, **files}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            subprocess.run(["git", "-C", root, "add", "-A"], check=True)
            return rules.check(root)

    def test_clean(self):
        self.assertEqual(self.findings({"furlong/a.h": "#pragma once\n"}), [])

    def test_missing_document(self):
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            self.assertIn("README.md: must exist", rules.check(root))

    def test_banned_words(self):
        self.assertIn("finish it", self.findings({"a.md": "TO" + "DO later\n"})[0])
        self.assertIn("turned off", self.findings({"a_test.cpp": "TEST(A, DISA" + "BLED_b) { EXPECT_TRUE(1); }\n"})[0])
        self.assertIn("one machine", self.findings({"a.md": "see /ro" + "ot/x\n"})[0])

    def test_header_guard_and_empty_test(self):
        self.assertIn("pragma once", self.findings({"a.h": "int x;\n"})[0])
        self.assertIn("without an assertion", self.findings({"a_test.cpp": "TEST(A, B) {}\n"})[0])

    def test_a_python_test_runs_its_tests(self):
        self.assertIn("tests nothing", self.findings({"a_test.py": "class A: pass\n"})[0])
        self.assertEqual(self.findings({"a_test.py": "if __name__ == '__main__':\n    unittest.main()\n"}), [])

    def test_library_does_not_print(self):
        self.assertIn("neither prints", self.findings({"furlong/a.cpp": "void f() { std::cout << 1; }\n"})[0])
        self.assertEqual(self.findings({"apps/a.cpp": "void f() { std::cout << 1; }\n"}), [])

    def test_dead_links(self):
        self.assertIn("link to gone.md", self.findings({"docs/a.md": "[x](gone.md)\n"})[0])
        self.assertIn("names tools/gone", self.findings({"docs/a.md": "run `tools/gone`\n"})[0])

    def test_a_lock_file_names_no_registry(self):
        lock = '{"node_modules/x": {"version": "1.0.0",\n"resolved": "https://registry.example/x.tgz"}}\n'
        self.assertIn("package-lock.json:2: names a registry", self.findings({"web/package-lock.json": lock})[0])
        self.assertEqual(self.findings({"web/package-lock.json": '{"node_modules/x": {"version": "1.0.0"}}\n'}), [])

    def test_dead_modules_and_tests_of_the_dashboard(self):
        files = {"web/src/main.tsx": "import { a } from './a';\nimport './b.css';\n", "web/src/a.ts": "x\n", "web/src/b.css": "x\n"}
        self.assertEqual(self.findings(files), [])
        self.assertIn("c.ts: nothing imports it", self.findings({**files, "web/src/c.ts": "x\n"})[0])
        only_tested = {**files, "web/src/c.ts": "x\n", "web/src/c.test.ts": "import './c';\nexpect(1)\n"}
        self.assertIn("c.ts: nothing imports it", self.findings(only_tested)[0])
        self.assertIn("without an assertion", self.findings({**files, "web/src/a.test.ts": "import './a';\n"})[0])
        self.assertIn("without an assertion", self.findings({"web/test/a.test.mjs": "it()\n"})[0])

    def test_long_file_and_large_blob(self):
        self.assertIn("split it", self.findings({"a.cpp": "\n" * 1000})[0])
        self.assertIn("over 1 MiB", self.findings({"a.bin": "x" * (2 << 20)})[0])


if __name__ == "__main__":
    unittest.main()
