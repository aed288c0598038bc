"""Help, completion, exit codes and messages of the command line."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, FURLONG, GOOD_LOOP, SOURCE  # noqa: E402

COMMANDS = ["race", "devices", "doctor", "init", "export", "emit", "knobs list", "knobs show", "knobs lint", "knobs audit", "pack make", "pack show",
            "pack verify", "pack sign", "pack keygen", "quarantine list", "quarantine clear", "completion", "version"]


class Cli(Case):
    def test_general_help_names_every_command(self):
        run = self.run_furlong("--help")
        self.assertEqual(run.returncode, 0)
        for command in COMMANDS:
            self.assertIn(command.split()[-1], run.stdout)
        self.assertEqual(self.run_furlong().returncode, 2)

    def test_every_command_has_help_with_an_example(self):
        for command in COMMANDS:
            run = self.run_furlong(*command.split(), "--help")
            self.assertEqual(run.returncode, 0, command)
            self.assertIn(f"usage: furlong {command}", run.stdout)
            self.assertIn("examples:", run.stdout, command)

    def test_help_of_a_command_by_its_name(self):
        for command in ("race", "knobs lint"):
            self.assertEqual(self.run_furlong("help", *command.split()).stdout, self.run_furlong(*command.split(), "--help").stdout)
        self.assertEqual(self.run_furlong("help", "knobs").stdout, self.run_furlong("knobs", "--help").stdout)
        self.assertEqual(self.run_furlong("help").stdout, self.run_furlong("--help").stdout)
        run = self.run_furlong("help", "rcae")
        self.assertEqual((run.returncode, "did you mean 'race'" in run.stderr), (2, True), run.stderr)

    def test_help_stands_in_two_columns(self):
        """By columns of a terminal, whatever the bytes of the characters."""
        for command in ["", *COMMANDS]:
            for line in self.run_furlong(*command.split(), "--help").stdout.splitlines():
                self.assertLessEqual(len(line), 110, line)
                head = re.match(r"  (--?\S+( \S+)?|[A-Z]+…?|[a-z]+( [a-z]+)?) {2,}\S", line)
                if head:
                    self.assertEqual(len(head.group(0)) - 1, 26, f"{command}: {line}")

    def test_errors_say_furlong_once(self):
        for arguments in (["race", "--budget", "3"], ["race", "a", "b"], ["init"], ["race", "--cache", "warm"]):
            error = self.run_furlong(*arguments).stderr
            self.assertTrue(error.startswith(f"furlong: {arguments[0]}: "), error)

    def test_knobs_list_names_what_is_raced(self):
        program = self.host_program(GOOD_LOOP)
        run = self.run_furlong("knobs", "list", program)  # no catalogue in it: all valid points
        self.assertIn("host: base bad\n", run.stdout)
        listed = json.loads(self.run_furlong("knobs", "list", program, "--json").stdout)["editions"][0]
        self.assertEqual((listed["catalogue"], listed["raced"]), ([], ["base", "bad"]))

    def test_knobs_of_a_t1_file(self):
        """The published files are counted and linted, and their notes shown; what is no T1 file is named."""
        data = os.path.join(SOURCE, "bench/data/t1")
        counts = {}
        for name in sorted(os.listdir(data)):
            if name.endswith(".json"):
                run = self.run_furlong("knobs", "list", os.path.join(data, name), "--json")
                self.assertEqual(run.returncode, 0, run.stderr)
                counts[name] = json.loads(run.stdout)["editions"][0]["valid_points"]
        self.assertEqual(counts["dedispersion_milo.json"], 11130)
        run = self.run_furlong("knobs", "lint", os.path.join(data, "dedispersion_milo.json"))
        self.assertIn(run.returncode, (0, 3), run.stderr)
        self.assertNotIn("is no name", run.stdout)
        self.write("few.json", json.dumps({"ConfigurationSpace": {
            "TuningParameters": [{"Name": "x", "Type": "int", "Values": "[1, 2, 4]", "Default": 1},
                                 {"Name": "y", "Type": "int", "Values": "[1, 2]", "Default": 1}],
            "Conditions": [{"Expression": "x * y <= 4", "Parameters": ["x", "y"]}]}}))
        run = self.run_furlong("knobs", "list", "few.json")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("base y_2 x_2 x_2-y_2 x_4\n", run.stdout)
        self.assertEqual(self.run_furlong("knobs", "lint", "few.json").stdout, "clean\n")
        self.write("none.json", "{}")
        run = self.run_furlong("knobs", "list", "none.json")
        self.assertEqual(run.returncode, 2)
        self.assertIn("none.json", run.stderr)
        self.assertEqual(self.run_furlong("knobs", "list", "gone.json").returncode, 2)

    def test_group_help(self):
        run = self.run_furlong("knobs", "--help")
        self.assertEqual(run.returncode, 0)
        self.assertIn("knobs lint", run.stdout)
        run = self.run_furlong("knobs", "nonsense")
        self.assertEqual(run.returncode, 2)
        self.assertIn("unknown command 'nonsense'", run.stderr)
        run = self.run_furlong("fleet", "publsh")
        self.assertEqual((run.returncode, "unknown command 'publsh', did you mean 'publish'?" in run.stderr), (2, True), run.stderr)
        run = self.run_furlong("hub", "tokn", "sqlite:hub.sqlite")  # a group that is a command as well
        self.assertEqual((run.returncode, "did you mean 'token'?" in run.stderr), (2, True), run.stderr)

    def test_unknown_words_name_the_nearest(self):
        run = self.run_furlong("rcae")
        self.assertEqual((run.returncode, "did you mean 'race'" in run.stderr), (2, True), run.stderr)
        run = self.run_furlong("race", "--devcie", "host:0")
        self.assertEqual(run.returncode, 2)
        self.assertIn("did you mean '--device'", run.stderr)

    def test_an_empty_value_is_an_error(self):
        # As of an unset variable; "--write= --json" must not write a file of that name.
        for words in (["fleet", "tuning", "--store", "sqlite:x.sqlite", "--write=", "--json"], ["fleet", "records", "--card", ""],
                      ["hub", "--store", "sqlite:x.sqlite", "--tls-cert", "", "--tls-key", ""], ["race", "--device="]):
            run = self.run_furlong(*words)
            self.assertEqual((run.returncode, "is empty" in run.stderr), (2, True), run.stderr)
        self.assertFalse(os.path.exists(self.path("--json")))

    def test_one_argument_too_many_is_named(self):
        for words in (["fleet", "tuning", "extra", "--store", "sqlite:x"], ["fleet", "explain", "H200", "extra", "--store", "sqlite:x"],
                      ["fleet", "explain", "--store=sqlite:x", "--json", "H200", "extra"]):
            run = self.run_furlong(*words)
            self.assertEqual((run.returncode, "too many arguments: 'extra'" in run.stderr), (2, True), run.stderr)

    def test_bad_values_name_the_option(self):
        for arguments, word in [(["race", "--window", "soon"], "--window"), (["race", "--cache", "warm"], "--cache"),
                                (["race", "--seed", "-3"], "--seed"), (["race", "--problem", "n"], "--problem"),
                                (["race", "--sizes", "1,2"], "--sizes"), (["pack", "make", "lottery"], "--out"),
                                (["race", "--epoch-seed", "xyz", "--device", "sim:0"], "epoch")]:
            run = self.run_furlong(*arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn(word, run.stderr)

    def test_absent_device(self):
        for address, code in [("cuda:7", 4), ("host:99", 4), ("nonsense:0", 2), ("host:x", 2)]:
            run = self.run_furlong("race", "lottery", "--device", address)
            self.assertIn(run.returncode, (code, 2, 4), address)
            self.assertTrue(run.stderr.startswith("furlong: "), run.stderr)

    def test_completion_scripts(self):
        script = self.run_furlong("completion", "bash").stdout
        self.assertEqual(subprocess.run(["bash", "-n"], input=script, text=True).returncode, 0)
        probe = script + '\nCOMP_WORDS=(furlong race --cac); COMP_CWORD=2; _furlong; echo "${COMPREPLY[@]}"\n'
        self.assertEqual(subprocess.run(["bash"], input=probe, text=True, capture_output=True).stdout.strip(), "--cache")
        probe = script + '\nCOMP_WORDS=(furlong race --cache ""); COMP_CWORD=3; _furlong; echo "${COMPREPLY[@]}"\n'
        self.assertEqual(subprocess.run(["bash"], input=probe, text=True, capture_output=True).stdout.strip(), "hot cold")
        for words, wanted in ((["completion", ""], "bash zsh fish"), (["help", "rac"], "race"), (["hel"], "help"),
                              (["hub", "--sto"], "--store --stop-key"), (["hub", "--store", "x", "--sto"], "--store --stop-key"),
                              (["agent", "--conf"], "--config"), (["hub", "toke"], "token"), (["hub", "token", "--lab"], "--label"),
                              (["hub", "canary", "sqlite:x", "m", ""], "on off"), (["hub", "canary", "--json", "sqlite:x", "m", "of"], "off"),
                              (["help", "fleet", "pub"], "publish"), (["help", "knobs", "li"], "list lint")):
            probe = script + f"\nCOMP_WORDS=(furlong {' '.join(word or chr(34) * 2 for word in words)}); COMP_CWORD={len(words)}; "
            probe += '_furlong; echo "${COMPREPLY[@]}"\n'
            done = subprocess.run(["bash"], input=probe, text=True, capture_output=True, cwd=self.folder)
            self.assertEqual(done.stdout.strip(), wanted, words)
        self.assertEqual(self.run_furlong("completion", "tcsh").returncode, 2)

    def test_completion_offers_files_only_for_files(self):
        self.write("some.file", "")
        zsh = self.run_furlong("completion", "zsh").stdout
        fish = self.run_furlong("completion", "fish").stdout
        for option, files in (("--report", True), ("--json", True), ("--cache", False), ("--seed", False), ("--device", False)):
            line = re.search(rf"'race:{option}\'\) (.*); return", zsh).group(1)
            self.assertEqual("_files" in line, files, line)
            line = re.search(rf"^complete .*from race' -l {option[2:]} .*$", fish, re.MULTILINE).group(0)
            self.assertEqual(" -r" in line, files, line)
            self.assertEqual(" -x" in line, not files, line)
        if shutil.which("zsh"):
            self.assertEqual(subprocess.run(["zsh", "-n"], input=zsh, text=True).returncode, 0)
        if shutil.which("fish"):
            environment = {**self.environment, "HOME": self.folder}
            for line, wanted in (("furlong race --cache ", ["cold", "hot"]), ("furlong knobs ", ["audit", "lint", "list", "show"]),
                                 ("furlong completion ", ["bash", "fish", "zsh"]), ("furlong race --report ", ["some.file"])):
                run = subprocess.run(["fish", "-c", f"{fish}\ncomplete -C '{line}'"], text=True, capture_output=True, cwd=self.folder,
                                     env=environment)
                said = [entry.split("\t")[0] for entry in run.stdout.splitlines() if entry.split("\t")[0][-1] != "/"]
                self.assertEqual(sorted(said), wanted, line)

    def test_generated_pages_are_current(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_furlong("help-pages", "--out", folder).returncode, 0)
            there = os.path.join(SOURCE, "docs/cli")
            self.assertTrue(os.path.isdir(there), "docs/cli is not there: run ./dev docs")
            self.assertEqual(sorted(os.listdir(folder)), sorted(os.listdir(there)), "run ./dev docs")
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="utf-8") as new, open(os.path.join(there, name), encoding="utf-8") as old:
                    self.assertEqual(new.read(), old.read(), f"docs/cli/{name}: run ./dev docs")

    def test_version_and_devices(self):
        version = json.loads(self.run_furlong("version", "--json").stdout)
        self.assertIn("host", version["backends"])
        self.assertRegex(version["version"], r"^\d+\.\d+\.\d+$")
        devices = json.loads(self.run_furlong("devices", "--json").stdout)
        host = [d for d in devices["devices"] if d["address"] == "host:0"]
        self.assertEqual(len(host), 1)
        self.assertRegex(host[0]["silicon"]["hash"], r"^[0-9a-f]{16}$")
        self.assertNotIn(" ", host[0]["label"])

    def test_the_template_of_back_ends_is_not_missed(self):
        self.assertNotIn("null", self.run_furlong("devices").stdout)
        self.assertIn("null", self.run_furlong("devices", "--all").stdout)

    def test_ceilings_are_of_a_real_device(self):
        for wanted, words in ((["--device", "host:0"], "--device goes with --ceilings"), (["--again"], "--again goes with --ceilings"),
                              (["--ceilings", "--device", "sim:0"], "is simulated")):
            run = self.run_furlong("devices", *wanted)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(words, run.stderr)

    def test_doctor_fits_a_terminal(self):
        lines = self.run_furlong("doctor").stdout.splitlines()
        for line in lines:
            self.assertTrue(len(line) <= 100 or len(line.split()) <= 4, line)  # one long path is not broken
        self.assertTrue(any(line.startswith(("ok       host:0", "problem  host:0")) for line in lines), lines)

    def test_doctor(self):
        run = self.run_furlong("doctor", "--json")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("host:0", [check["what"] for check in json.loads(run.stdout)["checks"]])

    def test_a_missing_back_end_comes_with_the_one_thing_to_do(self):
        listed = json.loads(self.run_furlong("devices", "--json").stdout)
        if "cuda" not in listed["absent"]:
            self.skipTest("CUDA is here")
        self.assertTrue(listed["to_do"]["cuda"], listed)
        self.assertIn("  to do: " + listed["to_do"]["cuda"], self.run_furlong("devices").stdout)
        checks = {check["what"]: check for check in json.loads(self.run_furlong("doctor", "--json").stdout)["checks"]}
        self.assertEqual(checks["cuda driver"]["mend"], listed["to_do"]["cuda"])
        self.assertNotIn("cuda", checks)  # told once

    def test_doctor_names_a_folder_that_cannot_be_written(self):
        blocker = self.write("blocker", "a file where a folder should be")
        run = self.run_furlong("doctor", environment={"FURLONG_STATE_DIR": os.path.join(blocker, "state")})
        self.assertEqual(run.returncode, 3)
        self.assertIn("blocker", run.stdout)

    def test_every_output_to_a_full_disk_is_an_error(self):
        for words in (["--help"], ["race", "--help"], ["knobs"], ["completion", "bash"], ["knobs", "show", "lottery", "--json"],
                      ["race", "lottery", "--device", "sim:0", "--variants", "u2", "--quiet", "--json", "-"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                run = subprocess.run([FURLONG, *words], stdout=full, stderr=subprocess.PIPE, text=True, env=self.environment,
                                     cwd=self.folder, timeout=240)
            if words == ["knobs"]:
                self.assertEqual(run.returncode, 2)  # its help goes to standard error
                continue
            self.assertEqual(run.returncode, 3, words)
            self.assertIn("writing the output failed", run.stderr)

    def test_standard_error_may_be_full_or_closed(self):
        words = [FURLONG, "race", "lottery", "--device", "sim:0", "--variants", "u2", "--json", self.path("race.json")]
        for redirection in ("2>/dev/full", "2>&-"):
            run = subprocess.run(["sh", "-c", f'"$@" {redirection}', "sh", *words], stdout=subprocess.PIPE, text=True,
                                 env=self.environment, cwd=self.folder, timeout=240)
            self.assertEqual(run.returncode, 0, redirection)
            self.assertIn("lottery on sim:0", run.stdout)

    def test_foreign_words_cannot_move_the_cursor(self):
        label = "<script>alert(1)</script>\x1b[31m\n\"x"
        sim = self.write("sim.json", json.dumps({"schema": 1, "devices": [{"label": label}]}))
        run = self.run_furlong("race", "lottery", "--device", "sim:0", "--variants", "u2", "--quiet", "--report", self.path("r.html"),
                               environment={"FURLONG_SIM": sim})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("\x1b", run.stdout)
        self.assertIn("alert(1)</script> [31m \"x", run.stdout.splitlines()[0])
        page = self.read(self.path("r.html"))
        self.assertNotIn("\x1b", page)
        self.assertNotIn("<script>alert", page)

    def test_unknown_options_are_named_with_a_value_behind(self):
        for words, name in ((["race", "x.toml", "--jsn", "y"], "--jsn"), (["race", "x.toml", "more", "words"], "'more'"),
                            (["race", "--device", "sim:x"], "sim:x"), (["race", "lottery", "--json", ""], "--json"),
                            (["race", "lottery", "--race-budget-s", "600"], "--race-budget-s")):
            run = self.run_furlong(*words)
            self.assertEqual(run.returncode, 2, words)
            self.assertIn(name, run.stderr)

    def test_full_output_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            run = subprocess.run([FURLONG, "knobs", "show", "lottery"], stdout=full, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.assertEqual(run.returncode, 3)
        self.assertIn("writing the output failed", run.stderr)


if __name__ == "__main__":
    unittest.main()
