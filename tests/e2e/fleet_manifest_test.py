"""The fleet's manifest through the real program: keys, roots, publishing, and an agent that obeys."""
import json
import os
import signal
import stat
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import agent_test  # noqa: E402


def tuning(variant, **row):
    return {"schema": 1, "cards": {"NVIDIA_GeForce_RTX_5090": {
        "program": "lottery", "variant": variant, "race": False, "candidates": [variant, "base"], **row}}}


class Fleet(agent_test.AgentCase):
    def fleet(self, command, *arguments, code=0):
        run = self.run_furlong("fleet", command, *arguments)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def keygen(self, *names):
        for name in names:
            self.fleet("keygen", "--out", self.path(name))

    def begin(self, *extra):
        self.keygen("root.key", "publish.key", "stop.key")
        self.folder_of_fleet = self.path("fleet")
        self.fleet("root", self.folder_of_fleet, "--product", "our-fleet", "--root-key", self.path("root.key.pub"), "--publish-key",
                   self.path("publish.key.pub"), "--stop-key", self.path("stop.key.pub"), "--key", self.path("root.key"), *extra)

    def tuning_file(self, variant, **row):
        return self.write(f"tuning-{variant}.json", json.dumps(tuning(variant, **row)))

    def publish(self, *arguments, key="publish.key", code=0):
        return self.fleet("publish", self.folder_of_fleet, *arguments, "--key", self.path(key), code=code)

    def body(self):
        return self.read(os.path.join(self.folder_of_fleet, "manifest.json"))


