"""A hub for tests: takes batches, checks their signatures, and misbehaves in a given order."""
import ctypes
import ctypes.util
import hashlib
import http.server
import json
import threading

BATCH = "application/vnd.furlong.record-batch.v1"
ENROL = "application/vnd.furlong.enrol.v1"


def pae(media_type, body):
    return f"DSSEv1 {len(media_type)} {media_type} {len(body)} ".encode() + body


def verifies(media_type, body, signature, key):
    """By libsodium, which Furlong needs anyway."""
    sodium = ctypes.CDLL(ctypes.util.find_library("sodium"))
    message = pae(media_type, body)
    return sodium.crypto_sign_verify_detached(bytes.fromhex(signature), message, ctypes.c_ulonglong(len(message)),
                                              bytes.fromhex(key)) == 0


class Hub:
    """`script`: what happens to the next requests for records, one word each; then all goes well.

    ok · 500 · 429 · 400 · nonsense · half (of a reply) · close (without one) · lost (taken, but no reply) · foreign (a
    reply about others) · refuse (each record) · slow
    """

    def __init__(self, script=(), token="let-me-in"):
        self.script = list(script)
        self.token = token
        self.keys = {}
        self.records = {}      # id → line
        self.times = {}        # id → how often it came
        self.batches = []
        self.reports = []      # headers of batches without records
        self.bad_signatures = 0
        self.requests = 0
        self.manifest = None   # bytes that GET /v1/manifest answers; None: 503
        self.manifest_requests = 0
        self.lock = threading.Lock()
        self.release = threading.Event()
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                hub.post(self)

            def do_GET(self):
                hub.get(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                """An agent that was killed closes its connection."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, status, body, headers=(), cut=False):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2] if cut else data)
        handler.close_connection = True

    def get(self, handler):
        self.manifest_requests += 1
        body = self.manifest
        if handler.path != "/v1/manifest" or body is None:
            return self.answer(handler, 503, b"")
        tag = '"' + hashlib.sha256(body).hexdigest() + '"'
        if handler.headers["If-None-Match"] == tag:
            return self.answer(handler, 304, b"")
        return self.answer(handler, 200, body, [("ETag", tag)])

    def post(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self.lock:
            if self.is_report(handler, body):
                return self.answer(handler, 200, {"schema": 1, "accepted": [], "duplicate": [], "refused": []})
            self.requests += 1
            if handler.path == "/v1/enrol":
                return self.enrol(handler, body)
            word = self.script.pop(0) if self.script else "ok"
        if word == "close":
            handler.close_connection = True
            return None
        if word == "slow":
            self.release.wait(120)
        if word == "500":
            return self.answer(handler, 500, b"<html>oops \x1b[2J</html>")
        if word == "429":
            return self.answer(handler, 429, b"", [("Retry-After", "1")])
        if word == "400":
            return self.answer(handler, 400, b"one of them is bad")
        if word == "nonsense":
            return self.answer(handler, 200, b"[1, 2")
        with self.lock:
            reply = self.take(handler, body, word)
        if word == "lost":
            handler.close_connection = True
            return None
        if word == "foreign":
            reply = {"schema": 1, "accepted": ["somebody else's"], "duplicate": [], "refused": []}
        return self.answer(handler, 200 if reply else 403, reply or b"unknown machine", cut=word == "half")

    def is_report(self, handler, body):
        """A batch without records: what a machine that is known says of itself."""
        machine = handler.headers["Furlong-Machine"]
        if handler.path != "/v1/records" or machine not in self.keys:
            return False
        head = json.loads(body.split(b"\n", 1)[0])
        if head["records"] != 0 or not verifies(BATCH, body, handler.headers["Furlong-Signature"], self.keys[machine]):
            return False
        self.reports.append(head)
        return True

    def enrol(self, handler, body):
        request = json.loads(body)
        machine = handler.headers["Furlong-Machine"]
        if request["token"] != self.token or not verifies(ENROL, body, handler.headers["Furlong-Signature"], request["key"]):
            return self.answer(handler, 403, b"no such token")
        self.keys[machine] = request["key"]
        return self.answer(handler, 200, {"schema": 1, "machine": machine})

    def take(self, handler, body, word):
        machine = handler.headers["Furlong-Machine"]
        if machine not in self.keys:
            return None
        if handler.headers["Content-Type"] != BATCH or not verifies(BATCH, body, handler.headers["Furlong-Signature"], self.keys[machine]):
            self.bad_signatures += 1
            return None
        lines = body.decode().splitlines()
        head = json.loads(lines[0])
        assert head["records"] == len(lines) - 1 and head["machine"] == machine, head
        self.batches.append((head["batch"], body))
        reply = {"schema": 1, "accepted": [], "duplicate": [], "refused": []}
        for line in lines[1:]:
            name = json.loads(line)["id"]
            self.times[name] = self.times.get(name, 0) + 1
            if word == "refuse":
                reply["refused"].append({"id": name, "why": "its base rate is impossible"})
            elif name in self.records:
                reply["duplicate"].append(name)
            else:
                self.records[name] = line
                reply["accepted"].append(name)
        return reply
