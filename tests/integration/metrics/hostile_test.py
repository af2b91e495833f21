"""Slow, huge, invalid and many requests on the metrics socket, which any process may connect to, while the daemon works.

usage: hostile_test.py XSCHEDD XSCHEDCTL SCRIPTED_CLIENT
"""

import http.client
import json
import socket
import subprocess
import threading
from typing import Callable, List

import metrics_world
import rights_world
from metrics_world import GPU, Metrics, WithMetrics, wait_for


def answer_of(connection: socket.socket) -> bytes:
    """All bytes until the daemon closes or resets the connection."""
    said = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return said
        if not part:
            return said
        said += part


class Hostile(WithMetrics):
    def setUp(self) -> None:
        super().setUp()
        self.low, self.high = self.client("hint=-5"), self.client("hint=5")
        for client in (self.low, self.high):
            client.tell(f"device {GPU}")
        for client in (self.low, self.high):
            client.tell("await tracked")

    def the_daemon_works(self) -> None:
        """Checks that an administrator's change comes into force, and that a gate shuts and opens."""
        for priority in ("7", "5"):
            done = self.ctl("set", "--json", "--priority", priority, "--pid", str(self.high.pid))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["changes"][0]["priority_after"], int(priority))
        self.low.tell("busy")
        self.high.tell("busy")
        self.low.tell("await held")
        self.high.tell("idle")
        self.low.tell("await open")
        self.low.tell("idle")

    def results(self) -> Metrics:
        """Metrics through admin.sock, which other connections do not delay."""
        return Metrics(self.ctl("metrics").stdout)

    def result(self, name: str) -> float:
        return self.results().one("xschedd_metrics_requests_total", source="http", result=name)

    def test_slow_requests(self) -> None:
        nothing, part = self.tcp(), self.tcp()
        part.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        drip = self.tcp()
        ended = threading.Event()

        def drop_by_drop() -> None:
            try:
                for byte in b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 1000:
                    if ended.wait(0.05):
                        return
                    drip.sendall(bytes([byte]))
            except OSError:
                ended.set()

        thread = threading.Thread(target=drop_by_drop)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ended.set)
        self.the_daemon_works()
        for connection in (nothing, part, drip):
            self.assertEqual(answer_of(connection), b"")
        wait_for(lambda: self.result("timed_out") == 3, "three that were too slow")
        self.scrape()

    def refused(self, request: bytes, status: int) -> None:
        connection = self.tcp()
        try:
            connection.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has read enough
        said = answer_of(connection)
        self.assertTrue(said.startswith(b"HTTP/1.1 %d " % status), (request[:60], said[:200]))

    def test_huge_requests(self) -> None:
        for i, request in enumerate((b"GET /metrics HTTP/1.1\r\n" + b"A: " + b"x" * 8000 + b"\r\n" * 2 + b"B: y\r\n" * 100,
                                     b"GET /" + b"x" * 9000, b"x" * 9000)):
            with self.subTest(i):
                connection = self.tcp()
                connection.sendall(request)
                said = answer_of(connection)
                self.assertRegex(said, rb"^HTTP/1.1 (200|400|431) ")
        many = self.tcp()
        try:
            for _ in range(64):
                many.sendall(b"x" * 65536)
        except OSError:
            pass
        answer_of(many)
        self.assertGreaterEqual(self.result("bad"), 3)
        self.the_daemon_works()
        self.scrape()

    def test_garbage(self) -> None:
        requests = (b"\x00\xff\xfe\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + b"\x03" * 200,
                    b"GET /metrics\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"GET  /metrics HTTP/1.1\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nA\r\n\r\n", b"\r\n" * 40 + b"x\r\n\r\n")
        for request in requests:
            with self.subTest(request[:30]):
                self.refused(request, 400)
        self.refused(b"POST /metrics HTTP/1.1\r\n\r\n", 405)
        self.refused(b"GET /" + b"%00%0a../" * 20 + b" HTTP/1.1\r\n\r\n", 404)
        self.assertEqual(self.result("bad"), len(requests) + 2)
        self.the_daemon_works()
        self.scrape()

    def test_two_requests_on_one_connection(self) -> None:
        connection = self.tcp()
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        self.assertEqual(answer_of(connection).count(b"HTTP/1.1 200"), 1)

    def test_clients_that_do_not_read(self) -> None:
        connections = [self.tcp() for _ in range(12)]
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        self.the_daemon_works()
        self.scrape()

    def test_two_hundred_connections(self) -> None:
        idle = [self.tcp() for _ in range(200)]
        self.the_daemon_works()
        self.scrape()  # it displaces one of them
        self.assertGreater(wait_for(lambda: self.result("displaced"), "a displaced connection"), 0)
        wait_for(lambda: self.result("displaced") + self.result("timed_out") >= 184, "all but sixteen to be gone")
        for connection in idle:
            connection.close()

    def test_many_clients_that_scrape_all_the_time(self) -> None:
        stop = threading.Event()
        failures: List[BaseException] = []

        def forever(what: Callable[[], object]) -> None:
            while not stop.is_set():
                try:
                    what()
                except (OSError, http.client.HTTPException):
                    pass  # displaced, or beyond the rate
                except AssertionError as error:
                    failures.append(error)

        threads = [threading.Thread(target=forever, args=(self.ask,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        self.addCleanup(stop.set)
        for _ in range(5):
            self.the_daemon_works()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        seen = self.results()
        # It was held five times, whatever was requested meanwhile; and counting took only a part of the daemon's processor time.
        self.assertGreaterEqual(seen.one("xschedd_hold_duration_seconds_count", **{"class": "low"}), 5)
        self.assertLess(seen.one("xschedd_metrics_collection_seconds"), seen.one("process_cpu_seconds_total"))

    def test_a_stop_during_many_requests(self) -> None:
        waiting = [self.tcp() for _ in range(10)]
        for connection in waiting:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        idle = self.tcp()
        asking = [subprocess.Popen([rights_world.XSCHEDCTL, "--runtime-dir", self.folder, "metrics"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
        self.daemon.terminate()
        self.assertEqual(self.daemon.wait(60), 0)
        for connection in [*waiting, idle]:
            self.assertIn(answer_of(connection)[:12], (b"", b"HTTP/1.1 200"))
        for process in asking:
            self.assertIn(process.wait(60), (0, 3, 6, 7))  # answered; no daemon any more; or the daemon ended meanwhile


if __name__ == "__main__":
    metrics_world.main()
