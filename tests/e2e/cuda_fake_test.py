"""The CUDA back end through the real program, with libraries of the tests' own in place of NVIDIA's: races on a card that
is not there, kernels that ruin its context, and what `devices` and `doctor` say of a card that cannot be used."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import Case, FURLONG, variant  # noqa: E402

FAKES = os.path.join(os.environ["FURLONG_BUILD"], "tests", "fake_cuda")
QUICK = ["--device", "cuda:0", "--race-budget-s", "20"]
WILD = "*(volatile int*)(unsigned long long)0x10 = 1;"


def library(name):
    return os.path.join(FAKES, f"libfurlong_fake_{name}.so")


class CardCase(Case):
    def setUp(self):
        super().setUp()
        self.environment.update(FURLONG_CUDA_DRIVER=library("cuda"), FURLONG_NVRTC=library("nvrtc"), FURLONG_NVML=library("nvml"))
        self.card("")

    def card(self, script, driver="cuda"):
        """What the card is and does from now on: see tests/fake_cuda/README.md."""
        self.environment["FURLONG_FAKE_CUDA"] = self.write("card.txt", script + "\n")
        self.environment["FURLONG_CUDA_DRIVER"] = library(driver)

    def program(self, body="", values="[0, 1]", tags='["", "bad"]'):
        """y = 2x on the card; `body` runs before it, in the variant with KIND 1 where it asks for that."""
        program = self.host_program("")
        self.write("kernel.cu", 'extern "C" __global__ void kernel(unsigned n, const int* x, int* y) {\n'
                   "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n" + body + "\n  if (i < n) y[i] = 2 * x[i];\n}\n")
        text = self.read(program).replace('language = "host"', 'language = "cuda"').replace("kernel.cpp", "kernel.cu")
        text = text.replace("block = 1", "block = 256").replace("n = 65536", "n = 4096")
        text = text.replace("values = [0, 1]", f"values = {values}").replace('tags = ["", "bad"]', f"tags = {tags}")
        return self.write("planted.toml", text)

    def quarantined(self):
        listed = json.loads(self.run_furlong("quarantine", "list", "--json").stdout)["quarantine"]
        return [entry["variant"] for entry in listed]


class Races(CardCase):
    def test_a_race_on_the_card(self):
        race, run = self.race_json(self.program("  if (KIND) for (volatile int t = 0; t < 20; ++t) {}", tags='["", "slow"]'), *QUICK)
        self.assertEqual(race["winner"], "base", run.stdout)
        self.assertTrue(variant(race, "slow")["gated"])
        self.assertRegex(run.stdout, "cuda:0")
        for name in ("base", "slow"):
            self.assertEqual(variant(race, name)["registers"], 32)
        self.assertEqual(self.quarantined(), [])
        self.assertEqual(os.listdir(self.temporary), [])

    def caught(self, body, why, *more, where="trial"):
        program = self.program("#if KIND\n" + body + "\n#endif")
        started = time.monotonic()
        race, run = self.race_json(program, *QUICK, *more)
        print(f"  {why}: {time.monotonic() - started:.1f} s", file=sys.stderr)
        bad = variant(race, "bad")
        self.assertEqual(bad["exit"], where, bad)
        self.assertRegex(bad["why"], why)
        self.assertTrue(variant(race, "base")["rate"], run.stdout)
        self.assertEqual(self.quarantined(), ["bad"])
        again, run = self.race_json(program, *QUICK)
        self.assertEqual(variant(again, "bad")["exit"], "quarantined")
        self.assertTrue(variant(again, "base")["rate"], run.stdout)
        self.assertEqual(os.listdir(self.temporary), [])

    def test_an_illegal_access(self):
        self.caught(f"  if (i == 5) {WILD}", r"CUDA_ERROR_ILLEGAL_ADDRESS \(700\)")

    def test_a_trap(self):
        self.caught("  if (i == 5) __trap();", r"CUDA_ERROR_LAUNCH_FAILED \(719\)")

    def test_an_endless_loop(self):
        self.caught("  for (volatile int go = 1; go;) {}", "hang|ran past|time", "--trial-timeout-s", "3")

    def late(self, crime, why, *more):
        """Good for its first launches: the trial and the gate see nothing."""
        program = self.program("#if KIND\n  static unsigned launches;\n  if (i == 0 && ++launches > 50) { " + crime + " }\n#endif")
        race, run = self.race_json(program, *QUICK, *more)
        self.assertRegex(variant(race, "bad")["why"], why)
        self.assertTrue(variant(race, "base")["rate"], run.stdout)
        self.assertEqual(self.quarantined(), ["bad"])
        again, second = self.race_json(program, *QUICK)
        self.assertEqual(variant(again, "bad")["exit"], "quarantined")
        self.assertTrue(variant(again, "base")["rate"], second.stdout)
        self.assertNotIn("began anew", second.stdout)
        self.assertEqual(self.quarantined(), ["bad"])
        self.assertEqual(os.listdir(self.temporary), [])
        return race, run

    def test_an_access_that_fails_on_a_late_launch(self):
        _, run = self.late(WILD, r"CUDA_ERROR_ILLEGAL_ADDRESS \(700\)")
        # The card answers nothing more in the process that ran it.
        self.assertRegex(run.stdout, r"the race began anew without bad, which had ended its process: "
                         r"trap: .*\(700\).*; it was ready again after \d+\.\d s")

    def test_a_trap_on_a_late_launch(self):
        _, run = self.late("__trap();", r"CUDA_ERROR_LAUNCH_FAILED \(719\)")
        self.assertRegex(run.stdout, r"began anew without bad, .*trap: .*\(719\).*; it was ready again after \d+\.\d s")

    def test_a_late_endless_loop(self):
        self.late("for (volatile int go = 1; go;) {}", "hang|ran past|time", "--trial-timeout-s", "3")

    def test_a_full_card_is_named(self):
        self.card("out_of_memory_at = 8KiB")
        run = self.run_furlong("race", self.program(), *QUICK, "--quiet")
        self.assertIn(run.returncode, (2, 3), run.stdout + run.stderr)
        self.assertRegex(run.stderr, r"asked for \d+ KiB \(\d+ bytes\), .* available on cuda:0: .*nvidia-smi")

    def test_a_throttle_change_drops_its_heats(self):
        self.card("nvml.reasons = 0, 4*2, 32*2, 0")
        race, run = self.race_json(self.program("  if (KIND) for (volatile int t = 0; t < 2; ++t) {}", tags='["", "slow"]'), *QUICK)
        reasons = [heat["dropped"] for heat in race["heats"] if "dropped" in heat]
        self.assertEqual(len(reasons), race["dropped_heats"])
        self.assertGreaterEqual(reasons.count("the throttle state changed"), 2, reasons)
        self.assertRegex(run.stdout, r"dropped")

    def test_a_variant_that_does_not_fit_is_refused_before_its_launch(self):
        self.card("registers = 255")
        program = self.program(tags='["", "same"]')
        self.write("planted.toml", self.read(program).replace("block = 256", "block = 1024"))
        run = self.run_furlong("race", program, *QUICK, "--quiet")
        self.assertNotEqual(run.returncode, 0)
        self.assertRegex(run.stderr, "1024 threads.*255 registers.*65536")


class Platform(CardCase):
    def problems(self):
        """What `devices` says is to do about cards that it lists, by what it is about; the table says the same."""
        document, addresses = self.devices()
        self.assertIn("cuda:0", addresses)
        text = self.run_furlong("devices").stdout
        problems = {}
        for one in document["problems"]:
            self.assertIn(f"{one['what']}: {one['finding']}\n  to do: {one['to_do']}\n", text)
            self.assertEqual(document["to_do"][one["what"]], one["to_do"])
            problems[one["what"]] = one
        return problems

    def test_a_good_card_has_no_problems(self):
        self.assertEqual(self.problems(), {})
        self.assertNotIn("problems:", self.run_furlong("devices").stdout)

    def test_devices_tells_what_to_do_about_a_card_in_use(self):
        self.card("cards = 2; 1.compute_mode = 3; nvml.processes = 4194999:1GiB")
        problems = self.problems()
        self.assertEqual(list(problems), ["cuda:1 compute mode"])
        mode = problems["cuda:1 compute mode"]
        self.assertIn("exclusive, and held by process", mode["finding"])
        self.assertIn("(1 GiB, numbered as outside this container)", mode["finding"])
        self.assertEqual(mode["to_do"], "nvidia-smi -i GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfe01 -c DEFAULT")
        self.card("compute_mode = 2")
        mode = self.problems()["cuda:0 compute mode"]
        self.assertIn("prohibited", mode["finding"])
        self.assertRegex(mode["to_do"], "nvidia-smi -i GPU-f0f1f2f3-.* -c DEFAULT")

    def test_with_mig_a_mend_names_the_whole_card(self):
        self.card("nvml.mig = 1; compute_mode = 3")
        document, addresses = self.devices()
        self.assertEqual(document["devices"][addresses.index("cuda:0")]["uuid"][:12], "GPU-e0f1f2f3")  # the slice's
        self.assertEqual(self.problems()["cuda:0 compute mode"]["to_do"],
                         "nvidia-smi -i GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfe00 -c DEFAULT")
        self.assertRegex(self.run_furlong("doctor").stdout, r"(?s)cuda:0 MIG .*nvidia-smi -i\s+GPU-f0f1f2f3")

    def test_devices_tells_which_nvrtc_to_install(self):
        self.environment["FURLONG_NVRTC"] = self.path("no-such-library.so")
        nvrtc = self.problems()["cuda NVRTC"]
        self.assertIn("no-such-library", nvrtc["finding"])
        self.assertIn("FURLONG_NVRTC", nvrtc["to_do"])

    def test_a_driver_too_old_for_the_nvrtc(self):
        self.card("driver = 12040")
        nvrtc = self.problems()["cuda NVRTC"]
        self.assertRegex(nvrtc["finding"], r"NVRTC 13\.0 \(.*\) makes code that this driver, for CUDA 12\.4, cannot run")
        self.assertEqual(nvrtc["to_do"], "unset FURLONG_NVRTC, or install NVRTC 12.4 (NVIDIA's package cuda-nvrtc-12-4) and let it name that")
        run = self.run_furlong("race", self.program(), *QUICK, "--quiet")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(nvrtc["to_do"], run.stderr)

    def test_a_driver_variable_without_its_file(self):
        self.environment["FURLONG_CUDA_DRIVER"] = self.path("no-such-driver.so")
        document, addresses = self.devices()
        self.assertNotIn("cuda:0", addresses)
        self.assertEqual(document["to_do"]["cuda"], "unset FURLONG_CUDA_DRIVER, or let it name a libcuda.so.1")
        said = " ".join(self.run_furlong("doctor").stdout.split())
        self.assertIn(f"FURLONG_CUDA_DRIVER names {self.path('no-such-driver.so')}, a file that is not there", said)

    def devices(self, **options):
        run = self.run_furlong("devices", "--json", **options)
        document = json.loads(run.stdout)
        return document, [one["address"] for one in document["devices"]]

    def test_devices_and_doctor_of_a_good_card(self):
        document, addresses = self.devices()
        self.assertIn("cuda:0", addresses)
        card = document["devices"][addresses.index("cuda:0")]
        self.assertEqual(card["label"], "Furlong_Test_Card")
        self.assertEqual(card["silicon"]["arch"], "sm_90")
        self.assertEqual(card["driver"], "580.00.01")
        self.assertEqual(card["compiler"], "NVRTC 13.0")
        run = self.run_furlong("doctor")
        self.assertRegex(run.stdout, r"cuda:0 +.*Furlong_Test_Card: compiles and runs \(NVRTC 13\.0\)")

    def test_two_cards(self):
        self.card("cards = 2; 1.name = Other Card")
        self.assertEqual([one for one in self.devices()[1] if one.startswith("cuda")], ["cuda:0", "cuda:1"])

    def test_why_there_is_no_card(self):
        for script, says, mend in (("cards = 0", r"CUDA_ERROR_NO_DEVICE \(100\)", "CUDA_VISIBLE_DEVICES"),
                                   ("init = 803", r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH \(803\)", "reboot"),
                                   ("init = 802", r"CUDA_ERROR_SYSTEM_NOT_READY \(802\)", "nvidia-fabricmanager"),
                                   ("init = 999", r"CUDA_ERROR_UNKNOWN \(999\)", "nvidia-smi")):
            self.card(script)
            document, addresses = self.devices()
            self.assertNotIn("cuda:0", addresses)
            self.assertRegex(document["absent"]["cuda"], says)
            self.assertRegex(document["absent"]["cuda"], mend)
            self.assertRegex(self.run_furlong("doctor").stdout, says)
            run = self.run_furlong("race", self.program(), *QUICK, "--quiet")
            self.assertNotEqual(run.returncode, 0)
            self.assertRegex(run.stderr, says)

    def test_a_driver_without_a_function_is_too_old(self):
        self.card("", "cuda_without_cuMemGetInfo")
        absent = self.devices()[0]["absent"]["cuda"]
        self.assertRegex(absent, "cuMemGetInfo_v2.*update")

    def test_a_driver_without_an_optional_function_races(self):
        for symbol in ("cuFuncGetParamInfo", "cuGraphLaunch", "cuDeviceGetUuid"):
            self.card("", "cuda_without_" + symbol)
            race, _ = self.race_json(self.program(tags='["", "same"]'), *QUICK)
            self.assertTrue(variant(race, "base")["rate"])

    def test_without_nvml_there_is_no_telemetry(self):
        self.environment["FURLONG_NVML"] = self.path("no-such-library.so")
        race, _ = self.race_json(self.program(tags='["", "same"]'), *QUICK)
        self.assertTrue(variant(race, "base")["rate"])

    def test_without_nvrtc_the_mend_is_told(self):
        self.environment["FURLONG_NVRTC"] = self.path("no-such-library.so")
        self.assertRegex(self.run_furlong("doctor").stdout, "no-such-library")
        run = self.run_furlong("race", self.program(), *QUICK, "--quiet")
        self.assertNotEqual(run.returncode, 0)
        self.assertRegex(run.stderr, "FURLONG_NVRTC")

    def test_an_nvrtc_older_than_the_card(self):
        self.card("nvrtc_archs = 70, 75, 80")
        says = "does not know this card's sm_90, only sm_70 to sm_80"
        mend = "unset FURLONG_NVRTC, or install NVRTC 13.0 (NVIDIA's package cuda-nvrtc-13-0) and let it name that"
        nvrtc = self.problems()["cuda NVRTC"]
        self.assertIn(says, nvrtc["finding"])
        self.assertEqual(nvrtc["to_do"], mend)
        said = " ".join(self.run_furlong("doctor").stdout.split())
        self.assertRegex(said, f"problem cuda NVRTC NVRTC .* {re.escape(says)} to do: {re.escape(mend)}")
        self.assertRegex(said, f"problem cuda:0 .*{re.escape(says)}: {re.escape(mend)}")
        run = self.run_furlong("race", self.program(), *QUICK, "--quiet")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(says, run.stderr)
        self.assertIn(mend, run.stderr)

    def test_a_card_in_use(self):
        for script in ("fail.cuCtxCreate = 46", "compute_mode = 2"):
            self.card(script)
            self.assertIn("cuda:0", self.devices()[1])
            self.assertRegex(self.run_furlong("doctor").stdout, r"CUDA_ERROR_DEVICE_UNAVAILABLE \(46\).*")
            run = self.run_furlong("race", self.program(), *QUICK, "--quiet")
            self.assertNotEqual(run.returncode, 0)
            self.assertRegex(run.stderr, r"\(46\).*nvidia-smi -c DEFAULT")

    def test_another_process_holds_an_exclusive_card(self):
        self.card("compute_mode = 3")
        lock = self.path("lock")
        self.card(f"compute_mode = 3; exclusive_lock = {lock}")
        with subprocess.Popen([sys.executable, "-c", "import fcntl, sys, time\nfile = open(sys.argv[1], 'w')\n"
                               "fcntl.flock(file, fcntl.LOCK_EX)\nprint('held', flush=True)\ntime.sleep(600)", lock],
                              stdout=subprocess.PIPE, text=True) as holder:
            try:
                self.assertEqual(holder.stdout.readline(), "held\n")
                run = self.run_furlong("race", self.program(), *QUICK, "--quiet")
                self.assertNotEqual(run.returncode, 0)
                self.assertRegex(run.stderr, r"\(46\).*nvidia-smi -c DEFAULT")
            finally:
                holder.kill()


if __name__ == "__main__":
    unittest.main()
