"""Races recorded on the simulated device, and the audit of the trade-off table over them."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, GOOD_LOOP, SOURCE  # noqa: E402


class KnobsAudit(Case):
    def record(self, program, gains, *arguments, language="cuda", records="records.jsonl", **device):
        """One race on the simulated device, whose gains are planted."""
        sim = self.write("sim.json", json.dumps({"schema": 1, "devices": [{"timing": {"gain": gains, "noise": 0.001}, **device}]}))
        run = self.run_furlong("race", program, "--device", "sim:0", "--language", language, "--quiet", "--record", self.path(records),
                               *arguments, environment={"FURLONG_SIM": sim})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def audit(self, *arguments, code=0, records="records.jsonl", program="lottery"):
        run = self.run_furlong("knobs", "audit", self.path(records), "--program", program, *arguments)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def audit_json(self, *arguments, **options):
        document = json.loads(self.audit("--json", *arguments, **options).stdout)
        self.assertEqual((document["schema"], document["kind"]), (1, "audit"))
        return document

    def value(self, document, knob, value, language="cuda"):
        edition = next(e for e in document["editions"] if e["language"] == language)
        of = next(k for k in edition["knobs"] if k["knob"] == knob)
        return next(v for v in of["values"] if v["value"] == value)

    def test_two_classes_of_the_lottery(self):
        variants = ["--variants", "u2,u8,ldg,u2-ldg,r32"]
        for seed in ("1", "2"):
            self.record("lottery", {"u2": 0.03, "u2-ldg": 0.03, "r32": -0.02}, "--loads", "128", "--seed", seed, *variants)
            self.record("lottery", {"u2": -0.03, "u2-ldg": -0.03, "r32": -0.02}, "--loads", "64", "--seed", seed, *variants,
                        faults=[{"variant": "u8", "fault": "compile_error"}])
        document = self.audit_json()
        u2 = self.value(document, "unroll", 2)
        self.assertEqual(u2["verdict"], "trade-off", u2)
        self.assertEqual([r["class"]["loads"] for r in u2["regimes"]], [64, 128])
        self.assertEqual((u2["best"]["regime"], u2["worst"]["regime"]), (1, 0))
        self.assertAlmostEqual(u2["best"]["gain_pct"], 3, delta=0.3)
        self.assertAlmostEqual(u2["worst"]["gain_pct"], -3, delta=0.3)
        for regime in u2["regimes"]:
            self.assertEqual((regime["rate"]["races"], regime["rate"]["pairs"]), (2, 4))  # beside base and beside ldg
            self.assertEqual([c["beside"] for c in regime["contexts"]], ["base", "ldg"])
            low, high = regime["rate"]["ci"]
            self.assertLess(low, regime["rate"]["gain_pct"])
            self.assertGreater(high, regime["rate"]["gain_pct"])
        u8 = self.value(document, "unroll", 8)
        self.assertEqual(u8["regimes"][0]["faults"][0]["exit"], "compile")
        self.assertEqual(u8["regimes"][0]["faults"][0]["races"], 2)
        self.assertEqual(self.value(document, "register_cap", 32)["verdict"], "unproven")  # two regimes, three are needed
        self.assertEqual(self.value(document, "register_cap", 32)["regimes_missing"], 1)
        self.assertEqual(self.value(document, "register_cap", 64)["why"].split(";")[0], "never raced")
        self.assertEqual(document["editions"][0]["records"]["used"], 4)

        text = self.audit().stdout
        self.assertIn("lottery (cuda): 4 of 4 records hold evidence", text)
        self.assertRegex(text, r"\n2 +trade-off +4 +2 +\+[23]\.\d+% \(.*loads=128,wide=0 on Sim_Card")
        self.assertIn("u8 failed in 2 of 2 races with loads=64,wide=0 on Sim_Card", text)
        self.assertIn("no records in: opencl, host, metal\n", text)
        self.assertNotIn("contradict", text)

        # A third class with the same loss, and "never wins" is said of what the table calls a trade-off.
        for seed in ("1", "2"):
            self.record("lottery", {"r32": -0.02}, "--loads", "32", "--seed", seed, "--variants", "r32")
        self.assertEqual(self.value(self.audit_json(), "register_cap", 32)["verdict"], "drop")
        run = self.audit("--strict", code=3)
        self.assertIn("knob 'register_cap', value 32: the table says where it wins, but it never wins", run.stdout)
        self.audit("--strict", "--min-regimes", "4")

    def made_up(self, seed, program):
        """A record of the program below, which the simulated device cannot check: the lottery's, rewritten."""
        if not os.path.exists(self.path("records.jsonl")):
            self.write("records.jsonl", "")
        source = self.audit_json(program=program)["editions"][0]["source"]
        self.record("lottery", {"u2": 0.03}, "--variants", "u2", "--seed", str(seed), records="lottery.jsonl")
        record = json.loads(self.read(self.path("lottery.jsonl")).splitlines()[-1])
        record.update({"program": "planted", "language": "host", "class": {"big": 1}, "winner": "bad",
                       "source": source})
        for key in ("variants", "detail"):
            record[key] = {"bad" if name == "u2" else name: of for name, of in record[key].items()}
        return json.dumps(record) + "\n"

    def test_a_wrong_variant_is_a_finding(self):
        self.record("lottery", {}, "--variants", "u2,u8", faults=[{"variant": "u8", "fault": "wrong_output"}])
        run = self.audit("--strict", code=3)
        self.assertIn("u8 failed its gate in 1 race with loads=128,wide=0 on Sim_Card", run.stdout)
        self.assertNotIn("contradict", run.stdout)
        self.assertEqual(sum(len(edition["defects"]) for edition in self.audit_json()["editions"]), 1)
        self.audit()

    def claiming(self, claims):
        program = self.host_program(GOOD_LOOP)
        text = self.read(program).replace('[[knob]]', '[class]\nbig = "n >= 65536"\n[[knob]]')
        return self.write("planted.toml", text.replace('applies = "define"', f'applies = "define"\nclaims = [{claims}]'))

    def test_a_contradicted_claim(self):
        program = self.claiming('{ value = 1, outcome = "loses", where = "big == 1" }, { value = 1, outcome = "loses", where = "big == 0" }')
        first, second = self.made_up(1, program), self.made_up(2, program)
        self.write("records.jsonl", first)
        self.audit("--strict", program=program)  # one race contradicts nothing
        self.write("records.jsonl", first + second)
        run = self.audit("--strict", program=program, code=3)
        self.assertRegex(run.stdout, r"knob 'KIND', value 1: the claim that it loses where big == 1 \(line \d+\): \+3\.\d+%")
        self.assertNotIn("big == 0 (line", run.stdout.split("contradict the program")[1])
        self.audit(program=program)
        claims = self.value(self.audit_json(program=program), "KIND", 1, "host")["claims"]
        self.assertEqual([c["state"] for c in claims], ["contradicted", "open"])
        old = [line.replace('"source": "', '"source": "00') for line in (first, second)]
        self.write("records.jsonl", "".join(old))
        run = self.audit("--strict", program=program)  # another text of the program
        self.assertIn("0 of 2 records hold evidence, 2 of other texts of the program", run.stdout)
        self.audit("--strict", "--any-source", program=program, code=3)
        shown = json.loads(self.run_furlong("knobs", "show", program, "--json").stdout)["editions"][0]["lattice"]["knobs"][0]
        self.assertEqual(shown["claims"][0], {"value": 1, "outcome": "loses", "where": "big == 1"})

    def test_a_claim_that_no_record_can_tell(self):
        run = self.run_furlong("knobs", "lint", self.claiming('{ value = 1, outcome = "loses", where = "n == 1" }'))
        self.assertEqual(run.returncode, 2)
        self.assertIn("'n' is neither a feature in [class] nor a device fact that race records tell", run.stderr)

    def test_no_evidence_contradicts_nothing(self):
        self.write("records.jsonl", "")
        run = self.audit("--strict")
        self.assertIn("lottery (cuda): 0 of 0 records hold evidence", run.stdout)
        self.assertIn("lottery (metal)", run.stdout)
        self.assertNotIn("trade-off:", run.stdout)
        for edition in self.audit_json()["editions"]:
            for knob in edition["knobs"]:
                self.assertEqual({v["verdict"] for v in knob["values"]}, {"unproven"})

    def test_damaged_lines_are_named_and_the_rest_is_read(self):
        self.record("lottery", {"u2": 0.03}, "--variants", "u2")
        good = self.read(self.path("records.jsonl"))
        self.write("records.jsonl", "not JSON\n" + good + good[:100])
        run = self.audit()
        self.assertIn("records.jsonl:1", run.stderr)
        self.assertIn("records.jsonl:3: byte", run.stderr)
        self.assertIn("torn", run.stderr)
        self.assertIn("1 of 1 records hold evidence", run.stdout)
        self.assertEqual(len(self.audit_json()["problems"]), 2)
        self.write("other.jsonl", good.replace('"program":"lottery"', '"program":"else"').replace('"u2"', '"u3"'))
        self.write("records.jsonl", good + good.replace('"u2"', '"u3"') + good)
        run = self.run_furlong("knobs", "audit", "records.jsonl", "other.jsonl", "--program", "lottery", "--language", "cuda")
        self.assertIn("1 of 4 records hold evidence, 1 of other programs, 1 repeated", run.stdout)
        self.assertIn("u3 (1 records): variant 'u3': 'u3' is no tag of this lattice", run.stdout)

    def test_bad_input(self):
        self.write("race.json", '{\n  "schema": 1\n}\n')
        self.write("empty.jsonl", "")
        for words, part in ((["--program", "lottery"], "RECORDS"), (["empty.jsonl"], "--program"),
                            (["gone.jsonl", "--program", "lottery"], "gone.jsonl"),
                            (["race.json", "--program", "lottery"], "race.json: no line of it is a race record"),
                            (["https://hub/x", "--program", "lottery"], "neither a file nor a store"),
                            (["empty.jsonl", "--program", "lotery"], "did you mean 'lottery'"),
                            (["empty.jsonl", "--program", "lottery", "--threshold", "0"], "--threshold"),
                            (["empty.jsonl", "--program", "lottery", "--min-races", "0"], "--min-races"),
                            (["empty.jsonl", "--program", self.host_program(GOOD_LOOP), "--language", "cuda"], "has no text in 'cuda'")):
            run = self.run_furlong("knobs", "audit", *words)
            self.assertEqual(run.returncode, 2, words)
            self.assertIn(part, run.stderr)

    def test_the_page_of_the_knobs_is_current(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "knobs.md")
            run = self.run_furlong("knobs-page", "--programs", os.path.join(SOURCE, "programs"), "--out", page)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(self.read(page), self.read(os.path.join(SOURCE, "docs/knobs.md")), "docs/knobs.md: run ./dev docs")
        for root, _, files in os.walk(os.path.join(SOURCE, "programs")):
            for name in files:
                if name.endswith(".toml"):
                    shown = self.run_furlong("knobs", "show", "lottery" if name == "lottery.toml" else os.path.join(root, name), "--markdown")
                    self.assertEqual(shown.returncode, 0, shown.stderr)
                    self.assertIn(shown.stdout, self.read(os.path.join(SOURCE, "docs/knobs.md")))

    def test_markdown(self):
        run = self.run_furlong("knobs", "show", "lottery", "--markdown", "--language", "metal")
        self.assertIn("| `optimise` (metal) | `speed`, `size` (osize) | `speed` |", run.stdout)
        self.assertNotIn("`warps`", run.stdout)
        self.assertIn("\n- one atomic a hit: ", run.stdout)
        self.write("few.json", json.dumps({"ConfigurationSpace": {
            "TuningParameters": [{"Name": "x", "Type": "int", "Values": "[1, 2]", "Default": 1}], "Conditions": []}}))
        run = self.run_furlong("knobs", "show", "few.json", "--markdown")
        self.assertEqual((run.returncode, "few.json: a T1 file has no trade-off table" in run.stderr), (2, True), run.stderr)
        run = self.run_furlong("knobs", "show", "lottery", "--markdown", "--json")
        self.assertEqual((run.returncode, "not both" in run.stderr), (2, True), run.stderr)


if __name__ == "__main__":
    unittest.main()
