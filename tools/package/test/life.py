#!/usr/bin/env python3
"""The packages in a booted Debian 12: install, serve, restart, upgrade under live clients, remove, purge.

Run by `life` in `booted`. Each step needs the one before it; the first failure ends the test. Steps wait for conditions,
not for fixed times. The last line is `N passed, N failed`.
"""

import json
import socket
import sys

from machine import Program, expect, files, property_of, run, run_steps, wait_for

GPU = "0000:c1:00.0"
TEST = "/opt/test"
SERVICE, SOCKETS = "xschedd.service", ("xschedd-client.socket", "xschedd-admin.socket")
METRICS, NRI = "xschedd-metrics.socket", "xschedd-nri.service"
SHIM = "/usr/lib/x86_64-linux-gnu/xschedd/libxschedd-shim.so"
INSTALLED = ("/usr/sbin/xschedd", "/usr/bin/xschedctl", SHIM, SHIM.replace("shim", "client"), "/usr/include/xschedd.h",
             "/usr/share/man/man8/xschedd.8.gz", "/usr/share/man/man1/xschedctl.1.gz", "/usr/share/man/man5/xschedd.toml.5.gz",
             "/usr/share/man/man7/xschedd-shim.7.gz", "/usr/share/bash-completion/completions/xschedctl",
             "/usr/share/zsh/site-functions/_xschedctl", "/etc/cdi/xschedd.json", "/etc/xschedd/xschedd.toml", "/etc/xschedd/conf.d", "/usr/share/doc/xschedd/copyright",
             SHIM.replace("libxschedd-shim.so", "self-test/self-test-client"), "/usr/share/xschedd/grafana-dashboard.json",
             "/usr/share/xschedd/grafana-dashboard-fleet.json", "/usr/share/xschedd/prometheus-alerts.yml",
             "/usr/share/xschedd/prometheus-recording.yml", "/usr/share/xschedd/prometheus-scrape.yml", "/usr/share/xschedd/schema/ps-1.json",
             "/usr/share/xschedd/bench/acceptance/acceptance",
             "/usr/share/doc/xschedd/reference/metrics.md", "/usr/share/doc/xschedd/reference/json.md")


