"""The worker through the real program: swaps, jobs that change, the tuning file, bad input."""
import json
import os
import signal
import subprocess
import time
import unittest

from support import FURLONG
from worker_support import OFF, PINNED, SEEDS, Worker, WorkerCase, job


class Serving(WorkerCase):
    def test_the_next_pair_is_ready_before_its_boundary(self):
        first, second = self.pack("a"), self.pack("b")
        worker = self.worker("--race", "n64", "--race-budget-s", "8", "--records", self.path("records.jsonl"), "--rate-every-s", "0.5")
        worker.send("prepare " + first, job(first, "j1"))
        self.assertEqual(worker.wait("swap")[1], SEEDS["a"][:16])
        worker.wait("prepared")
        worker.wait("rate")
        worker.send("prepare " + second)
        record = worker.wait("record")
        prepared = worker.wait("prepared")
        self.assertEqual(prepared[1:3], second.split(" ")[:2])
        lost = worker.wait("lost")
        self.assertLessEqual(float(lost[3]), float(lost[7]))
        worker.send(job(second, "j2", count=20000, target=1 << 60))
        cut = worker.wait("done")
        swap = worker.wait("swap")
        self.assertEqual((cut[1], cut[4], swap[-1]), ("j1", "cut", "prepared"))
        self.assertEqual(worker.wait("done")[1:], ["j2", "0" * 16, "20000", "complete"])
        self.assertEqual(len(set(worker.finds("j2"))), len(worker.finds("j2")))
        self.assertGreater(len(worker.finds("j2")), 0)
        for nonce, found_hash in worker.finds("j2"):
            self.assertLess(int(nonce, 16), 20000)
            self.assertLess(int(found_hash, 16), 1 << 60)
        worker.quit()
        self.assertEqual(worker.events[-1], "bye")
        written = self.read(self.path("records.jsonl")).splitlines()
        self.assertEqual(written, [line[len("record "):] for line in worker.events if line.startswith("record ")])
        self.assertEqual(json.loads(record[1] if len(record) == 2 else " ".join(record[1:]))["program"], "lottery")

    def test_jobs_that_change_are_cut_where_they_are(self):
        pack = self.pack("a")
        worker = self.worker(*OFF)
        worker.send("prepare " + pack, job(pack, "j0"))
        worker.wait("swap")
        for number in range(1, 12):
            worker.send(job(pack, f"j{number}", start=number << 32, count=0 if number % 2 else 3000))
            time.sleep(0.05)
        worker.wait(lambda words: words[0] == "done" and words[1] == "j10")
        worker.send("stop")
        worker.wait(lambda words: words[0] == "done" and words[1] == "j11")
        done = {words[1]: (int(words[2], 16), int(words[3]), words[4]) for words in worker.of("done")}
        self.assertEqual(sorted(done), sorted(f"j{n}" for n in range(12)))
        for number in range(1, 12):
            start, count, how = done[f"j{number}"]
            self.assertEqual(start, number << 32)
            if how == "complete":
                self.assertEqual(count, 3000)
        state = self.status(worker)
        self.assertEqual(state["state"], "idle")
        self.assertEqual(state["hashes"], sum(count for _, count, _ in done.values()))
        worker.quit()

    def test_a_range_of_nonces_is_searched_whole_and_each_nonce_once(self):
        # In chunks of other sizes the same finds come out, also across 2^64.
        pack = self.pack("a")
        found = []
        for chunk in ("5", "80"):
            worker = self.worker(*OFF, "--chunk-ms", chunk)
            worker.send("prepare " + pack, job(pack, "j", start=(1 << 64) - 7000, count=30011, target=1 << 56))
            done = worker.wait("done")
            self.assertEqual(done[2:], [f"{(1 << 64) - 7000:016x}", "30011", "complete"])
            found.append(worker.finds("j"))
            worker.quit()
        self.assertEqual(found[0], found[1])
        self.assertGreater(len(found[0]), 50)
        self.assertTrue(any(int(nonce, 16) < 30011 for nonce, _ in found[0]))

    def test_a_boundary_before_the_prepare_is_done(self):
        first, second = self.pack("a"), self.pack("b")
        worker = self.worker("--race", "n64,v8", "--race-budget-s", "8")
        worker.send("prepare " + first, job(first, "j1"))
        worker.wait("prepared")
        worker.send("prepare " + second, job(second, "j2"))
        swap = worker.wait("swap")
        self.assertNotEqual(swap[-1], "prepared")
        self.assertEqual(swap[6], "base")
        self.assertEqual(worker.wait("race")[1], SEEDS["b"][:16])  # it goes on in the background
        worker.wait("prepared")
        self.assertEqual(self.status(worker)["pair"]["epoch"], SEEDS["b"][:16])
        worker.quit()

    def test_a_pair_that_nobody_prepared_is_found_in_the_folder(self):
        pack = self.pack("a")
        worker = self.worker(*OFF, "--packs", self.path("packs"))
        worker.send(job(pack, "j1", count=1000))
        self.assertEqual(worker.wait("done")[4], "complete")
        worker.quit()

    def test_two_datasets_without_room_swap_late(self):
        first, second = self.pack("a"), self.pack("b")
        worker = self.worker(*OFF, "--memory-mib", "30")
        worker.send("prepare " + first, job(first, "j1"))
        worker.wait("prepared")
        worker.send("prepare " + second)
        note = " ".join(worker.wait("note"))
        self.assertIn("no room beside the pair in service", note)
        self.assertIn("waits in host memory", note)
        worker.send(job(second, "j2", count=2000))
        self.assertEqual(worker.wait("swap")[1], SEEDS["b"][:16])
        self.assertEqual(worker.wait(lambda words: words[0] == "done" and words[1] == "j2")[3:], ["2000", "complete"])
        worker.quit()

    def test_a_late_swap_that_fails_goes_back(self):
        first = self.pack("a")
        wrong = self.pack("b", edit=lambda text: text.replace("hashes[i + l] = hash;", "hashes[i + l] = hash ^ 1;"))
        worker = self.worker(*OFF, "--memory-mib", "30")
        worker.send("prepare " + first, job(first, "j1"))
        worker.wait("prepared")
        worker.send("prepare " + wrong)
        worker.wait("note")
        worker.send(job(wrong, "j2"))
        worker.wait(lambda words: words[0] == "error" and "could not be prepared" in " ".join(words))
        cut = worker.of("done")[0]
        self.assertEqual((cut[1], cut[4]), ("j1", "cut"))
        self.assertEqual(worker.wait("swap")[1], SEEDS["a"][:16])
        worker.send("stop")
        again = worker.wait("done")
        self.assertEqual(again[1], "j1")
        self.assertEqual(int(again[2], 16), int(cut[3]))  # where it was
        worker.quit()

    def test_no_room_for_one_dataset_is_told(self):
        pack = self.pack("a")
        worker = self.worker(*OFF, "--memory-mib", "10")
        worker.send("prepare " + pack, job(pack, "j1"))
        error = worker.wait("error")
        self.assertEqual(error[1], "exhausted")
        self.assertEqual(self.status(worker)["state"], "idle")
        worker.quit()

    def test_the_plain_rule(self):
        pack = self.pack("a")
        worker = self.worker("--race", "n64", "--classic", "--max-pause-ms", "0")
        worker.send("prepare " + pack, job(pack, "j1"))
        self.assertIn("verdict classic", " ".join(worker.wait("race")))
        worker.wait("prepared")
        worker.quit()

    def test_cuda_text_runs_on_the_host_without_a_race(self):
        pack = self.pack("a")
        worker = self.worker(environment={"FURLONG_EMU": "1"})
        worker.send("prepare " + pack, job(pack, "j1", count=2048, target=1 << 58))
        self.assertEqual(worker.wait("done")[4], "complete")
        self.assertEqual(worker.of("race"), [])
        worker.quit()
        plain = self.worker(*OFF)
        plain.send("prepare " + pack, job(pack, "j1", count=2048, target=1 << 58))
        plain.wait("done")
        self.assertEqual(plain.finds("j1"), worker.finds("j1"))
        plain.quit()


