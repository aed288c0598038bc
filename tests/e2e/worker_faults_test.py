"""Faults of a worker's kernels and processes: work goes on, and each nonce is done once."""
import os
import time
import unittest

from worker_support import OFF, WHERE, FaultCase, job, planted


class Faults(FaultCase):
    def test_a_kernel_that_traps_in_service(self):
        worker = self.faulty(planted("__builtin_trap();"))
        self.assertIn("'n64' ended the process: trap", worker.text())
        self.assertEqual(len(worker.of("recovered")), 1)
        worker.wait("prepared")
        self.assertIn("n64 is pinned, and out", worker.text())
        worker.quit()
        listed = self.run_furlong("quarantine", "list").stdout
        self.assertIn("n64", listed)

    def test_a_kernel_that_calls_exit_in_service(self):
        worker = self.faulty(planted('__asm__ volatile("mov $231, %%eax; xor %%edi, %%edi; syscall" ::: "rax", "rdi", "rcx", "r11");'))  # exit_group(0)
        self.assertIn("'n64' ended the process", worker.text())
        worker.quit()

    def test_a_kernel_that_hangs_in_service(self):
        worker = self.faulty(planted('for (;;) __asm__ volatile("");'), "--hang-s", "2")
        self.assertIn("hang: ran past", worker.text())
        worker.quit()

    def test_a_kernel_that_computes_wrong_in_service(self):
        worker = self.faulty(planted("start ^= 1;"))
        self.assertEqual(worker.of("reverted")[0][3], "n64")
        self.assertEqual(worker.of("recovered"), [])
        worker.quit()
        self.assertIn("in service: n64", self.run_furlong("quarantine", "list").stdout)

    def test_a_kernel_that_tells_false_finds(self):
        worker = self.faulty(planted("for (uint64_t k = 0; k < 8 && k < count; ++k) hits[0] |= 1u << k;"))
        self.assertEqual(worker.of("reverted")[0][3], "n64")
        worker.quit()

    def test_kills_of_the_process_that_owns_the_device(self):
        self.killed(5, prepare_next=True)

    def test_a_kill_of_the_front_leaves_no_orphan(self):
        pack = self.pack("a")
        worker = self.worker(*OFF)
        worker.send("prepare " + pack, job(pack, "j1"))
        worker.wait("swap")
        back = worker.back()
        self.assertIsNotNone(back)
        worker.process.kill()
        until = time.monotonic() + 20
        while os.path.exists(f"/proc/{back}") and time.monotonic() < until:
            with open(f"/proc/{back}/stat", encoding="ascii") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    break
            time.sleep(0.05)
        else:
            self.assertFalse(os.path.exists(f"/proc/{back}"), "the process that owns the device lives on")

    def test_base_that_cannot_serve_ends_the_worker(self):
        pack = self.pack("a", edit=lambda text: text.replace(
            "  const uint64_t first = block.x", "  if ((start >> 40) == 0xABCDEFu) __builtin_trap();\n  const uint64_t first = block.x", 1))
        worker = self.worker(*OFF)
        worker.send("prepare " + pack, job(pack, "j1", start=WHERE))
        worker.wait(lambda words: words[0] == "error" and "times in a row" in " ".join(words), 400)
        worker.end(3)


if __name__ == "__main__":
    unittest.main()
