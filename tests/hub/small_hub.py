"""A hub of the tests' own on loopback, as much of one as fetching models by name needs, that can
fail in every way. Two ports: the hub, and one to which it can redirect, as hubs do for contents."""

import collections
import functools
import hashlib
import http.server
import json
import sys
import threading
import time
import urllib.parse

LARGE = 1 << 20  # From here on, and for weights, a file is one of Git LFS.
CHUNK = 1 << 16


# Asked again and again, of the same objects.
@functools.lru_cache(maxsize=None)
def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@functools.lru_cache(maxsize=None)
def sha256(content):
    return hashlib.sha256(content).hexdigest()


def is_large(path, content):
    return len(content) >= LARGE or path.endswith((".gguf", ".safetensors"))


def blob_name(path, content):
    """How caches call a file's content: what the hub gives as its ETag."""
    return sha256(content) if is_large(path, content) else git_hash(content)


class Repository:
    """Files at a commit; older commits stay."""

    def __init__(self, files):
        self.commits = {}
        self.branches = {}
        self.put(files)

    def put(self, files, branch="main"):
        """A new commit with these files."""
        named = json.dumps({path: blob_name(path, files[path]) for path in sorted(files)})
        commit = hashlib.sha1(named.encode()).hexdigest()
        self.commits[commit] = dict(files)
        self.branches[branch] = commit
        return commit

    @property
    def commit(self):
        return self.branches["main"]

    @property
    def files(self):
        return self.commits[self.commit]

    def find(self, revision):
        commit = self.branches.get(revision, revision)
        return commit if commit in self.commits else None


# A request, and the port to which it came.
Request = collections.namedtuple("Request", "command path headers url")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # Clients are killed here.
            super().handle_error(request, client_address)


