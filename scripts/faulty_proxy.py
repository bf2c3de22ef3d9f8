"""A bad network in front of a server, by a seed: it drops, delays, cuts, swallows, answers in the server's place and respells headers. What it has
seen of parts is counted, so that what a client sent twice shows."""
import collections
import json
import random
import re
import select
import socket
import threading
import time

PIECE = 256 << 10
HEAD_MAX = 64 << 10
SILENCE_SECONDS = 120
FATES = ["drop", "delay", "truncate", "answer", "answer", "cut", "swallow", "respell"]

ERROR = b"<?xml version=\"1.0\"?><Error><Code>%s</Code><Message></Message></Error>"
PAGE = b"<!DOCTYPE html><html><body>Welcome, guest: please log in</body></html>"
# What it answers itself: status, type, body. The first belong to the store's own manners and are only said of parts.
PART_ANSWERS = [
    (403, "application/xml", ERROR % b"AccessDenied"), (503, "application/xml", ERROR % b"SlowDown"),
    (200, "application/xml", ERROR % b"InternalError"), (500, "application/xml", ERROR % b"InternalError"),
]
PAGES = [(200, "text/html", PAGE), (403, "text/html", PAGE), (502, "text/html", PAGE), (500, "text/html", PAGE), (503, "text/html", PAGE)]
STORE_ANSWERS = [(503, "application/xml", ERROR % b"SlowDown"), (500, "application/xml", ERROR % b"InternalError")]

DIRECTORY_PART = re.compile(rb"/v1/parts/([^./?]+)\.(\d+)\.(\d+)\.")
STORE_PART = re.compile(rb"/u-([^./?]+)\.(\d+)\?.*?partNumber=(\d+)")
LISTING = re.compile(rb"/v1/uploads/([^/?]+)/parts$")


class Counts:
    """What the proxies of one house have seen of parts; a part is (upload, generation, number)."""

    def __init__(self, log):
        """`log`: where each exchange is noted."""
        self.log = open(log, "a", buffering=1)
        self.lock = threading.Lock()
        self.under_way = 0
        self.taken = collections.Counter()  # times that the store said yes, whether or not it was heard
        self.lost = 0  # of these, not heard
        self.heard, self.listed = set(), set()
        self.sent_again = []  # although it was heard or listed
        self.faults = collections.Counter()

    def begin(self, part):
        with self.lock:
            self.under_way += 1
            if part in self.heard or part in self.listed:
                self.sent_again.append(part)

    def end(self, part, taken, heard):
        with self.lock:
            self.under_way -= 1
            if taken:
                self.taken[part] += 1
                self.lost += not heard
            if taken and heard:
                self.heard.add(part)

    def list(self, upload, body):
        try:
            listing = json.loads(body)
            parts = {(upload, listing["generation"], part["part_number"]) for part in listing["parts"]}
        except (ValueError, KeyError, TypeError):
            return
        with self.lock:
            self.listed |= parts

    @property
    def twice(self):
        return sum(count - 1 for count in self.taken.values())


class Message:
    """The head of a request or an answer, and what of its body came with it."""

    def __init__(self, connection):
        bytes_ = b""
        while b"\r\n\r\n" not in bytes_:
            got = connection.recv(PIECE)
            if not got or len(bytes_) > HEAD_MAX:
                raise ConnectionError("no head")
            bytes_ += got
        head, _, self.rest = bytes_.partition(b"\r\n\r\n")
        self.first, *lines = head.split(b"\r\n")
        self.fields = [tuple(piece.strip() for piece in line.split(b":", 1)) for line in lines]

    def __getitem__(self, name):
        return next((value for key, value in self.fields if key.lower() == name), None)

    def head(self):
        fields = [(k, v) for k, v in self.fields if k.lower() != b"connection"]
        return self.first + b"\r\n" + b"".join(k + b": " + v + b"\r\n" for k, v in fields) + b"Connection: close\r\n\r\n"

    @property
    def length(self):
        return int(self[b"content-length"] or 0)

    @property
    def status(self):
        return int(self.first.split()[1])


