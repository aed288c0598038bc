"""The commands on a fleet's store: tokens, machines, copies and backups, through the real program."""
import glob
import hashlib
import json
import os
import sqlite3
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import postgres  # noqa: E402
from support import Case  # noqa: E402


def record(number, machine):
    """A race record, made by hand from docs/formats/race-record.md."""
    return {"schema": 1, "id": f"01956a3c-8f00-7abc-8def-{number:012x}", "ts": f"2026-03-{1 + number % 28:02}T12:00:00Z",
            "machine": machine, "slot": f"s-{number % 2}", "agent": "0.1.0", "card": "NVIDIA_H200",
            "silicon": {"vendor": "NVIDIA", "arch": "sm_90", "hash": "9c1f0a5b7d3e2f46"}, "backend": "cuda", "driver": "580.1",
            "program": "lottery", "source": "b3d1c0", "epoch": f"{number:016x}", "class": {"loads": 128, "wide": 0}, "unit": "MH/s",
            "variants": {"base": 100.0, "u2": 101.5}, "winner": "u2", "rate": 101.5, "base_rate": 100.0, "verdict": "winner"}


class Stores(Case):
    def hub(self, command, *arguments, code=0):
        run = self.run_furlong("hub", command, *arguments)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def filled(self, name="hub.sqlite", count=40):
        self.write("records.jsonl", "".join(json.dumps(record(n, f"lab{n % 3}")) + "\n" for n in range(1, count + 1)))
        run = self.run_furlong("fleet", "import", "--store", f"sqlite:{name}", self.path("records.jsonl"))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return f"sqlite:{name}"

    def exported(self, store):
        run = self.run_furlong("fleet", "export", "--store", store, "--out", "-")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    # ---- tokens and machines ----

    def test_a_token_is_printed_once_and_kept_as_its_hash(self):
        run = self.hub("token", "sqlite:hub.sqlite", "--label", "rack 7", "--canary", "--expires-days", "2")
        token = run.stdout.strip()
        self.assertRegex(token, r"^[A-Za-z0-9_-]{43}$")
        self.assertNotIn(token, run.stderr)
        self.assertIn("it is not shown again", run.stderr)
        for path in glob.glob(self.path("hub.sqlite*")):
            self.assertNotIn(token.encode(), self.read_bytes(path))
        rows = sqlite3.connect(self.path("hub.sqlite")).execute("SELECT * FROM token").fetchall()
        digest, label, canary, replaces, issued_us, expires_us, machine = rows[0]
        self.assertEqual((digest, label, canary, replaces, machine),
                         (hashlib.blake2b(token.encode(), digest_size=32).digest(), "rack 7", 1, "", ""))
        self.assertEqual(expires_us - issued_us, 2 * 86_400_000_000)
        self.assertLess(abs(issued_us / 1e6 - time.time()), 600)
        said = json.loads(self.hub("token", "sqlite:hub.sqlite", "--json").stdout)
        self.assertNotEqual(said["token"], token)
        self.assertRegex(said["expires"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_a_replacement_must_be_known(self):
        store = self.filled()
        run = self.hub("token", store, "--replaces", "import:lab7", code=2)
        self.assertIn("there is no machine 'import:lab7'", run.stderr)
        self.assertRegex(run.stderr, r"did you mean 'import:lab\d'")
        self.hub("token", store, "--replaces", "import:lab1")
        self.assertIn("--expires-days", self.hub("token", store, "--expires-days", "never", code=2).stderr)

    def labelled(self):
        """A store in which import:lab0 is a machine with a key, a label and the canary's flag."""
        store = self.filled()
        connection = sqlite3.connect(self.path("hub.sqlite"))
        connection.execute("UPDATE machine SET id = '693f59f934134716', label = 'rack7', canary = 1 WHERE id = 'import:lab0'")
        connection.commit()
        connection.close()
        return store

    def test_a_label_is_told_whose_it_is(self):
        store = self.labelled()
        meant = "rack7 is the label of 693f59f934134716; say that"
        for command, words in (("retire", [store, "rack7"]), ("canary", [store, "rack7", "on"]), ("token", [store, "--replaces", "rack7"])):
            self.assertIn(meant, self.hub(command, *words, code=2).stderr)
        run = self.run_furlong("fleet", "records", "--store", store, "--machine", "rack7")
        self.assertEqual((run.returncode, meant in run.stderr), (2, True), run.stderr)
        # No fingerprint is near a word that is none; a slip in one is mended.
        self.assertRegex(self.hub("retire", store, "rack9", code=2).stderr, r"no machine 'rack9'\n$")
        self.assertIn("did you mean '693f59f934134716'", self.hub("retire", store, "693f59f934134717", code=2).stderr)
        connection = sqlite3.connect(self.path("hub.sqlite"))
        connection.execute("UPDATE machine SET label = 'rack7'")
        connection.commit()
        connection.close()
        self.assertIn("rack7 is the label of 3 machines", self.hub("retire", store, "rack7", code=2).stderr)

    def test_a_replacement_goes_by_the_old_label_and_is_no_canary(self):
        store = self.labelled()
        run = self.hub("token", store, "--replaces", "693f59f934134716", "--json")
        said = json.loads(run.stdout)
        self.assertEqual((said["label"], said["canary"]), ("rack7", False))
        self.assertIn("693f59f934134716 is a canary", run.stderr)
        self.assertIn(f"furlong hub canary '{store}' MACHINE on", run.stderr)
        run = self.hub("token", store, "--replaces", "693f59f934134716", "--label", "rack8", "--canary", "--json")
        self.assertEqual((json.loads(run.stdout)["label"], run.stderr), ("rack8", ""))
        self.assertNotIn("canary", self.hub("token", store, "--replaces", "import:lab1").stderr)

    def test_machines_are_listed_and_retired(self):
        store = self.filled()
        text = self.hub("machines", store).stdout
        for machine in ("import:lab0", "import:lab1", "import:lab2"):
            self.assertIn(machine, text)
        self.hub("retire", store, "import:lab1")
        listed = json.loads(self.hub("machines", store, "--json").stdout)["machines"]
        self.assertEqual([(m["id"], m["state"], m["accepted"]) for m in listed],
                         [("import:lab0", "active", 13), ("import:lab1", "retired", 14), ("import:lab2", "active", 13)])
        self.assertIn("import:lab9", self.hub("retire", store, "import:lab9", code=2).stderr)

    # ---- copies ----

    def test_a_copy_holds_the_same_and_goes_on(self):
        store = self.filled()
        before = self.exported(store)
        said = json.loads(self.hub("copy", store, "sqlite:copy.sqlite", "--json").stdout)
        self.assertEqual((said["races"], said["machines"], said["there"]), (40, 3, 0))
        self.assertEqual(self.exported("sqlite:copy.sqlite"), before)
        self.filled(count=60)
        again = json.loads(self.hub("copy", store, "sqlite:copy.sqlite", "--json").stdout)
        self.assertEqual((again["races"], again["there"]), (20, said["batches"]))  # of 60 in the batches
        self.assertEqual(self.exported("sqlite:copy.sqlite"), self.exported(store))

    def test_a_copy_through_postgresql(self):
        if why := postgres.missing():
            self.skipTest(why)
        url = postgres.Server(self, self.path("pg")).url
        store = self.filled()
        self.hub("copy", store, url)
        self.assertEqual(self.exported(url), self.exported(store))
        self.assertIn("import:lab1", self.hub("machines", url).stdout)
        self.hub("backup", url, "back.sqlite")
        self.assertEqual(self.exported("sqlite:back.sqlite"), self.exported(store))
        missing = self.run_furlong("hub", "machines", url.replace("/fleet?", "/none?"))
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("none", missing.stderr)
        self.assertNotIn("s3cret", missing.stderr)

    def test_a_backup_is_a_new_file(self):
        store = self.filled()
        said = json.loads(self.hub("backup", store, "backup.sqlite", "--json").stdout)
        self.assertEqual((said["races"], said["machines"]), (40, 3))
        self.assertEqual(self.exported("sqlite:backup.sqlite"), self.exported(store))
        self.assertIn("is there already", self.hub("backup", store, "backup.sqlite", code=2).stderr)
        self.assertEqual([os.path.basename(p) for p in glob.glob(self.path("*.partial*"))], [])
        connection = sqlite3.connect(self.path("backup.sqlite"))
        self.assertEqual(connection.execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def test_what_is_old_is_forgotten(self):
        store = self.filled()
        said = json.loads(self.hub("prune", store, "--keep-days", "36000", "--json").stdout)
        self.assertEqual((said["forgotten"], said["races"]), (0, 40))
        said = json.loads(self.hub("prune", store, "--keep-days", "1", "--json").stdout)
        self.assertEqual((said["forgotten"], said["races"]), (40, 0))
        self.assertIn("--keep-days", self.hub("prune", store, "--keep-days", "0", code=2).stderr)
        self.assertIn("--keep-days", self.hub("prune", store, code=2).stderr)

    # ---- what is wrong ----

    def test_a_store_that_is_not_there_is_not_made(self):
        for command, rest in (("machines", []), ("retire", ["m"]), ("prune", ["--keep-days", "1"]), ("copy", ["sqlite:to.sqlite"]),
                              ("backup", ["to.sqlite"])):
            run = self.hub(command, "sqlite:none.sqlite", *rest, code=4)
            self.assertIn("none.sqlite", run.stderr)
        self.assertFalse(os.path.exists(self.path("none.sqlite")))
        self.assertIn("sqlite:FILE", self.hub("machines", "mysql://x", code=2).stderr)

    def test_a_store_of_a_newer_furlong_is_refused(self):
        store = self.filled()
        connection = sqlite3.connect(self.path("hub.sqlite"))
        connection.execute("PRAGMA user_version=7")
        connection.close()
        self.assertIn("found schema version 7, expected", self.hub("machines", store, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
