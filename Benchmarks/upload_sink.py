#!/usr/bin/env python3
"""A server that reads and forgets: as much of S3 and of tus as uploads need, so that what a client itself costs shows.

    upload_sink.py PORT [CERTIFICATE KEY]
"""
import re
import socket
import ssl
import sys
import threading
import urllib.parse

BUFFER = 1 << 20
HEAD_MAX = 64 << 10
ETAG = b'"00000000000000000000000000000000"'

lock = threading.Lock()
uploads, objects, resumables = {}, {}, {}  # parts by number with their sizes; sizes; offsets


def xml(name, inner):
    return 200, [], f'<?xml version="1.0"?><{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inner}</{name}>'.encode()


def missing(code):
    return 404, [], f'<?xml version="1.0"?><Error><Code>{code}</Code><Message/></Error>'.encode()


def answer_tus(method, path, taken):
    base = [(b"Tus-Resumable", b"1.0.0")]
    if method == "POST":
        with lock:
            name = str(len(resumables))
            resumables[name] = 0
        return 201, base + [(b"Location", f"{path.rstrip('/')}/{name}".encode())], b""
    name = path.rsplit("/", 1)[1]
    with lock:
        resumables[name] = resumables.get(name, 0) + taken
        offset = str(resumables[name]).encode()
    return (204 if method == "PATCH" else 200), base + [(b"Upload-Offset", offset), (b"Cache-Control", b"no-store")], b""


def answer(method, path, query, fields, taken):
    """Status, header fields and body."""
    if path.startswith("/tus"):
        return answer_tus(method, path, taken)
    upload = query.get("uploadId", [None])[0]
    taken = int(fields.get("x-amz-decoded-content-length", taken))
    with lock:
        if method == "POST" and "uploads" in query:
            name = f"{path}-{len(uploads)}"
            uploads[name] = {}
            bucket, key = path[1:].split("/", 1)
            return xml("InitiateMultipartUploadResult", f"<Bucket>{bucket}</Bucket><Key>{key}</Key><UploadId>{name}</UploadId>")
        if upload is not None and method == "PUT" and upload not in uploads and not upload.startswith("any"):
            return missing("NoSuchUpload")
        if upload is not None and method == "PUT":
            uploads.setdefault(upload, {})[int(query["partNumber"][0])] = taken
            return 200, [(b"ETag", ETAG)], b""
        if upload is not None and method == "GET":
            if upload not in uploads:
                return missing("NoSuchUpload")
            parts = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{ETAG.decode()}</ETag><Size>{size}</Size></Part>"
                            for n, size in sorted(uploads[upload].items()))
            return xml("ListPartsResult", f"<IsTruncated>false</IsTruncated>{parts}")
        if upload is not None and method == "POST":
            objects[path] = sum(uploads.pop(upload, {}).values())
            return xml("CompleteMultipartUploadResult", f"<Key>{path[1:]}</Key><ETag>{ETAG.decode()}</ETag>")
        if method == "PUT":
            objects[path] = taken
            return 200, [(b"ETag", ETAG)], b""
        if method == "DELETE":
            uploads.pop(upload, None)
            objects.pop(path, None)
            return 204, [], b""
        if method == "HEAD" and path.count("/") > 1:
            if path not in objects:
                return 404, [], b""
            return 200, [(b"ETag", ETAG[:-1] + b'-2"'), (b"Content-Length", str(objects[path]).encode())], b""
    if "uploads" in query:
        return xml("ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>")
    if "location" in query:
        return xml("LocationConstraint", "")
    if method == "GET" and path.count("/") > 1 and path.split("/", 2)[2]:
        # Nobody gets anything back.
        return (503, [], b"") if path in objects else missing("NoSuchKey")
    return xml("ListBucketResult", "<IsTruncated>false</IsTruncated>")


class Incoming:
    """What comes in on a connection."""

    def __init__(self, connection):
        self.connection, self.held, self.view = connection, b"", memoryview(bytearray(BUFFER))

    def until(self, end):
        while end not in self.held:
            piece = self.connection.recv(HEAD_MAX)
            if not piece or len(self.held) > HEAD_MAX:
                raise ConnectionError("no more")
            self.held += piece
        found, _, self.held = self.held.partition(end)
        return found

    def drop(self, count):
        left = count - len(self.held)
        self.held = self.held[count:]
        while left > 0:
            got = self.connection.recv_into(self.view[:min(left, BUFFER)])
            if not got:
                raise ConnectionError("cut short")
            left -= got
        return count

    def drop_chunks(self):
        total = 0
        while size := int(self.until(b"\r\n").split(b";")[0], 16):
            total += self.drop(size)
            self.until(b"\r\n")
        while self.until(b"\r\n"):
            pass
        return total


def serve(connection, context):
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        incoming = Incoming(connection)
        while True:
            first, *lines = incoming.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ", 2)
            fields = {name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
            if "100-continue" in fields.get("expect", "").lower():
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            is_chunked = "chunked" in fields.get("transfer-encoding", "")
            length = incoming.drop_chunks() if is_chunked else incoming.drop(int(fields.get("content-length", 0)))
            url = urllib.parse.urlsplit(re.sub(r"^https?://[^/]+", "", target))
            query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
            status, more, body = answer(method, url.path, query, fields, length)
            if not any(name == b"Content-Length" for name, _ in more) and status != 204:
                more = more + [(b"Content-Length", str(len(body)).encode())]
            said = b"".join(name + b": " + value + b"\r\n" for name, value in more)
            connection.sendall(b"HTTP/1.1 %d Said\r\n%sx-amz-request-id: 1\r\n\r\n%s" % (status, said, b"" if method == "HEAD" else body))
    except (OSError, ValueError, KeyError):
        pass
    finally:
        connection.close()


def main():
    context = None
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, context), daemon=True).start()


if __name__ == "__main__":
    main()