class Life:
    PREFIX = "/usr"  # of the daemon, xschedctl and the private files

    def __init__(self):
        self.low = self.high = self.program = None
        self.before = set()

    def clients(self):
        return json.loads(run("xschedctl", "--json", "ps"))["clients"]

    def client(self, words):
        return next((client for client in self.clients() if words in " ".join(map(str, client.values()))), None)

    def tenants(self):
        return [tenant for tenant in (self.low, self.high) if tenant]

    def state(self):
        """What the held tenant sees; empty without one."""
        return dict(part.split("=") for part in self.low.ask("look").split()) if self.low else {}

    def is_bound(self):
        return self.state().get("bound", "1") == "1"

    def main_pid(self):
        return int(property_of(SERVICE, "MainPID"))

    # ---- steps, in this order
    def install_dependencies(self):
        """Installs the dependencies with apt first, so that the files before and after can be compared."""
        run("apt-get", "update", "-q")
        needed = run("sh", "-c", f"apt-get install -s --no-install-recommends {TEST}/packages/*.deb | sed -n 's/^Inst //p'")
        names = [line.split()[0] for line in needed.splitlines() if "xschedd" not in line.split()[0]]
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", *names)
        self.before = files()
        return f"{len(names)} packages of Debian"

    def install(self):
        run("sh", "-c", f"apt-get install -y -q --no-install-recommends {TEST}/packages/*.deb")
        for path in INSTALLED:
            run("test", "-e", path)
        conffiles = run("dpkg-query", "-W", "-f", "${Conffiles}", "xschedd")
        expect("/etc/xschedd/xschedd.toml" in conffiles, f"the configuration is not a conffile: {conffiles}")

    def serve(self):
        for unit in (SERVICE, *SOCKETS):
            expect(run("systemctl", "is-active", unit) == "active", f"{unit} is not active")
            expect(run("systemctl", "is-enabled", unit) == "enabled", f"{unit} is not enabled")
        state = [run("systemctl", word, METRICS, status=None) for word in ("is-active", "is-enabled")]
        expect(state == ["inactive", "disabled"], f"{METRICS}, which is optional, is {state}")
        modes = run("stat", "-L", "-c", "%a %U:%G", "/run/xschedd/client.sock", "/run/xschedd/admin.sock").splitlines()
        expect(modes == ["666 root:root", "660 root:xschedd"], f"sockets: {modes}")
        return run("xschedctl", "version").replace("\n", "; ")

    def cdi(self):
        """The folders that containers mount exist."""
        mounts = {edit["hostPath"] for edit in json.loads(run("cat", "/etc/cdi/xschedd.json"))["devices"][0]["containerEdits"]["mounts"]}
        for path in mounts:
            run("test", "-d", path)

    def verify(self):
        said = run("systemd-analyze", "verify", SERVICE, *SOCKETS)
        expect("xschedd" not in said, said)
        return run("sh", "-c", f"systemd-analyze --no-pager security {SERVICE} | tail -n 1").encode("ascii", "ignore").decode()

    def doctor(self):
        """The root has no GPU and no HIP; the doctor may report only that."""
        report = json.loads(run("xschedctl", "--json", "doctor", status=None))
        wrong = [finding for finding in report["findings"] if finding["level"] not in ("ok", "note")]
        expect(all(finding["check"] in ("device", "runtime") for finding in wrong), json.dumps(wrong, indent=1))
        return f"{len(report['findings'])} findings, {len(wrong)} of them about the missing GPU and HIP"

    def acceptance(self):
        """Without a GPU it says no, having asked the running daemon, and leaves a complete report."""
        report = json.loads(run("xschedctl", "--json", "acceptance", "--output", "/tmp/report", status=1))
        expect(report["sections"][0]["verdict"] == "no", report["sections"][0]["line"])
        skipped = [one["what"] for one in report["sections"][0]["skipped"]]
        expect("the system's daemon" not in skipped, f"the daemon was not asked: {skipped}")
        run("rm", "/tmp/report/results.json", "/tmp/report/report.md", "/tmp/report/report.html")
        run("sh", "-c", "rm /tmp/report/bundle.tar* && rmdir /tmp/report")
        return report["sections"][0]["line"]

    def python(self):
        return run("python3", "-c", "import xschedd; print(xschedd.__file__)")

    def start_clients(self):
        """One held client, one for which it is held, and a program with the package's shim. Their GPU is not the machine's."""
        self.start_program()
        self.low = Program(f"{TEST}/restart_tenant", "/run/xschedd", 0, GPU)
        self.high = Program(f"{TEST}/restart_tenant", "/run/xschedd", 50, GPU)
        for tenant in self.tenants():
            expect(tenant.hear() == "ready", "a tenant did not start")
            expect(tenant.ask("busy") == "ok", "a tenant is not busy")
        wait_for(self.is_bound, "the client of lower priority is held")

    def start_program(self):
        run("sed", "-i", "s/^software_gpu = false/software_gpu = true/", "/etc/xschedd/xschedd.toml")
        run("systemctl", "restart", SERVICE)
        self.program = Program("xschedctl", "run", "--priority", 20, "--", "python3", f"{TEST}/preloaded.py")
        launched = self.program.ask("launch")
        expect(launched == "0 1", f"the program did not launch: {launched}")
        wait_for(lambda: self.client("preloaded.py"), "the program is a client")
        mine = self.client("preloaded.py")
        expect(mine["priority_effective"] == 20, f"its hint has no effect: {mine}")
        run("xschedctl", "set", "--pid", mine["pid"], "--priority", -7)

    def survive(self, act):
        """After `act` a new daemon runs, and memory, the closed gate and the settings are unchanged."""
        # The tenants do not reconnect by themselves, and a daemon awaits them only for seconds.
        for tenant in self.tenants():
            expect(tenant.ask("connect") == "ok", "a tenant does not connect again")
        wait_for(self.is_bound, "the client of lower priority is held")
        before, old, mine = self.state(), self.main_pid(), self.client("preloaded.py")
        kept = 1 + 2 * (1 + len(self.tenants()))  # the daemon's state, and the memory of each client
        wait_for(lambda: int(property_of(SERVICE, "NFileDescriptorStore")) >= kept, "systemd keeps state and memory")
        stored = property_of(SERVICE, "NFileDescriptorStore")
        said = act()
        wait_for(lambda: self.main_pid() not in (0, old), "a new daemon runs")
        wait_for(lambda: run("xschedctl", "version", status=None) and property_of(SERVICE, "SubState") == "running", "it serves")
        wait_for(self.is_bound, "the client of lower priority is held again")
        after = self.state()
        expect({**after, "bound": 0} == {**before, "bound": 0}, f"memory or id changed: {before} {after}")
        wait_for(lambda: self.client("preloaded.py"), "the program is a client again")
        now = self.client("preloaded.py")
        expect((now["priority_effective"], now["pid"]) == (-7, mine["pid"]), f"the setting is lost: {now}")
        launched = self.program.ask("launch").split()
        expect(launched[0] == "0", f"the program cannot launch: {launched}")
        return f"{stored} descriptors stored, pid {old} -> {self.main_pid()}" + (f"; {said}" if said else "")

    def restart(self):
        return self.survive(lambda: run("systemctl", "restart", SERVICE))

    def crash(self):
        return self.survive(lambda: run("systemctl", "kill", "-s", "KILL", SERVICE)) + \
            f", NRestarts {property_of(SERVICE, 'NRestarts')}"

    def watchdog(self):
        """systemd kills a stopped daemon after WatchdogSec."""
        def stop():
            run("systemctl", "kill", "-s", "STOP", SERVICE)
            wait_for(lambda: "Watchdog timeout" in run("journalctl", "-u", SERVICE, "--no-pager"), "systemd notices that the daemon is stopped")
        return self.survive(stop)

    def reload(self):
        old = self.main_pid()
        run("systemctl", "reload", SERVICE)
        expect(self.main_pid() == old, "a reload restarted it")

    def upgrade(self):
        """The administrator's configuration stays, the sockets are never closed, and the new program runs."""
        run("sh", "-c", "echo '# of the administrator' >>/etc/xschedd/xschedd.toml")
        run("sh", "-c", "printf '[policy]\\nturn_ms = 49\\n' >/etc/xschedd/conf.d/10-test.toml")
        since = [property_of(unit, "ActiveEnterTimestampMonotonic") for unit in SOCKETS]
        said = self.survive(lambda: run("sh", "-c", f"apt-get install -y -q --no-install-recommends {TEST}/upgrade/*.deb") and "")
        expect(since == [property_of(unit, "ActiveEnterTimestampMonotonic") for unit in SOCKETS], "the sockets were closed")
        expect("+higher" in run("dpkg-query", "-W", "-f", "${Version}", "xschedd"), "it was not upgraded")
        expect(run("readlink", f"/proc/{self.main_pid()}/exe") == f"{self.PREFIX}/sbin/xschedd", "the old program is running")
        run("grep", "-q", "of the administrator", "/etc/xschedd/xschedd.toml")
        expect("conf.d/10-test.toml, line 2" in run("xschedctl", "config", "show", "--changed"), "the drop-in is not in effect")
        return said

    def socket_activation(self):
        # Running programs reconnect, which starts the daemon before xschedctl can.
        old = self.main_pid()
        run("systemctl", "stop", SERVICE)
        run("xschedctl", "version")
        expect(self.main_pid() not in (0, old), "a connection did not start it")
        wait_for(lambda: self.client("preloaded.py"), "the program reconnects")

    def stop_all(self):
        run("systemctl", "stop", "xschedd*")
        self.all_inactive()

    def all_inactive(self):
        for unit in (SERVICE, *SOCKETS, METRICS, NRI):
            expect(property_of(unit, "ActiveState") == "inactive", f"{unit} still runs")

    def metrics(self):
        """Enabled as in docs/reference/metrics.md, but on another port, because this root uses the machine's network."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        place = f"/etc/systemd/system/{METRICS}.d"
        run("sh", "-c", f"mkdir {place} && printf '[Socket]\\nListenStream=\\nListenStream=127.0.0.1:{port}\\n' >{place}/override.conf")
        run("systemctl", "daemon-reload")
        self.stop_all()
        run("systemctl", "enable", "--now", METRICS)
        run("systemctl", "start", SERVICE)

        def scrape():
            text = run("python3", "-c", "import urllib.request as r;"
                       f" print(r.build_opener(r.ProxyHandler({{}})).open('http://127.0.0.1:{port}/metrics').read().decode())")
            expect("xschedd_build_info{" in text, text)
            return text
        scrape()
        # Nor does Prometheus restart what was stopped as in docs/how-to/troubleshooting.md.
        self.stop_all()
        run("systemctl", "start", METRICS, SERVICE)
        text = scrape()
        wait_for(lambda: self.client("preloaded.py"), "the program reconnects")
        run("rm", "-r", place)
        return f"{len(text.splitlines())} lines"

    def nri(self):
        """Turned on as in docs/how-to/nri.md, in the sandbox of its unit. There is no container engine."""
        run("systemctl", "enable", "--now", "xschedd-nri")
        wait_for(lambda: "it waits for a container engine with NRI" in run("journalctl", "--no-pager", "-u", "xschedd-nri"),
                 "the plugin waits")
        expect(property_of(NRI, "ActiveState") == "active" and property_of(NRI, "NRestarts") == "0", "it does not run")

    def remove(self):
        run("apt-get", "remove", "-y", "-q", "xschedd", "xschedd-client", "xschedd-bench", "libxschedd-dev", "python3-xschedd")
        self.all_inactive()
        run("test", "!", "-e", "/usr/sbin/xschedd")
        run("test", "-e", "/etc/xschedd/xschedd.toml")
        run("test", "-e", "/etc/xschedd/conf.d/10-test.toml")
        self.end_clients()

    def end_clients(self):
        """Without a daemon."""
        for _ in range(3):
            expect(self.program.ask("launch").split()[0] == "0", "a running program can no longer launch")
        expect(self.program.end() == 0, "a running program ended with an error")
        for tenant in self.tenants():
            tenant.end()
        self.low = self.high = self.program = None

    def purge(self):
        run("dpkg", "--purge", "xschedd", "xschedd-client", "xschedd-bench", "libxschedd-dev", "python3-xschedd")
        self.all_gone()

    def all_gone(self):
        """The root is as before."""
        left, gone = files() - self.before, self.before - files()
        expect(not left and not gone, f"left behind: {sorted(left)}; gone: {sorted(gone)}")
        states = run("dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n", "*xschedd*", status=None)
        expect("rc " not in states and "ii " not in states, states)
        failed = run("systemctl", "list-units", "--all", "--no-legend", "--plain", "xschedd*")
        expect(not failed, f"systemd still knows {failed}")

    def reinstall(self):
        """A purged package installs as it did the first time."""
        run("sh", "-c", f"apt-get install -y -q --no-install-recommends {TEST}/packages/xschedd_*.deb {TEST}/packages/xschedd-client_*.deb")
        run("xschedctl", "version")
        run("dpkg", "--purge", "xschedd", "xschedd-client")
        expect(files() == self.before, "something is left behind")

    STEPS = (install_dependencies, install, serve, cdi, verify, doctor, acceptance, python, start_clients, restart, crash, watchdog, reload, upgrade,
             socket_activation, metrics, nri, remove, purge, reinstall)


if __name__ == "__main__":
    sys.exit(run_steps(Life()))
