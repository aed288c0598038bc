#!/usr/bin/env python3
"""A second implementation of docs/formats/lottery.md, written from the page alone; checks the vectors at its end."""
import hashlib
import re
import struct
import sys
from pathlib import Path

M = 0xFFFFFFFF
ARITHMETIC = ["add", "subtract", "exclusive", "multiply", "rotate", "high"]


def h(message):
    return hashlib.blake2b(message, digest_size=32).digest()


def label(text):
    return text.encode("ascii").ljust(32, b"\0")


def rotl(x, n):
    return ((x << n) | (x >> (32 - n))) & M


def mulhi(a, b):
    return (a * b) >> 32


def finalise(x):
    x ^= x >> 16
    x = x * 0x85EBCA6B & M
    x ^= x >> 13
    x = x * 0xC2B2AE35 & M
    return x ^ x >> 16


class Stream:
    def __init__(self, seed, day, loads, wide):
        self.head = label("furlong lottery program 1") + seed + struct.pack("<QII", day, loads, wide)
        self.k, self.words = 0, []

    def next(self):
        if not self.words:
            self.words = list(struct.unpack("<8I", h(self.head + struct.pack("<Q", self.k))))
            self.k += 1
        return self.words.pop(0)

    def below(self, bound):
        return mulhi(self.next(), bound)

    def shuffle(self, items):
        for i in range(len(items), 1, -1):
            j = self.below(i)
            items[i - 1], items[j] = items[j], items[i - 1]


