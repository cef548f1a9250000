"""A small OpenAI-compatible server whose replies are a function of the request."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Script:
    """What the server does: `answer(request)` gives the text; `before(number)` may interfere.

    `before` returns a status other than 200 to refuse, or `None` to answer.
    """

    def __init__(self, answer, before=lambda number: None):
        self.answer = answer
        self.before = before
        self.requests = []
        self.lock = threading.Lock()


def completion(text, tokens_in=100, cached=40, tokens_out=10):
    """Return the body of a chat completion with its usage."""
    return {
        "choices": [{"message": {"role": "assistant", "content": text, "reasoning": "SEEDS: 2"}}],
        "usage": {
            "prompt_tokens": tokens_in,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens": tokens_out,
        },
    }


@contextmanager
def serving(script):
    """Serve a script on a free port of this machine and yield the base address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with script.lock:
                script.requests.append((self.path, self.headers.get("Authorization"), body))
                number = len(script.requests)
            status = script.before(number)
            answer = script.answer(json.loads(body)) if status is None else "refused"
            content = answer if isinstance(answer, bytes) else json.dumps(completion(answer))
            payload = content if isinstance(content, bytes) else content.encode()
            try:
                self.send_response(status or 200)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)
            except OSError:
                pass  # the client was killed

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
