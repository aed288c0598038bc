"""The layer checker against planted breaches: a checker that cannot fail proves nothing."""
import importlib.machinery
import importlib.util
import os
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(HERE, "..", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


layers = load("layers")

TABLE = """# a comment
base:
device: base
device/sim: device base
race: device base

test race: device/sim
"""


class Layers(unittest.TestCase):
    def breaches(self, files, table=TABLE):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**files, "tools/layers.txt": table}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return layers.check(root)

    def test_clean(self):
        self.assertEqual(self.breaches({"furlong/race/a.h": '#include "furlong/device/device.h"\n',
                                        "furlong/race/a_test.cpp": '#include "furlong/device/sim/sim.h"\n',
                                        "apps/x.cpp": '#include "furlong/race/a.h"\n'}), [])

    def test_forbidden_arrow(self):
        found = self.breaches({"furlong/device/a.h": '#pragma once\n#include "furlong/race/race.h"\n'})
        self.assertEqual(len(found), 1)
        self.assertIn("furlong/device/a.h:2: device may not include furlong/race/race.h", found[0])

    def test_concrete_back_end_only_in_tests(self):
        self.assertEqual(len(self.breaches({"furlong/race/a.cpp": '#include "furlong/device/sim/sim.h"\n'})), 1)

    def test_subfolder_belongs_to_the_longest_part(self):
        found = self.breaches({"furlong/device/sim/internal/a.cpp": '#include "furlong/race/race.h"\n'})
        self.assertIn("device/sim may not", found[0])

    def test_vendor_header(self):
        found = self.breaches({"furlong/race/a.cpp": "#include <sqlite3.h>\n"})
        self.assertIn("<sqlite3.h> belongs behind furlong/base/sqlite.cpp", found[0])

    def test_library_never_includes_apps(self):
        self.assertIn("may not include apps/", self.breaches({"furlong/race/a.cpp": '#include "apps/furlong/x.h"\n'})[0])

    def test_unknown_part(self):
        self.assertIn("stands in no part", self.breaches({"furlong/new/a.h": ""})[0])
        self.assertIn("stands in no part", self.breaches({"furlong/race/a.h": '#include "furlong/gone/b.h"\n'})[0])

    def test_broken_table(self):
        with self.assertRaises(SystemExit):
            self.breaches({}, TABLE + "worker: race nonsense\n")


if __name__ == "__main__":
    unittest.main()