class Proxy:
    """Listens at `here` and passes on to `there`: paths of Unix sockets, or ports of this machine."""

    def __init__(self, here, there, seed, chance, pace, counts):
        """`chance`: of each request to meet a fault; `pace`: bytes a second that come in."""
        self.there, self.chance, self.pace, self.counts = there, chance, pace, counts
        self.free_at = 0  # when the line is free for the next piece
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX if isinstance(here, str) else socket.AF_INET)
        self.listener.bind(here if isinstance(here, str) else ("127.0.0.1", here))
        self.listener.listen(256)
        self.port = None if isinstance(here, str) else self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def draw(self, answers):
        """What becomes of a request: a word, an answer for some, and a number that says where it is cut."""
        with self.lock:
            if self.random.random() >= self.chance:
                return None, None, 0
            fate = self.random.choice(FATES)
            drawn = self.random.choice(answers), self.random.random()
        with self.counts.lock:
            self.counts.faults[fate] += 1
        return fate, *drawn

    def serve(self, client):
        with client:
            try:
                client.settimeout(SILENCE_SECONDS)
                request = Message(client)
                method, target, _ = request.first.split(b" ", 2)
                found = (DIRECTORY_PART.search(target) or STORE_PART.search(target)) if method == b"PUT" else None
                part = (found[1].decode(), int(found[2]), int(found[3])) if found else None
                # The backend signs its own requests to the store in a header; to it the store is only sometimes unwell.
                is_backends = request[b"authorization"] is not None and not isinstance(self.there, str)
                fate = self.draw(STORE_ANSWERS if is_backends else PART_ANSWERS + PAGES if part else PAGES)
                if is_backends and fate[0] in ("truncate", "respell"):
                    fate = "delay", *fate[1:]
                if part:
                    self.counts.begin(part)
                taken = heard = False
                self.counts.log.write(f"{time.monotonic():.3f} {id(client)} {request.first.decode()} {fate[0]} {fate[1] and fate[1][0]}\n")
                try:
                    taken, heard = self.exchange(client, request, method, target, *fate)
                finally:
                    self.counts.log.write(f"{time.monotonic():.3f} {id(client)} taken {taken} heard {heard}\n")
                    if part:
                        self.counts.end(part, taken, heard)
            except (OSError, ValueError):
                pass

    def exchange(self, client, request, method, target, fate, own, place):
        """Returns whether the server took it, and whether that was heard."""
        if fate == "drop":
            return False, False
        if fate == "delay":
            time.sleep(place)
        if fate == "answer":
            status, kind, body = own
            self.upload(client, request, None, request.length)
            client.sendall(b"HTTP/1.1 %d Because\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
                           % (status, kind.encode(), len(body), b"" if method == b"HEAD" else body))
            return False, False
        with self.connect() as server:
            server.settimeout(SILENCE_SECONDS)
            server.sendall(request.head())
            limit = int(request.length * place) if fate == "truncate" else request.length
            self.upload(client, request, server, limit)
            if fate == "truncate":
                return False, False
            answer = Message(server)
            taken = 200 <= answer.status < 300
            if fate == "swallow":
                return taken, False
            if fate == "respell":
                self.respell(answer, place)
            bytes_ = answer.head() + answer.rest
            if fate == "cut":
                client.sendall(bytes_[:int(len(bytes_) * place)])
                return taken, False
            client.sendall(bytes_)
            body = self.download(client, server, answer)
            listed = LISTING.search(target)
            if listed and taken and method == b"GET":
                self.counts.list(listed[1].decode(), body)
            return taken, True

    def connect(self):
        server = socket.socket(socket.AF_UNIX if isinstance(self.there, str) else socket.AF_INET)
        server.connect(self.there if isinstance(self.there, str) else ("127.0.0.1", self.there))
        return server

    def upload(self, client, request, server, limit):
        piece, done = request.rest[:limit], 0
        while True:
            if server and piece:
                try:
                    server.sendall(piece)
                except OSError:
                    # It has answered before the end; the rest is nobody's.
                    server = None
            done += len(piece)
            self.wait(len(piece))
            if done >= limit:
                return
            piece = client.recv(min(PIECE, limit - done))
            if not piece:
                raise ConnectionError("the client is gone")

    def wait(self, count):
        """For the line, which all connections share."""
        with self.lock:
            now = time.monotonic()
            self.free_at = max(now, self.free_at) + count / self.pace
            seconds = self.free_at - now
        time.sleep(seconds)

    def download(self, client, server, answer):
        """The rest of an answer, as it comes, until one of the two is gone. Returns the first of its body."""
        kept = answer.rest
        while True:
            ready, _, _ = select.select([client, server], [], [], SILENCE_SECONDS)
            if client in ready and not client.recv(1, socket.MSG_PEEK) or not ready:
                raise ConnectionError("the client is gone")
            if server in ready:
                piece = server.recv(PIECE)
                if not piece:
                    return kept
                client.sendall(piece)
                if len(kept) < 1 << 20:
                    kept += piece

    def respell(self, answer, place):
        spell = bytes.upper if place < 0.5 else bytes.lower
        fields = []
        for name, value in answer.fields:
            if name.lower() == b"etag":
                if place < 0.25:
                    continue
                value = b"W/" + value if place < 0.5 else value.strip(b"\"") if place < 0.75 else b"\"0123456789-gzip\""
            fields.append((spell(name), value))
        answer.fields = fields