class TuningFile(WorkerCase):
    def tuning(self, worker_facts, **row):
        card = worker_facts[3]
        return json.dumps({"schema": 1, "cards": {card: {"program": "lottery", "samples": 3, "races": 3, "machines": 1, **row}}})

    def test_pinned_ordered_malformed_and_read_again_at_every_prepare(self):
        first, second, third, fourth = (self.pack(name) for name in "abcd")
        file = self.path("tuning.json")
        worker = Worker(self, "--race", "n64,v8", "--race-budget-s", "8", environment={"FURLONG_TUNING_FILE": file})
        ready = worker.wait("ready")
        self.write("tuning.json", self.tuning(ready, variant="n64", race=False))
        worker.send("prepare " + first, job(first, "j1"))
        line = " ".join(worker.wait("race"))
        self.assertIn("pinned by tuning", line)
        self.assertIn("winner n64", line)
        self.assertEqual(worker.wait("prepared")[3], "n64")
        self.write("tuning.json", "{")
        worker.send("prepare " + second)
        self.assertIn("tuning.json", " ".join(worker.wait("note")))
        worker.wait("prepared")
        self.write("tuning.json", self.tuning(ready, variant="v8", race=True, candidates=["v8", "nosuch", "base"]))
        worker.send("prepare " + third)
        line = worker.wait("race")
        self.assertIn("tuned order", " ".join(line))
        self.assertEqual([word.split("=")[0] for word in line if "=" in word][:3], ["base", "v8", "n64"])
        worker.wait("prepared")
        self.assertIn("'nosuch'", worker.text())
        self.write("override.json", self.tuning(ready, variant="v8", race=False))
        worker.send("prepare " + fourth)
        self.assertIn("winner v8", " ".join(worker.wait("race")))
        worker.wait("prepared")
        worker.quit()


