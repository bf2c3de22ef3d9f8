"""What soak-ingest and soak-upload share: a box and its backend in a folder, which are killed and started again."""
import collections
import json
import os
import signal
import socket
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get("RUSHES_SHARED", os.path.join(ROOT, "..", "shared"))
KINDS = ["box", "backend", "media of the box", "media of the backend"]
LOOK_SECONDS = 0.02
LOST_AFTER_SECONDS = 900  # without a kill: it does not end any more


def parents():
    """The parent of every process that runs."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(name)] = int(fields[1])
    return found


class House:
    """A box and its backend in a folder."""

    def __init__(self, rushes, card, folder, environment={}, door=None, options=()):
        """`door`: the socket through which the box goes; `options`: of the ingest."""
        self.rushes, self.card, self.folder, self.options = rushes, card, folder, options
        os.makedirs(folder, exist_ok=True)
        self.address = f"unix:{folder}/s"
        self.door = door or self.address
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("RUSHES_")} | environment
        self.environment["RUSHES_HOME"] = f"{folder}/box"
        self.log = open(f"{folder}/log", "ab")
        self.killed = collections.Counter()  # by kind
        self.serve()
        self.ingest()

    def start(self, *arguments):
        return subprocess.Popen([self.rushes, *arguments], env=self.environment, stdout=self.log, stderr=self.log)

    def serve(self):
        self.backend = self.start("serve", "--listen", self.address, "--data", f"{self.folder}/backend")

    def ingest(self):
        self.box = self.start("ingest", self.card, "--shoot", "soak", "--server", self.door, *self.options)

    def run(self, next_kill):
        """To the end of an ingest. `next_kill()` gives seconds and a choice among what runs then, or None when there are to be no more.

        Returns its exit status."""
        last = time.monotonic()
        due = next_kill()
        while True:
            self.reap()
            if self.backend.poll() is not None:
                self.serve()
            if self.box.poll() is not None:
                if self.box.returncode != -signal.SIGKILL:
                    return self.box.returncode
                self.ingest()
            if due and time.monotonic() - last >= due[0]:
                self.killed[self.kill(due[1])] += 1
                last, due = time.monotonic(), next_kill()
            if not due and time.monotonic() - last > LOST_AFTER_SECONDS:
                self.box.kill()
                self.box.wait()
                return "none: it did not come to an end"
            time.sleep(LOOK_SECONDS)

    def kill(self, chance):
        """Ends one of what runs. Returns its kind."""
        running = parents()
        media = {"media of the box": self.box.pid, "media of the backend": self.backend.pid}
        victims = {kind: sorted(p for p, parent in running.items() if parent == owner) for kind, owner in media.items()}
        victims["box"], victims["backend"] = [self.box.pid], [self.backend.pid]
        kinds = [kind for kind in KINDS if victims[kind]]
        fewest = min(self.killed[kind] for kind in kinds)
        kind = chance.choice([kind for kind in kinds if self.killed[kind] == fewest])
        os.kill(chance.choice(victims[kind]), signal.SIGKILL)
        return kind

    def reap(self):
        """Orphans come to us, since we asked for them."""
        own = {self.box.pid, self.backend.pid}
        for name in os.listdir(f"/proc/{os.getpid()}/task"):
            try:
                with open(f"/proc/{os.getpid()}/task/{name}/children") as file:
                    orphans = [pid for pid in map(int, file.read().split()) if pid not in own]
            except FileNotFoundError:  # a thread that has ended meanwhile
                continue
            for pid in orphans:
                os.waitpid(pid, os.WNOHANG)

    def is_ready(self):
        """Whether the backend has its store, and has swept it."""
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(LOST_AFTER_SECONDS)
                client.connect(f"{self.folder}/s")
                client.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return client.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def stop(self):
        """Stops the backend. Returns what was wrong with that."""
        # One that was started this moment does not listen to signals either, or has not swept yet.
        deadline = time.monotonic() + LOST_AFTER_SECONDS
        while not self.is_ready() and self.backend.poll() is None and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        self.backend.terminate()
        return [f"the backend ended with {self.backend.returncode}"] if self.backend.wait() != 0 else []

    def end(self):
        """Stops the backend. Returns what is left that should not be."""
        problems = self.stop()
        deadline = time.monotonic() + 10
        while os.getpid() in parents().values() and time.monotonic() < deadline:
            self.reap()
            time.sleep(LOOK_SECONDS)
        left = [pid for pid, parent in parents().items() if parent == os.getpid()]
        if left:
            problems.append(f"{len(left)} processes are left")
        check = subprocess.run(
            [self.rushes, "check", "--data", f"{self.folder}/backend"], env=self.environment, stdout=subprocess.PIPE,
            stderr=self.log)
        if check.returncode != 0:
            problems.append("check: " + check.stdout.decode().strip())
        for folder, _, names in os.walk(self.folder):
            problems += [f"left over: {folder}/{name}" for name in names if name.startswith(".rushes-tmp-")]
        work = f"{self.folder}/backend/work"
        problems += [f"left over: {work}/{name}" for name in (os.listdir(work) if os.path.isdir(work) else [])]
        self.log.close()
        return problems

    def outcome(self):
        """(name, state, code, bytes, outputs with their hashes) of every item, and the files in staging: a multiset, since a name may stand
        in two folders."""
        status = subprocess.run([self.rushes, "status", "--json"], env=self.environment, stdout=subprocess.PIPE, check=True)
        found = collections.Counter()
        for line in status.stdout.decode().splitlines():
            item = json.loads(line)
            code = item["reason"]["code"] if item.get("reason") else None
            outputs = sorted((o["role"], o["name"], o["size_bytes"], o["sha256"]) for o in item["outputs"])
            found[(item["name"], item["state"], code, item["bytes"], item["confirmed_bytes"], tuple(outputs))] += 1
        for folder, _, names in os.walk(f"{self.folder}/box/staging"):
            for name in names:
                found[("staged", name, os.path.getsize(os.path.join(folder, name)))] += 1
        return found