class Program:
    def __init__(self, seed, day, loads, wide):
        s = Stream(seed, day, loads, wide)
        self.nonce_key = [s.next() for _ in range(6)]
        self.hash_key = [s.next() for _ in range(2)]
        self.register_key = [s.next() for _ in range(16)]
        count = loads // 8
        arithmetic = [ARITHMETIC[i % 6] for i in range(64 - count)]
        s.shuffle(arithmetic)
        reads = ["load_wide"] * (wide // 8) + ["load"] * (count - wide // 8)
        s.shuffle(reads)
        stride = 64 // count
        operations = [reads.pop(0) if i % stride == stride - 1 else arithmetic.pop(0) for i in range(64)]
        destinations = []
        for _ in range(4):
            block = list(range(16))
            s.shuffle(block)
            destinations += block
        sources = [i % 16 for i in range(64 - count)]
        s.shuffle(sources)
        self.steps, last = [], {}
        for i, (operation, d) in enumerate(zip(operations, destinations)):
            if i % stride == stride - 1:
                source = destinations[i - 1 - s.below(stride - 1)]
            else:
                source = self.take_source(s, sources, d, last.get(d))
            last[d] = source
            constant = s.next() | (0x80000000 if operation == "high" else 1)
            self.steps.append((operation, d, source, constant, 1 + s.below(31)))

    @staticmethod
    def take_source(stream, deck, d, last):
        for source in deck:
            if source not in (d, last):
                deck.remove(source)
                return source
        while True:
            k = stream.below(15)
            source = k if k < d else k + 1
            if source != last:
                return source


def double_round(x):
    for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                       (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
        for p, q, r, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[p] = (x[p] + x[q]) & M
            x[r] = rotl(x[r] ^ x[p], n)


class Cache:
    def __init__(self, seed, day, size):
        key = h(label("furlong lottery cache 1") + seed + struct.pack("<QQ", day, size))
        s = list(struct.unpack("<16I", key + b"every row comes from this cache."))
        self.lines = []
        for i in range(size // 64):
            t = list(s)
            t[12] ^= i
            for _ in range(4):
                double_round(t)
            s = [(a + b) & M for a, b in zip(s, t)]
            self.lines.append(s)

    def row(self, i):
        n = len(self.lines)
        x = list(self.lines[i % n])
        x[0] ^= i
        double_round(x)
        for j in range(8):
            x = [a ^ b for a, b in zip(x, self.lines[mulhi(x[j], n)])]
            double_round(x)
        return x


def hash_nonce(program, cache, words, nonce):
    key = program.nonce_key
    lo, hi = (nonce & M) ^ key[0], (nonce >> 32) ^ key[1]
    hi ^= finalise((lo + key[2]) & M)
    lo ^= finalise((hi + key[3]) & M)
    hi ^= finalise((lo + key[4]) & M)
    lo ^= finalise((hi + key[5]) & M)
    r = [finalise(((hi if k % 2 else lo) + program.register_key[k]) & M) for k in range(16)]
    for _ in range(8):
        for operation, d, source, c, n in program.steps:
            s = r[source]
            if operation == "add":
                r[d] += s
            elif operation == "subtract":
                r[d] -= s
            elif operation == "exclusive":
                r[d] ^= s
            elif operation == "multiply":
                r[d] = r[d] * c + s
            elif operation == "rotate":
                r[d] = rotl(r[d], n) ^ s
            elif operation == "high":
                r[d] += mulhi(s, c)
            elif operation == "load":
                i = mulhi(s, words)
                r[d] = rotl(r[d], n) ^ cache.row(i // 16)[i % 16]
            else:
                q = 4 * mulhi(s, words // 4)
                w = cache.row(q // 16)[q % 16:q % 16 + 4]
                x = (rotl(r[d] ^ w[0], n) + w[1]) & M
                r[d] = (x ^ w[2]) * c + w[3]
            r[d] &= M
    a, b = program.hash_key
    for x in r:
        a = rotl((a ^ x) * 0x9E3779B1 & M, 15)
        b = rotl((b + x) & M, 11) * 0x85EBCA77 & M
    a = finalise((a + b) & M)
    b = finalise(b ^ a)
    a = finalise((a + b) & M)
    return a << 32 | b


def words_text(words):
    return "".join(f" {w:08x}" for w in words)


def hash_lines(program, cache, words, nonces):
    return [f"hash {n:016x}: {hash_nonce(program, cache, words, n):016x}" for n in nonces]


def expected_block():
    seed, mib = h(b"furlong lottery demonstration"), 1 << 20
    program, cache = Program(seed, 0, 128, 0), Cache(seed, 0, mib)
    rows = 16 * mib // 64
    out = ["[demonstration seed, day 0, small, 128 loads, 0 wide]", f"epoch_seed: {seed.hex()}",
           f"nonce_key:{words_text(program.nonce_key)}", f"hash_key:{words_text(program.hash_key)}",
           f"register_key:{words_text(program.register_key)}"]
    out += [f"{i} {o} {d} {s} {c:08x} {n}" for i, (o, d, s, c, n) in enumerate(program.steps)]
    out += [f"cache line {i}:{words_text(cache.lines[i])}" for i in (0, len(cache.lines) - 1)]
    out += [f"dataset row {i}:{words_text(cache.row(i))}" for i in (0, rows - 1)]
    out += hash_lines(program, cache, 16 * mib // 4, [0, 1, 0x0123456789ABCDEF, 0xFFFFFFFFFFFFFFFF])
    out += ["", "[demonstration seed, day 3, dataset of 65 MiB over the small cache, 64 loads, 32 wide]"]
    out += hash_lines(Program(seed, 3, 64, 32), Cache(seed, 3, mib), 65 * mib // 4, [0, 0xFEDCBA9876543210])
    counting = bytes(range(32))
    out += ["", "[epoch_seed 000102…1f, day 1, small, 32 loads, 8 wide]"]
    out += hash_lines(Program(counting, 1, 32, 8), Cache(counting, 1, mib), 16 * mib // 4, [0, 1 << 63])
    return "\n".join(out) + "\n"


def main():
    page = Path(__file__).resolve().parents[2] / "docs" / "formats" / "lottery.md"
    found = re.search(r"## Test vectors.*?```text\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    if found is None:
        sys.exit(f"{page}: there are no test vectors")
    for number, (got, want) in enumerate(zip(found[1].splitlines(), expected_block().splitlines(), strict=True)):
        if got != want:
            sys.exit(f"{page}: line {number + 1} of the vectors is\n  {got}\nbut the page's rules give\n  {want}")
    print("the vectors of docs/formats/lottery.md follow from its rules")


if __name__ == "__main__":
    main()