class BadInput(WorkerCase):
    def test_what_is_wrong_is_told_and_what_is_in_hand_goes_on(self):
        first, second = self.pack("a"), self.pack("b")
        broken = self.pack("c")
        with open(os.path.join(broken.split(" ")[2], "lottery.cpp"), "a", encoding="utf-8") as file:
            file.write("//")
        no_compile = self.pack("d", edit=lambda text: text.replace("typedef uint32_t uint;", "typedef nonsense uint;"))
        wrong = self.pack("e", edit=lambda text: text.replace("hashes[i + l] = hash;", "hashes[i + l] = hash ^ 1;"))
        worker = self.worker(*OFF)
        for line, code, words in (("nonsense", "invalid", "unknown command 'nonsense'"),
                                  ("job", "invalid", "expected the epoch"),
                                  (job(first, "j0"), "invalid", "nobody prepared"),
                                  ("prepare " + first.replace(SEEDS["a"][:16], SEEDS["b"][:16], 1), "invalid", "is the pack of epoch"),
                                  (f"prepare {SEEDS['f'][:16]} 0 {self.path('absent')}", None, "absent")):
            worker.send(line)
            error = worker.wait("error")
            self.assertIn(words, " ".join(error))
            if code:
                self.assertEqual(error[1], code)
        worker.send("prepare " + first, job(first, "j1"))
        worker.wait("swap")
        for pack, words in ((broken, "lottery.cpp"), (no_compile, "nonsense"), (wrong, "base failed its gate")):
            worker.send("prepare " + pack)
            self.assertIn(words, " ".join(worker.wait("error")))
            worker.send(job(pack, "jx"))
            self.assertIn("could not be prepared", " ".join(worker.wait(
                lambda words: words[0] == "error" and "could not" in " ".join(words))))
            self.assertEqual(self.status(worker)["job"], "j1")
        worker.send("prepare " + second, job(second, "j2", count=1000))
        self.assertEqual(worker.wait(lambda words: words[0] == "done" and words[1] == "j2")[4], "complete")
        worker.quit()

    def test_of_two_prepares_the_later_one_counts(self):
        first, second, third = (self.pack(name) for name in "abc")
        worker = self.worker("--race", "n64,v8,O3", "--race-budget-s", "20")
        worker.send("prepare " + first, job(first, "j1"))
        worker.wait("swap")
        worker.send("prepare " + second, "prepare " + third, "prepare " + third)
        self.assertEqual(worker.wait(lambda words: words[0] == "prepared" and words[1] != SEEDS["a"][:16])[1], SEEDS["c"][:16])
        worker.send(job(third, "j3", count=1000))
        self.assertEqual(worker.wait(lambda words: words[0] == "done" and words[1] == "j3")[4], "complete")
        self.assertEqual([words[1] for words in worker.of("prepared")].count(SEEDS["b"][:16]), 0)
        worker.quit()

    def test_a_pack_without_a_signature_is_refused(self):
        pack = self.pack("a")
        run = subprocess.run([FURLONG, "worker", "--device", "host", *OFF], input=f"prepare {pack}\n{job(pack, 'j1')}\nstatus\n",
                             capture_output=True, text=True, env=self.environment, cwd=self.folder, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("swap", run.stdout)

    def test_devices_and_options_that_are_not(self):
        run = self.run_furlong("worker", "--device", "host:9")
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("host:9", run.stderr)
        self.assertEqual(self.run_furlong("worker", "--race-budget-s", "x").returncode, 2)
        run = self.run_furlong("worker", "--device", "sim")
        self.assertEqual(run.returncode, 2)
        self.assertIn("real devices", run.stderr)

    def test_the_end_of_standard_input_is_quit(self):
        pack = self.pack("a")
        worker = self.worker(*OFF)
        worker.send("prepare " + pack, job(pack, "j1"))
        worker.wait("swap")
        worker.process.stdin.close()
        worker.end()
        self.assertEqual(worker.of("done")[-1][4], "cut")
        self.assertEqual(worker.events[-1], "bye")

    def test_a_signal_ends_it_in_order(self):
        pack = self.pack("a")
        worker = self.worker(*OFF)
        worker.send("prepare " + pack, job(pack, "j1"))
        worker.wait("swap")
        worker.process.send_signal(signal.SIGTERM)
        worker.end(128 + signal.SIGTERM)
        self.assertEqual(worker.events[-1], "bye")

    def test_a_reader_that_does_not_read_loses_no_find(self):
        pack = self.pack("a")
        worker = self.worker(*OFF, "--rate-every-s", "0.02")
        worker.reading.clear()
        worker.send("prepare " + pack, job(pack, "j1", count=400_000, target=1 << 56), "status")
        time.sleep(6)
        worker.reading.set()
        self.assertEqual(worker.wait("done")[3:], ["400000", "complete"])
        clean = self.worker(*OFF)
        clean.send("prepare " + pack, job(pack, "j1", count=400_000, target=1 << 56))
        clean.wait("done")
        self.assertEqual(worker.finds("j1"), clean.finds("j1"))
        clean.quit()
        worker.quit()

    def test_a_record_that_cannot_be_written_waits(self):
        pack = self.pack("a")
        os.mkdir(self.path("records.jsonl"))
        worker = self.worker(*PINNED, "--records", self.path("records.jsonl"))
        worker.send("prepare " + pack)
        self.assertIn("waits in memory", " ".join(worker.wait("note")))
        worker.wait("prepared")
        self.assertEqual(self.status(worker)["unwritten_records"], 1)
        self.assertEqual(worker.of("record"), [])
        os.rmdir(self.path("records.jsonl"))
        worker.wait("record")
        self.assertEqual(len(self.read(self.path("records.jsonl")).splitlines()), 1)
        worker.quit()


if __name__ == "__main__":
    unittest.main()