class Commands(Fleet):
    def test_from_keys_to_a_verified_manifest(self):
        self.begin()
        self.assertEqual(stat.S_IMODE(os.stat(self.path("root.key")).st_mode), 0o600)
        self.assertIn("is there already", self.fleet("keygen", "--out", self.path("root.key"), code=2).stderr)
        said = json.loads(self.publish("--tuning", self.tuning_file("u2-ldg"), "--json").stdout)
        self.assertEqual((said["state"], said["version"], said["cards"], said["percent"]), ("published", 1, 1, 100))
        shown = json.loads(self.fleet("verify", self.folder_of_fleet, "--json").stdout)
        self.assertEqual((shown["root"], shown["manifest"]["version"], shown["pins"]), (1, 1, True))
        self.assertEqual(len(shown["manifest"]["signers"]), 1)
        self.publish("--override", json.dumps(tuning("w4")), "--percent", "25")
        text = self.fleet("verify", self.folder_of_fleet).stdout
        self.assertIn("manifest  2 for stable, 25% of the machines", text)
        self.assertRegex(text, r"tuning +1 cards\noverride +1 cards")
        self.publish("--no-tuning", "--no-override", "--canary")
        self.assertRegex(self.fleet("verify", self.folder_of_fleet).stdout, r"tuning +none\noverride +none")
        self.assertIn("another channel", self.fleet("verify", self.folder_of_fleet, "--channel", "beta", code=2).stderr)

    def test_a_dry_run_changes_nothing(self):
        self.begin()
        before = self.body()
        look = self.path("look")
        self.fleet("publish", self.folder_of_fleet, "--tuning", self.tuning_file("u2-ldg"), "--dry-run", "--out", look)
        self.assertEqual(self.body(), before)
        self.assertEqual(sorted(os.listdir(look)), ["manifest.json", "payload.json", "tuning.json"])
        self.assertEqual(json.loads(self.read(os.path.join(look, "tuning.json")))["cards"]["NVIDIA_GeForce_RTX_5090"]["variant"], "u2-ldg")
        self.assertIn("go together", self.fleet("publish", self.folder_of_fleet, "--dry-run", code=2).stderr)

    def test_a_dry_run_writes_over_no_fleet(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        before = self.body()
        dry = ("--no-tuning", "--dry-run", "--out")
        for out in (self.folder_of_fleet, os.path.join(self.folder_of_fleet, "..", "fleet")):
            self.assertIn("holds a fleet", self.fleet("publish", self.folder_of_fleet, *dry, out, code=2).stderr)
        self.write("served/manifest.json", before)  # the copy that a hub serves, without its root
        self.write("own/tuning.json", "{}")  # the operator's
        for folder, name in (("served", "manifest.json"), ("own", "tuning.json")):
            run = self.fleet("publish", self.folder_of_fleet, *dry, self.path(folder), code=2)
            self.assertIn(f"{name} is there, and of no dry run", run.stderr)
            self.assertEqual(os.listdir(self.path(folder)), [name])
        self.assertEqual((self.body(), self.read(self.path("served/manifest.json"))), (before, before))
        for _ in range(2):  # a former dry run's folder serves again
            self.fleet("publish", self.folder_of_fleet, *dry, self.path("look"))

    def test_two_signers(self):
        self.keygen("second.key")
        self.begin("--publish-key", self.path("second.key.pub"), "--publish-threshold", "2")
        before = self.body()
        said = json.loads(self.publish("--tuning", self.tuning_file("u2-ldg"), "--json").stdout)
        self.assertEqual(said["state"], "waiting")
        self.assertEqual(self.body(), before)
        self.publish("--add")  # the same key again is one signature
        self.assertEqual(self.body(), before)
        self.assertIn("may not sign this", self.publish("--add", key="stop.key", code=2).stderr)
        self.publish("--add", key="second.key")
        self.assertEqual(len(json.loads(self.fleet("verify", self.folder_of_fleet, "--json").stdout)["manifest"]["signers"]), 2)
        self.assertEqual(sorted(os.listdir(self.folder_of_fleet)), ["manifest.json", "root.json"])

    def test_what_is_refused(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        self.assertIn("may not sign this", self.publish(key="root.key", code=2).stderr)
        self.assertIn("no name of a variant", self.publish("--override", json.dumps(tuning("../x")), code=2).stderr)
        self.assertIn("can only name variants", self.publish("--override", json.dumps(tuning("w4", flags="-O9")), code=2).stderr)
        self.assertIn("cards", self.publish("--override", '{"schema": 1}', code=2).stderr)
        self.assertIn("outlive its root", self.publish("--expires-days", "400", code=2).stderr)
        body = self.body()
        at = body.index('"payload": "', body.index('"manifest"')) + 40
        self.write("changed.json", body[:at] + ("A" if body[at] != "A" else "B") + body[at + 1:])
        run = self.fleet("verify", self.path("changed.json"), "--root", os.path.join(self.folder_of_fleet, "root.json"), code=2)
        self.assertIn("the bytes were changed", run.stderr)
        self.assertIn("no public key", self.fleet("root", self.path("other"), "--product", "p", "--root-key", self.path("root.key"), code=2).stderr)

    def test_what_is_mixed_up_is_told_what_was_wanted(self):
        self.begin()
        self.assertIn("this is the public key; the secret one is the file without .pub", self.publish(key="publish.key.pub", code=2).stderr)
        self.write("none.key", "x")
        self.assertIn("furlong fleet keygen", self.publish(key="none.key", code=2).stderr)
        none = self.write("none.json", "no JSON")
        self.assertRegex(self.publish("--tuning", none, code=2).stderr, r"--tuning wants a tuning, .*: .*none\.json")
        self.assertIn("takes the JSON itself", self.publish("--override", self.tuning_file("w4"), code=2).stderr)
        self.assertIn("--override wants the JSON", self.publish("--override", "no JSON", code=2).stderr)

    def test_a_rotation(self):
        self.begin()
        first_root = self.write("pinned.json", self.read(os.path.join(self.folder_of_fleet, "root.json")))
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        self.keygen("new.key", "new-root.key")
        run = self.fleet("rotate", self.folder_of_fleet, "--publish-key", self.path("new.key.pub"), "--root-key", self.path("new-root.key.pub"),
                         "--key", self.path("root.key"))
        self.assertIn("waits for more signatures", run.stdout)
        run = self.fleet("rotate", self.folder_of_fleet, "--add", "--key", self.path("new-root.key"))
        self.assertIn("publish it again", run.stderr)
        self.assertIn("is no key of that role", self.fleet("verify", self.folder_of_fleet, "--root", first_root, code=2).stderr)
        self.publish(key="new.key")  # the tuning is carried over
        shown = json.loads(self.fleet("verify", self.folder_of_fleet, "--root", first_root, "--json").stdout)
        self.assertEqual((shown["root"], shown["manifest"]["version"], shown["pins"]), (2, 2, True))

    def test_a_rotation_while_a_stop_stands(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        first_root = self.write("pinned.json", self.read(os.path.join(self.folder_of_fleet, "root.json")))
        self.fleet("stop", self.folder_of_fleet, "--key", self.path("stop.key"))
        self.fleet("rotate", self.folder_of_fleet, "--key", self.path("root.key"))
        self.assertIn("stop 1 still holds", self.publish().stderr)
        shown = json.loads(self.fleet("verify", self.folder_of_fleet, "--root", first_root, "--json").stdout)
        self.assertEqual((shown["root"], shown["pins"]), (2, False), "a machine that sees the stop under the new root obeys it")
        self.keygen("new-stop.key")
        run = self.fleet("rotate", self.folder_of_fleet, "--stop-key", self.path("new-stop.key.pub"), "--key", self.path("root.key"))
        self.assertIn("the stop was signed with keys that this root has no more", run.stderr)
        self.assertNotIn("still holds", self.publish().stderr)
        shown = json.loads(self.fleet("verify", self.folder_of_fleet, "--root", first_root, "--json").stdout)
        self.assertEqual((shown["root"], shown["pins"]), (3, True))
        self.fleet("stop", self.folder_of_fleet, "--key", self.path("stop.key"), code=2)
        self.fleet("stop", self.folder_of_fleet, "--key", self.path("new-stop.key"))

    def test_a_share_is_not_widened_by_the_way(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"), "--canary")
        self.assertIn(", 0% of the machines and all canaries", self.publish("--no-override").stdout)
        self.assertIn(", 25% of the machines", self.publish("--percent", "25").stdout)
        self.assertIn(", 25% of the machines", self.publish().stdout)

    def test_what_waits_is_signed_as_it_is(self):
        self.begin("--expires-days", "300")
        self.keygen("second.key")
        self.fleet("rotate", self.folder_of_fleet, "--publish-key", self.path("publish.key.pub"), "--publish-key",
                   self.path("second.key.pub"), "--publish-threshold", "2", "--key", self.path("root.key"))
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        other = self.tuning_file("w4")
        for words in (["--tuning", other], ["--percent", "5"], ["--no-tuning"], ["--canary"]):
            self.assertIn(words[0], self.publish("--add", *words, key="second.key", code=2).stderr)
        self.assertIn("manifest 1", self.publish("--add", key="second.key").stdout)

    def test_a_stop_and_its_lifting(self):
        self.begin()
        self.assertIn("nothing is published", self.fleet("stop", self.folder_of_fleet, "--key", self.path("stop.key"), code=2).stderr)
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        self.assertIn("race locally from manifest 1 on", self.fleet("stop", self.folder_of_fleet, "--key", self.path("stop.key")).stdout)
        self.assertIn("race in full", self.fleet("verify", self.folder_of_fleet).stdout)
        self.assertIn("stop 1 still holds", self.publish().stderr)
        self.assertIn("would not hold for the current manifest 2",
                      self.fleet("stop", self.folder_of_fleet, "--from", "3", "--key", self.path("stop.key"), code=2).stderr)
        self.publish("--lift-stop")
        self.assertTrue(json.loads(self.fleet("verify", self.folder_of_fleet, "--json").stdout)["pins"])


class Obeying(Fleet):
    def tuned(self):
        file = os.path.join(self.data, "tuning.json")
        return json.loads(self.read(file))["cards"]["NVIDIA_GeForce_RTX_5090"]["variant"] if os.path.exists(file) else None

    def serve(self, hub, body=None):
        hub.manifest = (body if body is not None else self.body()).encode()

    def start_with(self, hub, rest="", every=10):
        self.with_hub(hub, rest=f'manifest_every_s = {every}\n[manifest]\nroot = "fleet/root.json"\n{rest}')
        check = self.run_furlong("agent", "check", "--config", self.path("agent.toml"))
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.assertRegex(check.stdout, r"manifest +channel stable, root 1 of our-fleet")
        return self.start()

    def test_an_agent_obeys_without_a_restart(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        hub = self.hub()
        self.serve(hub)
        agent = self.start_with(hub)
        self.until(lambda: self.tuned() == "u2-ldg", "the first tuning")
        self.until_state(lambda s: s["manifest"] == "1", "the version in the status")
        good = self.body()
        self.publish("--tuning", self.tuning_file("w4"))
        self.serve(hub)
        self.until(lambda: self.tuned() == "w4", "the second tuning")
        self.serve(hub, good)  # a replay
        self.until_logged(r"the manifest was not taken: .*manifest 1 is older than manifest 2")
        self.assertEqual(self.tuned(), "w4")
        self.fleet("stop", self.folder_of_fleet, "--key", self.path("stop.key"))
        self.serve(hub)
        self.until(lambda: self.tuned() is None, "the tuning is withdrawn")
        self.until_logged(r"manifest 2: stop 1 says: race locally from manifest 2 on; workers race in full")
        self.publish("--lift-stop")
        self.serve(hub)
        self.until(lambda: self.tuned() == "w4", "the stop is lifted")
        # A kill, and a start without the hub: what was verified stays.
        self.end(agent, signal.SIGKILL)
        os.remove(os.path.join(self.data, "tuning.json"))
        hub.manifest = None
        agent = self.start()
        self.until(lambda: self.tuned() == "w4", "from the state")
        self.assertEqual(self.end(agent), 0)
        self.assertEqual(len([line for line in self.read(self.path("agent.log")).splitlines() if "tuning.json is new" in line]), 4)

    def test_pins_lapse_at_expiry_also_without_the_hub(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"), "--expires-days", "0.0005")  # 43 s
        hub = self.hub()
        self.serve(hub)
        agent = self.start_with(hub)
        self.until(lambda: self.tuned() == "u2-ldg", "the tuning")
        hub.manifest = None
        self.until(lambda: self.tuned() is None, "the pins lapse")
        self.until_logged(r"the manifest expired at .*workers race in full")
        self.assertEqual(self.end(agent), 0)

    def test_canaries_first(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"), "--canary")
        hub = self.hub()
        self.serve(hub)
        agent = self.start_with(hub)
        self.until(lambda: hub.manifest_requests >= 1, "it asked")
        self.until(lambda: os.path.exists(os.path.join(self.data, "manifest-state.json")), "it has seen the manifest")
        self.assertIsNone(self.tuned())
        self.end(agent)
        agent = self.start_with(hub, rest="canary = true\n")
        self.until(lambda: self.tuned() == "u2-ldg", "a canary takes it")
        self.end(agent)

    def test_without_the_table_nothing_is_fetched(self):
        self.begin()
        self.publish("--tuning", self.tuning_file("u2-ldg"))
        hub = self.hub()
        self.serve(hub)
        self.with_hub(hub)
        agent = self.start()
        self.until(lambda: hub.records, "a record at the hub")
        self.end(agent)
        self.assertEqual((hub.manifest_requests, self.tuned()), (0, None))

    def test_a_root_that_is_none(self):
        self.write("fleet/root.json", "{}")
        self.with_hub(self.hub(), rest='[manifest]\nroot = "fleet/root.json"\n')
        run = self.run_furlong("agent", "--config", self.path("agent.toml"))
        self.assertEqual((run.returncode, "root.json" in run.stderr), (2, True), run.stderr)
        self.assertEqual(self.run_furlong("agent", "check", "--config", self.path("agent.toml")).returncode, 2)


def load_tests(loader, tests, pattern):
    # Not those of the module that the case comes from.
    suite = unittest.TestSuite()
    for case in (Commands, Obeying):
        suite.addTests(loader.loadTestsFromTestCase(case))
    return suite


if __name__ == "__main__":
    unittest.main()
