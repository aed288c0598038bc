"""Machines for tests of the hub: keys, records, signed batches, by libsodium, which Furlong needs anyway."""
import ctypes
import ctypes.util
import http.client
import json
import os
import random
import ssl
import time

from fake_hub import BATCH, ENROL, pae

sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))


def sign(message, secret):
    signature = ctypes.create_string_buffer(64)
    sodium.crypto_sign_detached(signature, None, message, ctypes.c_ulonglong(len(message)), secret)
    return signature.raw.hex()


def uuid7(at=None):
    ms = int((at if at is not None else time.time()) * 1000)
    chance = random.getrandbits(74)
    number = ms << 80 | 7 << 76 | (chance >> 62) << 64 | 2 << 62 | chance & (1 << 62) - 1
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def stamp(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


class Machine:
    def __init__(self, number):
        public, self.secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
        seed = bytes([number]) * 32
        sodium.crypto_sign_seed_keypair(public, self.secret, seed)
        self.key = public.raw.hex()
        digest = ctypes.create_string_buffer(32)
        sodium.crypto_generichash(digest, ctypes.c_size_t(32), public.raw, ctypes.c_ulonglong(32), None, ctypes.c_size_t(0))
        self.id = digest.raw.hex()[:16]
        self.number = number

    def record(self, epoch, at=None, rate=118.3, winner="u2", **keys):
        at = at if at is not None else time.time()
        base = 115.9
        gain = round((rate / base - 1) * 100, 3)
        return {"schema": 1, "id": uuid7(at), "ts": stamp(at), "machine": self.id, "slot": "s-0", "agent": "0.1.0", "card": "NVIDIA_H200",
                "silicon": {"vendor": "NVIDIA", "arch": "sm_90", "hash": "9c1f0a5b7d3e2f46"}, "backend": "cuda", "driver": "580.95.05",
                "program": "lottery", "language": "cuda", "source": "b3d1c0", "epoch": f"{epoch:016x}", "class": {"loads": 128, "wide": 0},
                "unit": "MH/s", "variants": {"base": base, "u2": rate},
                "detail": {"base": {"heats": 21}, "u2": {"gain_pct": gain, "ci": [gain - 0.2, gain + 0.2], "heats": 21}},
                "winner": winner, "rate": rate, "base_rate": base, "gain_pct": gain, "ci": [gain - 0.2, gain + 0.2], "verdict": "winner",
                "heats": 21, **keys}

    def batch(self, records, **header):
        head = {"schema": 1, "batch": uuid7(), "machine": self.id, "records": len(records), **header}
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in (head, *records)).encode()

    def headers(self, media_type, body):
        return {"Content-Type": media_type, "Furlong-Machine": self.id, "Furlong-Signature": sign(pae(media_type, body), self.secret)}

    def enrolment(self, token):
        return json.dumps({"schema": 1, "token": token, "key": self.key}).encode()


class Client:
    """One connection that is kept."""

    def __init__(self, port, ca=None, timeout=60):
        if ca:
            context = ssl.create_default_context(cafile=ca)
            self.connection = http.client.HTTPSConnection("localhost", port, timeout=timeout, context=context)
        else:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body=body, headers=headers or {})
        reply = self.connection.getresponse()
        return reply.status, reply.read(), reply.headers

    def get(self, path):
        status, body, _ = self.ask("GET", path)
        assert status == 200, (path, status, body[:300])
        return json.loads(body)

    def send(self, machine, records, **header):
        body = machine.batch(records, **header)
        return self.send_body(machine, body)

    def send_body(self, machine, body):
        status, reply, headers = self.ask("POST", "/v1/records", body, machine.headers(BATCH, body))
        return status, json.loads(reply), headers

    def enrol(self, machine, token):
        body = machine.enrolment(token)
        status, reply, _ = self.ask("POST", "/v1/enrol", body, machine.headers(ENROL, body))
        return status, json.loads(reply)

    def close(self):
        self.connection.close()


def environment_of(case):
    return {**case.environment, "FURLONG_PROGRAMS": os.path.join(case.folder, "no-programs")}
