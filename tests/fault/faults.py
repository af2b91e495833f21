"""The faults. Each is a function of the world and a seeded generator; it inflicts one fault, undoes it where that is possible,
and returns what identifies the case. World.recover checks the invariants afterwards.

Thread rule: the harness's one thread.
"""

import contextlib
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

import harness
from lawful import MS
from world import PCI_ADDRESS

HELLO = struct.Struct("4sIQ")


# ---- the daemon ends or stops ---------------------------------------------------------------------------------------------
def kill(world, numbers):
    """kill -9; the service manager starts another."""
    starts = world.manager.starts
    with world.daemon_down("kill"):
        world.expected_ends += 1
        world.manager.kill(signal.SIGKILL)
        world.manager.wait_again(starts)
    return {}


def restart(world, numbers):
    """systemctl restart."""
    with world.daemon_down("restart"):
        world.expected_ends += 1
        world.manager.restart()
    return {}


def upgrade(world, numbers):
    """Upgrades to the release of --other, and back; without --other, to another copy of the program."""
    if world.options.other:
        ours, other = world.options.daemon, world.options.other / "daemon/xschedd"
        program = other if world.manager.command[0] == str(ours) else ours
        # Without flags that the other release lacks.
        known = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        arguments = [word for word in world.command[1:] if not str(word).startswith("--") or str(word) in known]
        # An earlier release cannot read a later one's saved state, so clients of the later one got new memory from it.
        def keeps_memory(tenant):
            return program == ours and tenant.has_other_shim

        with world.daemon_down("restart", keeps_memory):
            world.expected_ends += 1
            world.manager.restart([program, *arguments])
        return {"to": str(program)}
    folder = world.dir / f"release-{numbers.randrange(1 << 32):x}"
    folder.mkdir()
    shutil.copy2(world.options.daemon, folder / "xschedd")
    with world.daemon_down("restart"):
        world.expected_ends += 1
        world.manager.restart([folder / "xschedd", *world.command[1:]])
    if world.release:
        shutil.rmtree(world.release)
    world.release = folder
    return {}


def stop(world, numbers):
    """SIGSTOP, SIGCONT: shorter and longer than the lease."""
    ms = numbers.choice((20, 60, 150, 250, 400))
    with world.daemon_down("stop") as moments:
        world.manager.kill(signal.SIGSTOP)
        time.sleep(ms / 1000)  # the fault: how long it is stopped
        moments.append(time.monotonic_ns())
        world.manager.kill(signal.SIGCONT)
    return {"ms": ms}


def kill_again_and_again(world, numbers):
    """The next daemon is killed when it is ready, or before."""
    times = numbers.randint(2, 3)
    with world.daemon_down("kill_again"):
        for _ in range(times):
            pid = world.manager.pid
            world.expected_ends += 1
            world.manager.kill(signal.SIGKILL)
            world.manager.wait_down(pid)
            if numbers.random() < 0.5:
                world.wait(world.manager.is_ready, "a daemon is ready")
            else:
                world.wait(lambda: world.manager.pid != 0, "a daemon is started")
                time.sleep(numbers.uniform(0, 0.02))  # killed at any moment of its start
        world.wait(world.manager.is_ready, "a daemon is ready")
    return {"times": times}


