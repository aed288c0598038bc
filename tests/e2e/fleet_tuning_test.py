"""From a fleet's races to its tuning, through the real program: chosen, pinned, explained; what got slower."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import support  # noqa: E402

CARD = "NVIDIA_H200"
FLEET = ["--machines", "8", "--days", "14", "--seed", "5", "--cards", CARD]


class Tuning(support.Case):
    def fleet(self, *words, code=0):
        run = subprocess.run([support.FURLONG, "fleet", *words], cwd=self.folder, env=self.environment,
                             capture_output=True, text=True, timeout=600)
        self.assertEqual(run.returncode, code, run.stdout[-2000:] + run.stderr[-2000:])
        return run

    def simulated(self, *words):
        store = "sqlite:" + self.path("hub.sqlite")
        self.fleet("simulate", *FLEET, *words, "--store", store)
        return ["--store", store]

    def tuning(self, store, *words):
        """The rows of the card in the file that is written."""
        file = self.path("tuning.json")
        self.fleet("tuning", *store, *words, "--write", file)
        cards = json.loads(self.read(file))["cards"]
        self.assertEqual(list(cards), [CARD])
        card = cards[CARD]
        return [card, *card.get("classes", []), *card.get("programs", [])]

    def test_the_tuning_of_a_fleet(self):
        store = self.simulated()
        rows = self.tuning(store)
        first = self.read(self.path("tuning.json"))
        self.assertEqual({row.get("program", "lottery") for row in rows if "variant" in row}, {"lottery", "gemv"})
        self.tuning(store)
        self.assertEqual(self.read(self.path("tuning.json")), first, "same races, same bytes")
        said = json.loads(self.fleet("tuning", *store, "--json").stdout)
        self.assertEqual([card["key"] for card in said["cards"]], [CARD])
        self.assertTrue(all(row["leads"] for row in said["cards"][0]["rows"]))
        self.assertEqual({row["by"] for row in rows if row.get("program", "lottery") == "lottery" and "by" in row}, {"mhs"})
        energy = self.tuning(store, "--by", "mhw")
        self.assertIn("mhw", {row.get("by") for row in energy})
        self.tuning(store, "--rank", "rate")
        self.assertEqual(self.fleet("tuning", *store, "--window-days", "0", code=2).stdout, "")

    def test_the_first_time_there_is_no_previous(self):
        store = self.simulated()
        self.assertIn("the first time leave --previous out", self.fleet("tuning", *store, "--previous", "gone.json", code=2).stderr)
        none = self.write("none.json", "no JSON")
        self.assertRegex(self.fleet("tuning", *store, "--previous", none, code=2).stderr, r"--previous wants a tuning, .*: .*none\.json")

    def test_pins_of_the_operator(self):
        store = self.simulated()
        before = self.path("before.json")
        self.fleet("tuning", *store, "--pin", f"{CARD}=lottery/r64", "--write", before)

        def choices(*words):
            # So short that nothing is pinned by these races alone.
            cards = json.loads(self.fleet("tuning", *store, "--window-days", "0.15", *words, "--json").stdout)["cards"]
            return {(row["variant"], row["choice"]) for row in cards[0]["rows"] if row["program"] == "lottery"}

        self.assertEqual(choices("--pin", f"{CARD}=lottery/r64"), {("r64", "pinned-by-operator")})
        held = choices("--previous", before)
        self.assertIn(("r64", "pinned-by-stability"), held)
        free = choices("--previous", before, "--unpin", CARD)
        self.assertEqual(free, choices())
        self.assertNotEqual(free, held)
        wrong = self.fleet("tuning", *store, "--pin", f"{CARD}=lottery/ldgg", code=2).stderr
        self.assertIn("has not raced 'ldgg'", wrong)
        self.assertIn("ldg", wrong)
        self.assertIn("no card 'H2000'", self.fleet("tuning", *store, "--unpin", "H2000", code=2).stderr)
        self.assertIn("CARD=VARIANT", self.fleet("tuning", *store, "--pin", "u2", code=2).stderr)

    def test_a_card_explained(self):
        store = self.simulated()
        text = self.fleet("explain", CARD, *store).stdout
        for part in (CARD, "lottery", "gemv", "stands %", "voices", "candidates"):
            self.assertIn(part, text)
        card = json.loads(self.fleet("explain", CARD, *store, "--json").stdout)
        caps = {one["power"] for row in card["rows"] for variant in row["variants"] for one in variant["strata"]}
        limits = {record["power_limit_w"] for record in self.exported(store) if "power_limit_w" in record}
        self.assertGreater(len(limits), 2)
        self.assertEqual(len(caps - {"unknown"}), len(limits), "each limit of the records is a cap of its own")
        self.assertTrue(all(cap == "unknown" or cap.endswith(" W") for cap in caps))
        by_hash = json.loads(self.fleet("explain", card["silicon"]["hash"], *store, "--json").stdout)
        self.assertEqual(by_hash, card)
        self.assertIn("H200", self.fleet("explain", "NVIDIA_H20", *store, code=2).stderr)

    def exported(self, store):
        return [json.loads(line) for line in self.fleet("export", *store).stdout.splitlines()]

    def test_a_race_lies_under_the_limit_of_its_card(self):
        raced = self.path("raced.jsonl")
        run = self.run_furlong("race", "lottery", "--device", "sim:0", "--language", "cuda", "--quiet", "--record", raced)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        record = json.loads(self.read(raced).splitlines()[0])
        self.assertEqual(record["power_limit_w"], 400)
        store = ["--store", "sqlite:" + self.path("raced.sqlite")]
        self.fleet("import", *store, "--machine", "box", raced)
        card = json.loads(self.fleet("explain", record["card"], *store, "--json").stdout)
        caps = {one["power"] for variant in card["rows"][0]["variants"] for one in variant["strata"]}
        self.assertEqual(caps, {"400 W"})

    def test_regressions(self):
        store = self.simulated("--programs", "lottery")
        quiet = self.fleet("regressions", *store, "--strict", "--json")
        self.assertEqual(json.loads(quiet.stdout)["regressions"], [])
        self.assertGreater(json.loads(quiet.stdout)["compared"], 20)
        # A lower limit is none; slower races under the same one are.
        records = self.exported(store)
        middle = sorted(record["ts"] for record in records)[len(records) // 2]
        for name, limit, code in (("capped", 0.6, 0), ("slower", 1, 3)):
            with open(self.path(name + ".jsonl"), "w", encoding="utf-8") as file:
                for record in records:
                    if record["ts"] >= middle:
                        for key in ("rate", "base_rate", "mhs", "base_mhs"):
                            if record.get(key):
                                record = {**record, key: record[key] * 0.8}
                        record = {**record, "variants": {k: v and v * 0.8 for k, v in record["variants"].items()}}
                        if "power_limit_w" in record:
                            record["power_limit_w"] *= limit
                    elif "power_limit_w" not in record:
                        continue  # a card that does not tell its limit cannot be told from a slower one
                    file.write(json.dumps(record) + "\n")
            other = ["--store", "sqlite:" + self.path(name + ".sqlite")]
            self.fleet("import", *other, self.path(name + ".jsonl"))
            found = self.fleet("regressions", *other, "--strict", "--json", code=code)
            self.assertEqual(bool(json.loads(found.stdout)["regressions"]), code == 3, name)
        self.fleet("regressions", *other, code=0)
        self.assertIn("--window-days", self.fleet("regressions", *store, "--window-days", "0.0001", code=2).stderr)

    def test_a_fleet_of_impossible_days_is_refused(self):
        for days in ("1e300", "-1", "0", "nan", "20000"):
            said = self.fleet("simulate", "--from", "now", "--days", days, "--out", "-", code=2).stderr
            self.assertIn("--days", said)
        for option in ("--epoch-s", "--noise"):
            self.assertIn(option, self.fleet("simulate", option, "1e300", "--out", "-", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
