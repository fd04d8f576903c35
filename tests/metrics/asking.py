"""HTTP requests to the addresses that smt metrics and smt ui print."""

import http.client
import socket
import urllib.parse

PATIENCE = 60


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def connection(address):
    if address.startswith("unix:"):
        return UnixConnection(address.removeprefix("unix:"))
    return http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=PATIENCE)


def ask(address, method="GET", path="/", body=None, headers=None):
    """Status, headers, text."""
    made = connection(address)
    made.request(method, path, body, headers or {})
    answer = made.getresponse()
    text = answer.read().decode()
    made.close()
    return answer.status, answer.headers, text
