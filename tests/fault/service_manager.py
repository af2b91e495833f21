"""A service manager for one daemon, for tests: what systemd does for xschedd.service, without systemd.

It opens the listening sockets `client` and `admin` once and keeps them open across restarts, starts the daemon with
LISTEN_FDS/LISTEN_PID/LISTEN_FDNAMES (sd_listen_fds(3)) and NOTIFY_SOCKET, takes READY=1, STOPPING=1, WATCHDOG=1,
FDSTORE=1 and FDSTOREREMOVE=1 (sd_notify(3)), hands the stored descriptors back at the next start, and starts the daemon
again RestartSec after it ended by itself (Restart=on-failure). Settings are read from the unit, systemd/xschedd.service.in.

It imitates details of systemd: a descriptor that is already in the store is not stored twice; the store is kept across a
restart and emptied by stop(); at most FileDescriptorStoreMax descriptors. One difference can be chosen. systemd promises no
order of stored descriptors: it takes them from a hash set and puts each in front of a list. order="sent" keeps the order in
which they were sent, order="systemd" shuffles them; a daemon must work with both.

    manager = ServiceManager(folder, [daemon, "--runtime-dir", folder], log=path)
    manager.start(); manager.kill(signal.SIGKILL); manager.wait_ready(count=2); manager.stop()

Thread rule: one thread of its own; methods may be called from any other thread.
"""

import array
import ctypes
import fcntl
import os
import pathlib
import random
import re
import select
import signal
import socket
import struct
import threading
import time

UNIT = pathlib.Path(__file__).resolve().parents[2] / "systemd" / "xschedd.service.in"
_FIRST_FD = 3
_MOST_FDS = 253  # SCM_MAX_FD
_SYS_KCMP = {"x86_64": 312}.get(os.uname().machine, 272)
_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "": 1.0}


def unit_setting(name, default, path=UNIT):
    """A setting of the unit file; the last line that gives it counts."""
    found = re.findall(rf"^{name}=(.*)$", path.read_text(), re.MULTILINE)
    return found[-1].strip() if found else default


def seconds(text):
    """systemd's time spans: `200ms`, `1min 30s`, `0`."""
    return sum(float(number) * _UNITS_S[unit] for number, unit in re.findall(r"([\d.]+)\s*([a-z]*)", text))


def _is_same_description(one, other):
    me = os.getpid()
    return ctypes.CDLL(None).syscall(_SYS_KCMP, me, me, 0, one, other) == 0