class SmallHub:
    """`with SmallHub() as hub:` serves `hub.repositories` at `hub.url` until the block ends.

    faults: functions of a request's handler, asked in turn before it is answered. One that returns
    True has answered.
    """

    def __init__(self):
        self.repositories = {}
        self.token = None        # Where it is set, nobody without it may read.
        self.redirect = None     # "other": contents lie on the other port; "same": on this one.
        self.ranges = True
        self.pause = 0           # Seconds after each 64 kB.
        self.faults = []
        self.requests = []       # In the order in which they came.
        self.sent = {}           # Bytes of bodies, by path in the repository.
        self.lock = threading.Lock()
        self.servers = [self._server(), self._server()]
        self.url, self.other_url = (f"http://127.0.0.1:{server.server_address[1]}"
                                    for server in self.servers)

    def _server(self):
        server = Server(("127.0.0.1", 0), Handler)
        server.hub = self
        return server

    def __enter__(self):
        for server in self.servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def add(self, name, files):
        self.repositories[name] = Repository(files)
        return self.repositories[name]

    def forget_requests(self):
        with self.lock:
            self.requests.clear()
            self.sent.clear()

    def fail(self, times, answer, where=""):
        """Lets `answer(handler, content)` answer the next `times` requests for contents whose
        address has `where` in it."""
        left = [times]

        def fault(handler):
            with self.lock:
                if not left[0] or where not in handler.path or handler.content() is None:
                    return False
                left[0] -= 1
            answer(handler, handler.content())
            return True

        self.faults.append(fault)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self):
        return self.server.hub

    @property
    def own_url(self):
        return "http://127.0.0.1:%d" % self.server.server_address[1]

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        with self.hub.lock:
            self.hub.requests.append(Request(self.command, self.path, self.headers, self.own_url))
        try:
            if not any(fault(self) for fault in list(self.hub.faults)):
                self.route()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def parts(self):
        """ORG/NAME, revision and file that an address is about; what it is not about is None."""
        path = urllib.parse.urlsplit(self.path).path
        words = [urllib.parse.unquote(word) for word in path.strip("/").split("/")]
        if words[:2] == ["api", "models"]:
            revision = words[5] if words[4:5] in (["revision"], ["tree"]) else "main"
            return "/".join(words[2:4]), revision, None
        if words[0] == "content":
            words = words[1:]
        if words[2:3] != ["resolve"] or len(words) < 5:
            return None, None, None
        return "/".join(words[:2]), words[3], "/".join(words[4:])

    def content(self):
        name, revision, path = self.parts()
        repository = self.hub.repositories.get(name)
        commit = repository and repository.find(revision)
        return repository.commits[commit].get(path) if commit else None

    def route(self):
        name, revision, path = self.parts()
        allowed = (self.own_url == self.hub.other_url or self.hub.token is None or
                   self.headers.get("Authorization") == f"Bearer {self.hub.token}")
        repository = self.hub.repositories.get(name)
        if not allowed:
            return self.refuse(401, "RepoNotFound", "Repository not found")
        if repository is None:
            return self.refuse(404, "RepoNotFound", "Repository not found")
        commit = repository.find(revision)
        if commit is None:
            return self.refuse(404, "RevisionNotFound", "Invalid rev id")
        if path is None and "/tree/" in self.path:
            return self.list_tree(repository.commits[commit])
        if path is None:
            return self.list_files(name, repository.commits[commit], commit)
        content = repository.commits[commit].get(path)
        if content is None:
            return self.refuse(404, "EntryNotFound", "Entry not found", commit)
        large = is_large(path, content)
        if large and self.hub.redirect and not self.path.startswith("/content/"):
            there = self.hub.other_url if self.hub.redirect == "other" else ""
            return self.respond(302, b"Found", {
                "Location": f"{there}/content{self.path}", "X-Repo-Commit": commit,
                "X-Linked-Size": str(len(content)),
                "X-Linked-ETag": f'"{blob_name(path, content)}"'})
        return self.send_content(content, etag=blob_name(path, content), commit=commit)

    def list_tree(self, files):
        """The listing that the Hub's own package asks for besides."""
        entries = []
        for path, content in files.items():
            entry = {"type": "file", "path": path, "size": len(content), "oid": git_hash(content)}
            if is_large(path, content):
                entry["lfs"] = {"oid": blob_name(path, content), "size": len(content),
                                "pointerSize": 134}
            entries.append(entry)
        self.respond(200, json.dumps(entries).encode(), {"Content-Type": "application/json"})

    def list_files(self, name, files, commit):
        siblings = []
        for path, content in files.items():
            entry = {"rfilename": path}
            if "blobs=" in self.path:
                entry |= {"size": len(content), "blobId": git_hash(content)}
                if is_large(path, content):
                    entry["lfs"] = {"sha256": blob_name(path, content), "size": len(content),
                                    "pointerSize": 134}
            siblings.append(entry)
        answer = {"_id": "0", "id": name, "modelId": name, "sha": commit, "private": False,
                  "gated": False, "tags": [], "downloads": 0, "likes": 0, "siblings": siblings}
        self.respond(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def refuse(self, status, code, message, commit=None, headers=None):
        named = {"X-Error-Code": code, "X-Error-Message": message}
        if commit:
            named["X-Repo-Commit"] = commit
        self.respond(status, json.dumps({"error": message}).encode(), named | (headers or {}))

    def respond(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def wanted_range(self, size):
        header = self.headers.get("Range")
        if not header or not self.hub.ranges:
            return None
        first, last = header.removeprefix("bytes=").split("-")
        return int(first), min(int(last) + 1 if last else size, size)

    def send_content(self, content, etag="", commit="", stop_after=None, stall_after=None,
                     said=None, said_total=None):
        """A content, or the part of it that is asked for. stop_after: the connection is cut after
        so many bytes; stall_after: nothing comes after them, for long; said: the Content-Length;
        said_total: the size of the whole that a part's header tells."""
        part = self.wanted_range(len(content))
        body = memoryview(content)[slice(*part)] if part else memoryview(content)
        self.send_response(206 if part else 200)
        if part:
            total = len(content) if said_total is None else said_total
            self.send_header("Content-Range", f"bytes {part[0]}-{part[1] - 1}/{total}")
        self.send_header("Content-Length", str(len(body) if said is None else said))
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Linked-ETag", f'"{etag}"')
        self.send_header("X-Linked-Size", str(len(content)))
        if commit:
            self.send_header("X-Repo-Commit", commit)
        self.end_headers()
        if self.command == "HEAD":
            return
        path = self.parts()[2]
        for at in range(0, len(body), CHUNK):
            end = min(at + CHUNK, len(body))
            for limit in (stop_after, stall_after):
                end = end if limit is None else min(end, limit)
            self.wfile.write(body[at:end])
            with self.hub.lock:
                self.hub.sent[path] = self.hub.sent.get(path, 0) + max(end - at, 0)
            if end == stop_after:
                self.close_connection = True
                self.connection.close()
                return
            if end == stall_after:
                self.close_connection = True
                time.sleep(30)
                return
            if self.hub.pause:
                time.sleep(self.hub.pause)