# ---- the daemon is starved -------------------------------------------------------------------------------------------
@contextlib.contextmanager
def limited(world, what, soft):
    """Sets a resource limit of the running daemon."""
    pid = world.manager.pid
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (soft, before[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, what, before)


def knock(world, count):
    """New connections that a starved daemon cannot serve: they send a hello, wait for a moment, and close."""
    sockets = []
    for _ in range(count):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(0.05)
        sockets.append(connection)
        with contextlib.suppress(OSError):
            connection.connect(str(world.runtime_dir / "client.sock"))
            connection.send(HELLO.pack(b"XSH1", 1, 0) if count % 2 else b"PRI * HTTP/2.0\r\n")
    for connection in sockets:
        with contextlib.suppress(OSError):
            connection.recv(64)
        connection.close()


@contextlib.contextmanager
def visitors(world):
    """Clients that connect, work and are killed meanwhile; one that a starved daemon refuses has lost nothing. None is left
    afterwards."""
    began = time.monotonic_ns()
    churner = subprocess.Popen([harness.BUILD / "tests/fault/churner", world.runtime_dir, "cycle", "12", "6", "0000:fa:ce.0"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=harness.dies_with_this_process())
    try:
        yield
    finally:
        try:
            churner.wait(harness.DEADLINE_S)
        except subprocess.TimeoutExpired:
            world.fail(f"clients that connected to a starved daemon still wait after {(time.monotonic_ns() - began) / MS:.0f} ms")
            churner.kill()
            churner.wait()


def no_descriptors(world, numbers):
    """EMFILE: no more descriptors."""
    pid = world.manager.pid
    spare = numbers.choice((0, 0, 1, 2, 3))
    top = max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1 + spare
    with visitors(world), limited(world, resource.RLIMIT_NOFILE, top):
        knock(world, numbers.randint(1, 6))
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([harness.ctl_path, "--runtime-dir", world.runtime_dir, "ps"], capture_output=True, timeout=0.2)
    return {"spare": spare}


def no_memory(world, numbers):
    """ENOMEM: almost no more address space. The daemon may end because of it, and is started again."""
    pid = world.manager.pid
    size = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    spare = numbers.choice((0, 64, 512, 4096))
    ends = len(world.manager.ends)
    world.starved = pid
    with visitors(world), limited(world, resource.RLIMIT_AS, size + spare * 1024):
        knock(world, numbers.randint(1, 12))
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([harness.ctl_path, "--runtime-dir", world.runtime_dir, "ps"], capture_output=True, timeout=0.2)
        time.sleep(0.05)  # the fault: how long it has no memory
    died = len(world.manager.ends) - ends
    world.expected_ends += died
    world.deaths_of_memory += died
    said = [line for line in world.manager.log_text().splitlines() if " info " not in line and " warning" not in line]
    return {"spare_kib": spare, "died": died, **({"status": world.manager.ends[-1][1], "said": said[-3:]} if died else {})}


def full_disk(world, numbers):
    """ENOSPC: the file system of the log is full; or a file size limit, if the test cannot have its own file system."""
    if not world.has_own_disk:
        return file_size(world, numbers)
    filler = world.log_folder / "filler"
    statistics = os.statvfs(world.log_folder)
    file = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        with contextlib.suppress(OSError):
            os.posix_fallocate(file, 0, statistics.f_bavail * statistics.f_frsize)
        with contextlib.suppress(OSError):
            for _ in range(1 << 14):
                os.write(file, bytes(4096))
        speak(world)
        time.sleep(0.03)  # the log's thread writes later, and its failure is not visible
    finally:
        os.close(file)
        filler.unlink()
    return {}


def file_size(world, numbers):
    """EFBIG: RLIMIT_FSIZE, under the size of the log; the kernel also sends SIGXFSZ."""
    with limited(world, resource.RLIMIT_FSIZE, 0):
        speak(world)
        knock(world, 3)
    return {}


def speak(world):
    """Makes the daemon write a line of its log."""
    for priority in (1, 2):
        for tenant in world.ready("steady")[:1]:
            world.ctl("set", "--pid", tenant.pid, "--priority", priority, check=False)
            world.ctl("reset", "--pid", tenant.pid, check=False)


def clock_jump(world, numbers):
    """CLOCK_REALTIME jumps, by an interposed clock in the daemon. (CLOCK_MONOTONIC cannot be set.)"""
    hours = numbers.choice((-24 * 365 * 20, -24, -1, 1, 24, 24 * 365 * 10))
    with open(world.clock, "r+b") as file:
        file.write(struct.pack("q", hours * 3600 * 1_000_000_000))
        file.flush()
        knock(world, 2)
        world.ctl("ps", check=False)
        time.sleep(0.05)  # the fault: how long it has the wrong time
        file.seek(0)
        file.write(bytes(8))
    return {"hours": hours}


def no_socket(world, numbers):
    """The file of the clients' socket is removed; connected clients continue. It is restored as an administrator would
    do it: the socket unit is restarted, and the daemon after it; sometimes the daemon was killed meanwhile."""
    (world.runtime_dir / "client.sock").unlink()
    time.sleep(numbers.uniform(0.01, 0.1))  # the fault: how long there is no socket
    died = numbers.random() < 0.5
    with world.daemon_down("no_socket"):
        world.expected_ends += 1
        if died:
            pid = world.manager.kill(signal.SIGKILL)
            world.manager.wait_down(pid)
            world.manager.remake_socket("client")
            world.wait(world.manager.is_ready, "a daemon is ready")
        else:
            world.manager.remake_socket("client")
            world.manager.restart()
    return {"daemon_killed": died}


def wedge(world, numbers):
    """One thread of the daemon hangs while the others run: one of gRPC's, sometimes the main thread."""
    pid = world.manager.pid
    threads = sorted(int(thread) for thread in os.listdir(f"/proc/{pid}/task"))
    others = [thread for thread in threads if thread != pid]
    thread = pid if numbers.random() < 0.2 or not others else numbers.choice(others)
    ms = numbers.choice((50, 150, 300))
    name = pathlib.Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip()
    began = time.monotonic_ns()
    helper = subprocess.Popen([harness.BUILD / "tests/fault/wedge", str(pid), str(thread), str(ms)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    knock(world, 2)
    _, errors = helper.communicate()
    if thread == pid:
        world.downs.append((began, time.monotonic_ns()))
    if helper.returncode != 0:
        world.fail("the harness could not stop a thread: " + errors)
    return {"thread": name, "main": thread == pid, "ms": ms}


# ---- a client ends or stops -----------------------------------------------------------------------------------------------
def some_client(world, numbers, kinds=("steady", "bursty")):
    return numbers.choice(world.await_ready(*kinds))


def client_kill(world, numbers):
    tenant = some_client(world, numbers)
    world.kill(tenant)
    return {"client": tenant.name}


def client_stop(world, numbers):
    tenant = some_client(world, numbers)
    ms = numbers.choice((5, 50, 200))
    tenant.stop()
    time.sleep(ms / 1000)  # the fault
    tenant.go_on()
    return {"client": tenant.name, "ms": ms}


def client_fork(world, numbers):
    """A child that keeps everything open, or executes another program; sometimes the parent is killed meanwhile."""
    tenant = some_client(world, numbers)
    verb = numbers.choice(("fork 50", "fork 300", "exec"))
    tenant.say(verb)
    orphaned = numbers.random() < 0.4
    if orphaned:
        world.until(tenant.has_child, 1.0)  # one that executes another program may have ended already
        world.kill(tenant)
    return {"client": tenant.name, "child": verb, "orphaned": orphaned}


def client_held(world, numbers):
    """A client is killed, stopped, or forks at the moment when its gate is shut and it waits there."""
    tenants = world.ready("steady", "beside")
    numbers.shuffle(tenants)
    what = numbers.choice(("kill", "stop", "fork"))
    found = [None]

    def is_caught():
        for tenant in tenants:
            if tenant.diary.in_call_since and tenant.is_held():
                found[0] = tenant
                return True
        return False

    if not world.until(is_caught, 3.0):
        return {"held": "no client was"}
    tenant = found[0]
    if what == "kill":
        world.kill(tenant)
    elif what == "stop":
        tenant.stop()
        time.sleep(numbers.choice((0.02, 0.15)))  # the fault
        tenant.go_on()
    else:
        tenant.say("fork 100")
    return {"client": tenant.name, "what": what}


def half_record(world, numbers):
    """A client dies, or stops for a while, before each of the steps in which it reports that it is busy."""
    step, hint = numbers.randint(0, 5), numbers.choice((-30, 60))
    how = numbers.choice(("kill", "kill", "stop", "go on"))
    began = time.monotonic_ns()
    helper = subprocess.Popen([harness.BUILD / "tests/fault/half_record", world.runtime_dir, str(hint), PCI_ADDRESS,
                               str(step)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              preexec_fn=harness.dies_with_this_process())
    said = helper.stdout.readline().strip()
    if said != "there":
        world.fail(f"half_record did not get to step {step}")
    if how == "stop":
        helper.send_signal(signal.SIGSTOP)
    time.sleep(numbers.choice((0.0, 0.02, 0.12)))  # shorter and longer than the lease
    if how != "kill":
        helper.send_signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            helper.communicate("go on\n", timeout=harness.DEADLINE_S)
    helper.kill()
    helper.wait()
    world.claims.append((0, hint, began, time.monotonic_ns()))
    return {"step": step, "hint": hint, "how": how}


# ---- both ----------------------------------------------------------------------------------------------------------------
def both(world, numbers):
    """The daemon is killed while a client is stopped, or dies as well."""
    tenant = some_client(world, numbers)
    dies = numbers.random() < 0.5
    tenant.stop()
    details = kill(world, numbers) if numbers.random() < 0.7 else restart(world, numbers)
    if dies:
        world.kill(tenant)
    else:
        tenant.go_on()
    return {"client": tenant.name, "dies": dies, **details}


def held_by_administrator(world, numbers):
    """An administrator's hold, and the daemon is killed meanwhile: without a daemon no client is held; with a descriptor
    store, the next daemon applies the hold again."""
    tenant = some_client(world, numbers, ("steady",))
    began = time.monotonic_ns()
    world.ctl("hold", "--pid", tenant.pid)
    kill(world, numbers)
    if world.manager.stored():
        world.wait(lambda: tenant.is_held(), "an administrator's hold is in force again")
    world.wait(lambda: world.ctl("release", "--pid", tenant.pid, check=False).returncode == 0, "it can be released")
    tenant.holds.append((began, time.monotonic_ns() + 20 * MS))
    return {"client": tenant.name}


FAULTS = {
    "kill": (kill, 14), "stop": (stop, 10), "restart": (restart, 7), "upgrade": (upgrade, 3),
    "kill_again": (kill_again_and_again, 3), "emfile": (no_descriptors, 6), "enomem": (no_memory, 4),
    "enospc": (full_disk, 4), "efbig": (file_size, 2), "clock": (clock_jump, 5), "socket": (no_socket, 4), "wedge": (wedge, 7),
    "client_kill": (client_kill, 6), "client_stop": (client_stop, 8), "client_fork": (client_fork, 7),
    "client_held": (client_held, 9), "half_record": (half_record, 9), "both": (both, 5), "hold": (held_by_administrator, 4),
}


def choose(numbers, only=None):
    names = only or list(FAULTS)
    return numbers.choices(names, [FAULTS[name][1] for name in names])[0]