class ServiceManager:
    """See the module. `before`: a command in front of the daemon's, e.g. prlimit; `environment`: added to ours."""

    def __init__(self, folder, command, log, before=(), environment=None, order="sent", restart_s=None, seed=0,
                 watchdog=True):
        self.folder = pathlib.Path(folder)
        self.command = [str(word) for word in command]
        self.before = [str(word) for word in before]
        self.log = pathlib.Path(log)
        self.environment = dict(environment or {})
        self.restart_s = seconds(unit_setting("RestartSec", "100ms")) if restart_s is None else restart_s
        self.store_max = int(unit_setting("FileDescriptorStoreMax", "0"))
        self.watchdog_s = seconds(unit_setting("WatchdogSec", "0")) if watchdog else 0
        self.order = order
        self.pid = 0  # of the daemon; 0 while there is none
        self.starts = 0  # how often it was started
        self.ready = 0  # how often it said READY=1 for the first time after a start
        self.started_ns = self.ready_ns = self.ended_ns = 0  # CLOCK_MONOTONIC of the last start, readiness, end
        self.lives = []  # [pid, ready_ns, ended_ns] of each daemon; 0: not (yet)
        self.ends = []  # (pid, wait status, ns, whether it was asked to end) of each daemon that ended
        self.refused = []  # messages of the daemon that a service manager would not accept
        self._store = []  # (name, descriptor)
        self._random = random.Random(seed)
        self._is_wanted = False  # whether an end is followed by a start
        self._is_asked = False  # this manager asked it to end
        self._is_ready = False
        self._start_at = None
        self._watchdog_at = None
        self._pidfd = -1
        self._changed = threading.Condition(threading.RLock())
        self._sockets = [("client", self._listen("client.sock", 0o666)), ("admin", self._listen("admin.sock", 0o660))]
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        (self.folder / "notify").unlink(missing_ok=True)
        self._notify.bind(str(self.folder / "notify"))
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="service-manager", daemon=True)
        self._thread.start()

    # ---- calls of a test ------------------------------------------------------------------------------------------
    def start(self, deadline_s=60.0):
        """Starts the daemon and waits until it is ready."""
        with self._changed:
            wanted = self.ready + 1
            self._is_wanted = True
            self._start_at = time.monotonic()
        self._poke()
        self.wait_ready(wanted, deadline_s)

    def stop(self, deadline_s=60.0):
        """`systemctl stop`: SIGTERM, then the store is emptied. Returns the wait status of the daemon, None if none ran."""
        status = self._end(deadline_s)
        with self._changed:
            self._clear_store()
        return status

    def restart(self, command=None, deadline_s=60.0):
        """`systemctl restart`: SIGTERM, and another daemon with the stored descriptors (with another `command`: an upgrade)."""
        self._end(deadline_s)
        if command is not None:
            self.command = [str(word) for word in command]
        self.start(deadline_s)

    def kill(self, number):
        """Sends a signal to the daemon; if that ends it, another is started after RestartSec. Returns its pid."""
        with self._changed:
            pid, pidfd = self.pid, self._pidfd
            if pid:
                signal.pidfd_send_signal(pidfd, number)
            return pid

    def wait_ready(self, count, deadline_s=60.0):
        """Waits until the daemon was ready for the count-th time since the manager was made."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.ready >= count, deadline_s):
                raise AssertionError(f"the daemon is not ready after {deadline_s:.0f} s:\n" + self.log_text()[-800:])

    def is_ready(self):
        """Whether a daemon runs and has sent READY=1."""
        with self._changed:
            return self.pid != 0 and self._is_ready

    def wait_again(self, after, deadline_s=60.0):
        """Waits until another daemon than the `after`-th start's is ready."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.starts > after and self.is_ready(), deadline_s):
                raise AssertionError(f"no other daemon is ready after {deadline_s:.0f} s:\n" + self.log_text()[-800:])

    def gaps(self, now_ns):
        """The spans (start, end) without a ready daemon after the first, in the last 30 s."""
        found = []
        with self._changed:
            for i, (_, _, ended_ns) in enumerate(self.lives):
                if ended_ns > now_ns - 30_000_000_000:
                    again = [ready_ns for _, ready_ns, _ in self.lives[i + 1:] if ready_ns]
                    found.append((ended_ns, again[0] if again else now_ns))
        return found

    def wait_down(self, pid, deadline_s=60.0):
        """Waits until the daemon `pid` has ended and this manager has noticed."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.pid != pid, deadline_s):
                raise AssertionError(f"the daemon {pid} still lives after {deadline_s:.0f} s")

    def stored(self):
        """The names in the store and the inode of each descriptor, in the order of the store."""
        with self._changed:
            return [(name, os.fstat(fd).st_ino) for name, fd in self._store]

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def close(self):
        """Kills the daemon and closes everything; may be called again."""
        if self._is_closing:
            return
        with self._changed:
            self._is_wanted, self._start_at, pid = False, None, self.pid
        if pid:
            self.kill(signal.SIGKILL)
            self.wait_down(pid)
        self._is_closing = True
        self._poke()
        self._thread.join()
        self._clear_store()
        for _, listening in self._sockets:
            listening.close()
        self._notify.close()
        os.close(self._wake)

    def remake_socket(self, name):
        """Removes a socket's file and binds another listening socket there, as `systemctl restart NAME.socket` does; the
        daemon takes it at its next start."""
        mode = {"client": 0o666, "admin": 0o660}[name]
        with self._changed:
            for i, (which, old) in enumerate(self._sockets):
                if which == name:
                    old.close()
                    self._sockets[i] = (name, self._listen(name + ".sock", mode))

    # ---- its thread -----------------------------------------------------------------------------------------------
    def _run(self):
        while not self._is_closing:
            with self._changed:
                now = time.monotonic()
                if self._start_at is not None and not self.pid and now >= self._start_at:
                    self._start_at = None
                    self._spawn()
                if self._watchdog_at is not None and now >= self._watchdog_at:
                    self._watchdog_at = None
                    self.kill(signal.SIGABRT)
                times = [t for t in (None if self.pid else self._start_at, self._watchdog_at) if t is not None]
                waiting = [self._wake, self._notify.fileno()] + ([self._pidfd] if self.pid else [])
            poller = select.poll()
            for fd in waiting:
                poller.register(fd, select.POLLIN)
            timeout = max(0.0, min(times) - time.monotonic()) * 1000 if times else None
            fired = {fd for fd, _ in poller.poll(timeout)}
            with self._changed:
                if self._wake in fired:
                    os.eventfd_read(self._wake)
                if self._notify.fileno() in fired:
                    self._take_message()
                elif self.pid and self._pidfd in fired:  # only once all its messages are read
                    self._ended()
                self._changed.notify_all()

    def _spawn(self):
        passed = self._sockets + self._in_order()
        # Above all numbers that the child needs, so that moving one to its place overwrites no other.
        copies = [os.dup(source if isinstance(source, int) else source.fileno()) for _, source in passed]
        high = _FIRST_FD + len(passed) + 64
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, high) for fd in copies]
        for fd in copies:
            os.close(fd)
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        log_high = fcntl.fcntl(log, fcntl.F_DUPFD_CLOEXEC, high)
        os.close(log)
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_DUP2, log_high, 1), (os.POSIX_SPAWN_DUP2, log_high, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, fd, _FIRST_FD + i) for i, fd in enumerate(moved)]
        environment = {**os.environ, **self.environment, "NOTIFY_SOCKET": str(self.folder / "notify"),
                       "LISTEN_FDS": str(len(passed)), "LISTEN_FDNAMES": ":".join(name for name, _ in passed)}
        if self.watchdog_s:
            environment["WATCHDOG_USEC"] = str(int(self.watchdog_s * 1e6))
        # The child ends with this process; only the child knows LISTEN_PID.
        command = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *self.before, *self.command]
        self.pid = os.posix_spawnp(command[0], command, environment, file_actions=actions)
        self._pidfd = os.pidfd_open(self.pid)
        for fd in [*moved, log_high]:
            os.close(fd)
        self.starts += 1
        self.lives.append([self.pid, 0, 0])
        self._is_asked = self._is_ready = False
        self.started_ns = time.monotonic_ns()

    def _in_order(self):
        if self.order == "sent":
            return list(self._store)
        mixed = list(self._store)
        self._random.shuffle(mixed)
        return mixed

    def _ended(self):
        _, status = os.waitpid(self.pid, 0)
        self.ended_ns = self.lives[-1][2] = time.monotonic_ns()
        self.ends.append((self.pid, status, self.ended_ns, self._is_asked))
        os.close(self._pidfd)
        self.pid, self._pidfd, self._watchdog_at = 0, -1, None
        failed = status != 0 and not self._is_asked
        if self._is_wanted and failed and self._start_at is None:
            self._start_at = time.monotonic() + self.restart_s

    def _take_message(self):
        space = socket.CMSG_SPACE(_MOST_FDS * 4) + socket.CMSG_SPACE(12)
        data, ancillary, _, _ = self._notify.recvmsg(65536, space, socket.MSG_CMSG_CLOEXEC)
        sender, fds = 0, array.array("i")
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[:len(payload) - len(payload) % fds.itemsize])
            elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                sender = struct.unpack("iii", payload)[0]
        lines = data.decode(errors="replace").split("\n")
        kept = self._obey(sender, lines, list(fds))
        for fd in fds:
            if fd not in kept:
                os.close(fd)

    def _obey(self, sender, lines, fds):
        """Acts on one message; returns the descriptors that went into the store."""
        if sender != self.pid or not self.pid:  # NotifyAccept=main
            self.refused.append(f"a message of pid {sender}, not of the daemon {self.pid}: {lines}")
            return []
        values = dict(line.split("=", 1) for line in lines if "=" in line)
        if values.get("READY") == "1" and not self._is_ready:
            self._is_ready = True
            self.ready += 1
            self.ready_ns = self.lives[-1][1] = time.monotonic_ns()
            self._feed_watchdog()
        if values.get("WATCHDOG") == "1":
            self._feed_watchdog()
        name = values.get("FDNAME", "stored")
        if values.get("FDSTOREREMOVE") == "1":
            for entry in [entry for entry in self._store if entry[0] == name]:
                os.close(entry[1])
                self._store.remove(entry)
        kept = []
        if values.get("FDSTORE") == "1":
            for fd in fds:
                if any(_is_same_description(fd, stored) for _, stored in self._store):
                    continue
                if len(self._store) >= (self.store_max or 1 << 20):
                    self.refused.append(f"{name}: the store is full ({len(self._store)})")
                    continue
                self._store.append((name, fd))
                kept.append(fd)
        return kept

    def _feed_watchdog(self):
        self._watchdog_at = time.monotonic() + self.watchdog_s if self.watchdog_s else None

    # ---- helpers --------------------------------------------------------------------------------------------------
    def _end(self, deadline_s):
        with self._changed:
            pid = self.pid
            self._is_wanted, self._start_at, self._is_asked = False, None, True
        if not pid:
            return None
        self.kill(signal.SIGTERM)
        self.kill(signal.SIGCONT)
        self.wait_down(pid, deadline_s)
        return self.ends[-1][1]

    def _clear_store(self):
        for _, fd in self._store:
            os.close(fd)
        self._store.clear()

    def _listen(self, name, mode):
        path = self.folder / name
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        listening.bind(str(path))
        path.chmod(mode)
        listening.listen(4096)
        return listening

    def _poke(self):
        os.eventfd_write(self._wake, 1)
