"""The path of docs/tune-your-own-kernel.md, with the files that stand in it: init, lint, race, sizes, export, and the header in a
C program. Of the guide for batch operators and the README: that their command lines are the program's."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, SOURCE  # noqa: E402


def page(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


GUIDE = page("docs/tune-your-own-kernel.md")


def file_of(name):
    """The block of the guide under the line that begins with the file's name in backquotes."""
    found = re.findall(r"^`" + re.escape(name) + r"`[^\n]*:\n\n```\w+\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"the guide has {len(found)} blocks for {name}"
    return found[0]


def block_with(text):
    found = [block for block in re.findall(r"^```\w+\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL) if text in block]
    assert len(found) == 1, f"the guide has {len(found)} blocks with {text}"
    return found[0]


class Guide(Case):
    def kernel(self):
        self.write("kernels/row_sums.cpp", file_of("kernels/row_sums.cpp"))
        return "kernels/row_sums.cpp"

    def program(self):
        self.kernel()
        self.write("kernels/reference.cpp", file_of("kernels/reference.cpp"))
        self.write("kernels/row_sums.toml", file_of("kernels/row_sums.toml"))
        return "kernels/row_sums.toml"

    def raced(self, *more):
        return self.race_json(self.program(), "--device", "host:0", "--race-budget-s", "60", "--trial-timeout-s", "60", "--classic",
                              "--rounds", "1", *more)

    def test_init(self):
        run = self.run_furlong("init", self.kernel())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(run.stdout.strip(), GUIDE)
        first = self.read(self.path("kernels/row_sums.toml"))
        self.assertIn(block_with("# FILL IN"), first)
        run = self.run_furlong("knobs", "lint", "kernels/row_sums.toml")  # a first file reads, whatever it guessed
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        run = self.run_furlong("init", "kernels/row_sums.cpp")
        self.assertEqual(run.returncode, 2)
        self.assertIn("--replace", run.stderr)

    def test_lint(self):
        run = self.run_furlong("knobs", "lint", self.program(), "--strict")
        self.assertEqual((run.returncode, run.stdout), (0, "clean\n"), run.stderr)
        text = file_of("kernels/row_sums.toml").replace("grid =", "gird =")
        self.write("kernels/row_sums.toml", text)
        run = self.run_furlong("knobs", "lint", "kernels/row_sums.toml")
        self.assertEqual(run.returncode, 2)
        self.assertIn(run.stderr.strip(), GUIDE)

    def test_race_in_the_folder_of_the_program(self):
        """A program file without a folder before its name."""
        self.program()
        for name in os.listdir(self.path("kernels")):
            shutil.copy(self.path("kernels/" + name), self.path(name))
        race, _ = self.race_json("row_sums.toml", "--device", "host:0", "--variants", "base", "--race-budget-s", "60", "--classic",
                                 "--rounds", "1")
        self.assertTrue(race["variants"][0]["gated"])

    def test_race_report_and_header(self):
        race, run = self.raced("--variants", "s16,r4", "--explain", "--report", self.path("race.html"))
        self.assertEqual({v["name"] for v in race["variants"]}, {"base", "s16", "r4"})
        for v in race["variants"]:
            self.assertTrue(v["gated"] or v.get("same_code_as"), v)
        self.assertIn("row_sums_reference", run.stdout)
        self.assertIn("row_sums", self.read(self.path("race.html")))
        run = self.run_furlong("export", "race.json", "--header", "row_sums_choices.h", "--json", "row_sums_choices.json")
        self.assertEqual((run.returncode, run.stdout), (0, "row_sums_choices.h\nrow_sums_choices.json\n"), run.stderr)
        self.use_compiles()
        choice = json.loads(self.read(self.path("row_sums_choices.json")))["choices"][0]
        self.assertEqual(choice["variant"], race["winner"])
        self.assertRegex(choice["defines"], r"^-DROWS=\d+ -DSUMS=\d+$")

    def use_compiles(self):
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            self.skipTest("no C compiler")
        self.write("use.c", block_with("row_sums_choose("))
        run = subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "use.c", "-o", "use"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        said = subprocess.run([self.path("use")], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0)
        self.assertRegex(said.stdout, r"^\S+: -DROWS=\d+ -DSUMS=\d+\n$")

    def test_sizes(self):
        table, run = self.raced("--variants", "s4", "--sizes", "columns=64,1000")
        for columns in ("columns=64", "columns=1000"):
            self.assertIn(columns, run.stdout)
        run = self.run_furlong("export", "race.json", "--header", "row_sums_choices.h")
        self.assertEqual(run.returncode, 0, run.stderr)
        header = self.read(self.path("row_sums_choices.h"))
        self.assertEqual(len(re.findall(r'^  \{".*"-DROWS=', header, re.MULTILINE)), 2, header)
        self.use_compiles()

    def test_lost_tail_is_caught(self):
        program = self.program()
        right = "for (; i < columns; ++i) sums[0]"
        text = file_of("kernels/row_sums.cpp")
        self.assertEqual(text.count(right), 1)
        self.write("kernels/row_sums.cpp", text.replace(right, "for (; SUMS < 16 && i < columns; ++i) sums[0]"))
        race, _ = self.race_json(program, "--device", "host:0", "--variants", "s16", "--race-budget-s", "60", "--trial-timeout-s", "60",
                                 "--classic", "--rounds", "1")
        wrong = next(v for v in race["variants"] if v["name"] == "s16")
        self.assertEqual(wrong["exit"], "gate", wrong)
        self.assertIn("'y': the error is", wrong["why"])
        self.assertEqual(race["winner"], "base")

    def test_header_has_the_macros_and_their_values(self):
        """Also of a knob whose macro has another name than itself, as `init` writes them."""
        self.program()
        text = file_of("kernels/row_sums.toml").replace('name = "SUMS"', 'name = "sums"\ndefine = "SUMS"')
        self.write("kernels/row_sums.toml", text)
        self.race_json("kernels/row_sums.toml", "--device", "host:0", "--variants", "base", "--race-budget-s", "60", "--classic",
                       "--rounds", "1")
        run = self.run_furlong("export", "race.json", "--header", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('"-DROWS=16 -DSUMS=1"', run.stdout)
        self.assertRegex(run.stdout, r"#define ROW_SUMS_\w+_ROWS1024_ROWS 16\n#define ROW_SUMS_\w+_ROWS1024_SUMS 1\n")

    def test_commands_are_those_of_the_program(self):
        """Every option in the guides' command lines is one of that command's."""
        for name, least in (("docs/tune-your-own-kernel.md", 9), ("docs/guide-batch-operators.md", 20), ("README.md", 6)):
            lines = re.findall(r"^ *\$ (?:[^\n]* )?furlong ([^#\n]*)", page(name), re.MULTILINE)
            self.assertGreaterEqual(len(lines), least, name)
            for line in lines:
                self.check_command(line.split())

    def check_command(self, words):
        groups = ("knobs", "pack", "quarantine", "shard", "fleet", "hub", "agent")
        command = words[:2] if words[0] in groups and not words[1].startswith("-") else words[:1]
        help_page = self.run_furlong(*command, "--help")
        self.assertEqual(help_page.returncode, 0, words)
        for option in (word.split("=")[0] for word in words if word.startswith("--")):
            self.assertIn("  " + option + " ", help_page.stdout.replace("\n", " \n"), words)


if __name__ == "__main__":
    unittest.main()
