"""A fleet's records through the real program: made up, filed, shown, written out and taken back; the audit of a store."""
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import support  # noqa: E402

SMALL = ["--machines", "8", "--days", "0.5", "--seed", "3"]


class Exchange(support.Case):
    def fleet(self, *words, code=0, stdin=None):
        run = subprocess.run([support.FURLONG, "fleet", *words], cwd=self.folder, env=self.environment, input=stdin,
                             capture_output=True, text=True, timeout=600)
        self.assertEqual(run.returncode, code, run.stdout[-2000:] + run.stderr[-2000:])
        return run

    def store(self, name="hub"):
        return "sqlite:" + self.path(name + ".sqlite")

    def lines(self, name):
        return self.read(self.path(name)).splitlines()

    def test_a_simulated_fleet_is_the_same_by_every_way(self):
        self.fleet("simulate", *SMALL, "--out", self.path("one.jsonl"), "--truth", self.path("truth.json"))
        again = self.fleet("simulate", *SMALL, "--out", "-")
        self.assertEqual(again.stdout, self.read(self.path("one.jsonl")))
        records = [json.loads(line) for line in self.lines("one.jsonl")]
        truth = json.loads(self.read(self.path("truth.json")))
        self.assertEqual({r["machine"] for r in records}, {m["id"] for m in truth["machines"]})
        said = json.loads(self.fleet("simulate", *SMALL, "--store", self.store(), "--json").stdout)
        self.assertEqual((said["records"], said["enrolled"], said["refused"]), (len(records), 8, 0))
        shown = json.loads(self.fleet("records", "--store", self.store(), "--json", "--limit", "100000").stdout)["races"]
        self.assertEqual(len(shown), said["accepted"])
        self.assertEqual({r["machine"] for r in shown}, {m["id"] for m in truth["machines"]})
        exported = self.fleet("export", "--store", self.store()).stdout.splitlines()
        self.assertEqual(len(exported), said["accepted"])
        self.assertLessEqual(set(exported), set(self.lines("one.jsonl")), "as the machines wrote them")

    def test_what_is_exported_comes_back_as_it_was(self):
        self.fleet("simulate", *SMALL, "--store", self.store())
        for form in ("jsonl", "csv"):
            out, back = self.path("first." + form), self.path("second." + form)
            self.fleet("export", "--store", self.store(), "--out", out)
            self.fleet("import", "--store", self.store(form), out)
            self.fleet("export", "--store", self.store(form), "--out", back)
            self.assertEqual(self.read(out), self.read(back), form)
            self.assertGreater(len(self.read(out)), 10000)
            said = json.loads(self.fleet("import", "--store", self.store(form), out, "--json").stdout)
            self.assertEqual(said["accepted"], 0, "importing twice changes nothing")
            self.assertGreater(said["duplicate"], 0)
        rows = list(csv.DictReader(io.StringIO(self.read(self.path("first.csv")))))
        self.assertEqual({row["program"] for row in rows}, {"lottery", "gemv"})

    def test_filters(self):
        self.fleet("simulate", *SMALL, "--store", self.store())
        whole = [json.loads(line) for line in self.fleet("export", "--store", self.store()).stdout.splitlines()]
        one = whole[len(whole) // 2]
        for words, fits in ((["--card", one["card"]], lambda r: r["card"] == one["card"]),
                            (["--card", one["silicon"]["hash"]], lambda r: r["silicon"] == one["silicon"]),
                            (["--program", "gemv"], lambda r: r["program"] == "gemv"),
                            (["--machine", one["machine"]], lambda r: r["machine"] == one["machine"]),
                            (["--since", one["ts"]], lambda r: r["ts"] >= one["ts"]),
                            (["--until", one["ts"], "--since", "2026-03-01"], lambda r: r["ts"] < one["ts"])):
            some = [json.loads(line) for line in self.fleet("export", "--store", self.store(), *words).stdout.splitlines()]
            self.assertEqual([r["id"] for r in some], [r["id"] for r in whole if fits(r)], words)
            shown = json.loads(self.fleet("records", "--store", self.store(), *words, "--limit", "9999", "--json").stdout)
            self.assertEqual({r["id"] for r in shown["races"]}, {r["id"] for r in some}, words)
        # A name that no record has is a slip, and no empty answer.
        for command in ("records", "export"):
            for words, told in ((["--card", one["card"][:-1] + "_"], f"did you mean '{one['card']}'"), (["--program", "gemw"], "did you mean 'gemv'"),
                                (["--card", "0" * 16], "no record of card '0000000000000000'")):
                self.assertIn(told, self.fleet(command, "--store", self.store(), *words, code=2).stderr)
        # Whether there are more is told of what the filter lets through, not of the store.
        own = ["--store", self.store(), "--machine", one["machine"], "--limit"]
        count = sum(r["machine"] == one["machine"] for r in whole)
        self.assertNotIn("there are more", self.fleet("records", *own, str(count)).stdout)
        self.assertIn(f"the newest {count - 1}; there are more", self.fleet("records", *own, str(count - 1)).stdout)
        self.assertEqual(len(json.loads(self.fleet("records", *own, str(count - 1), "--json").stdout)["races"]), count - 1)

    def test_logs_and_tables_that_people_have(self):
        data = os.path.join(support.SOURCE, "furlong/fleet/exchange/testdata")
        said = self.fleet("import", "--store", self.store(), "--machine", "lab1", "--backend", "cuda", "--date", "2026-03-01",
                          os.path.join(data, "agent.log"), os.path.join(data, "hand.csv")).stdout
        self.assertIn("6 records: 6 new, 0 there already, of 3 machines; 0 left out", said)
        table = self.fleet("records", "--store", self.store(), "--machine", "lab1").stdout
        self.assertIn("import:lab1", table)
        self.assertIn("+2.10%", table)
        said = self.fleet("import", "--store", self.store("other"), "--as", "lab", "-", stdin=self.read(os.path.join(data, "hand.csv"))).stdout
        self.assertIn("of 1 machine;", said)

    def test_a_mark_of_byte_order_is_skipped(self):
        self.run_furlong("fleet", "simulate", "--machines", "2", "--days", "0.2", "--out", self.path("plain.jsonl"))
        with open(self.path("marked.jsonl"), "w", encoding="utf-8-sig") as file:
            file.write(self.read(self.path("plain.jsonl")))
        run = self.run_furlong("fleet", "import", "--store", "sqlite:marked.sqlite", self.path("marked.jsonl"), "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        told = json.loads(run.stdout)
        self.assertEqual((told["accepted"], told["left_out"]), (len(self.read(self.path("plain.jsonl")).splitlines()), 0))

    def test_a_hub_that_is_not_there_is_told(self):
        run = subprocess.Popen([support.FURLONG, "fleet", "simulate", "--machines", "2", "--days", "0.2", "--hub", "http://127.0.0.1:1"],
                               env=self.environment, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        self.assertIn("trying again", run.stderr.readline())
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=60), 130)
        run.stderr.close()
        secret = self.run_furlong("fleet", "simulate", "--hub", "http://user:s3cret@127.0.0.1:1", "--machines", "2")
        self.assertEqual((secret.returncode, "s3cret" in secret.stderr), (2, False), secret.stderr)

    def test_bad_lines_are_named_and_strict_refuses(self):
        self.fleet("simulate", *SMALL, "--out", self.path("good.jsonl"))
        good = self.read(self.path("good.jsonl"))
        self.write("bad.jsonl", "{broken\n" + good + '{"schema":9}\n')
        run = self.fleet("import", "--store", self.store(), "--strict", self.path("bad.jsonl"), code=2)
        self.assertIn("bad.jsonl:1", run.stderr)
        self.assertIn("2 lines cannot be read", run.stderr)
        self.assertFalse(os.path.exists(self.path("hub.sqlite")), "nothing was filed")
        run = self.fleet("import", "--store", self.store(), self.path("bad.jsonl"))
        self.assertIn("2 left out", run.stdout)
        self.fleet("import", "--store", self.store("strict"), "--strict", self.path("good.jsonl"))

    def test_bad_usage(self):
        self.write("nothing.log", "all is well\n")
        self.write("race.json", '{"schema": 1}\n')
        for words, part in ((["import", self.path("race.json")], "--store"),
                            (["import", "--store", "file.txt", self.path("race.json")], "is no store"),
                            (["import", "--store", self.store(), "gone.jsonl"], "gone.jsonl"),
                            (["import", "--store", self.store(), self.path("race.json")], "nothing of it can be read"),
                            (["import", "--store", self.store(), "--strict", "-"], "standard input"),
                            (["import", "--store", self.store(), "--date", "noon", self.path("nothing.log")], "--date"),
                            (["export", "--store", self.store("absent")], "absent.sqlite"),
                            (["records", "--store", self.store(), "--machine", "nobody"], "no machine 'nobody'"),
                            (["export", "--store", self.store(), "--machine", "nobody"], "no machine 'nobody'"),
                            (["export", "--store", self.store(), "--since", "2026-03-02", "--until", "2026-03-01"], "is not before"),
                            (["simulate"], "one of the three"),
                            (["simulate", "--out", "-", "--machines", "0"], "machines"),
                            (["simulate", "--out", "-", "--liars", "50"], "50 liars"),
                            (["simulate", "--hub", "nowhere"], "--hub")):
            run = self.run_furlong("fleet", *words)
            self.assertIn(run.returncode, (2, 4), words)
            self.assertIn(part, run.stderr, words)
        # A file that was chosen and has nothing is a fault; a pipe with nothing is a quiet hour.
        run = self.run_furlong("fleet", "import", "--store", self.store(), self.path("nothing.log"))
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, "nothing.log: there is no race in it: .*column 'variant'")
        with open(self.path("nothing.log"), encoding="utf-8") as piped:
            run = self.run_furlong("fleet", "import", "--store", self.store(), "-", stdin=piped)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_the_audit_reads_a_store(self):
        self.fleet("simulate", "--machines", "9", "--days", "1", "--store", self.store())
        run = self.run_furlong("knobs", "audit", self.store(), "--program", "lottery", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        editions = {edition["language"]: edition for edition in json.loads(run.stdout)["editions"]}
        self.assertGreater(editions["cuda"]["records"]["given"], 50)
        self.fleet("export", "--store", self.store(), "--program", "lottery", "--out", self.path("lottery.jsonl"))
        files = self.run_furlong("knobs", "audit", self.path("lottery.jsonl"), "--program", "lottery", "--json")
        self.assertEqual(files.stdout, run.stdout)

    def test_an_interrupt_leaves_a_whole_store_and_no_torn_file(self):
        for out in (["--store", self.store()], ["--out", self.path("torn.jsonl")]):
            process = subprocess.Popen([support.FURLONG, "fleet", "simulate", "--days", "3000", *out], cwd=self.folder, env=self.environment,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(3)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 130, told)
            self.assertIn("interrupted", told)
        self.assertFalse(os.path.exists(self.path("torn.jsonl")))
        self.assertGreater(len(self.fleet("export", "--store", self.store()).stdout), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
