"""The programs that pictures show: three saturating tenants and one that serves requests, on one software GPU.

Thread rule: main thread.
"""

import os

from benchlib.tenants import wait_until_ready


def start(build, folder, daemon, children, device):
    """Starts them under `daemon` and waits until each is its client. Returns the one that serves requests, and the others."""
    bench = os.path.join(build, "tools", "bench")

    def tenant(name, program, priority, *words):
        command = device.command([os.path.join(bench, program), "--seconds", "0", *words, "--out", os.path.join(folder, name)])
        return children.start(name, daemon.run_command(command, priority), device.environment)

    neighbours = [tenant(f"neighbour-{i}", "saturating_tenant", -20, "--kernel-us", "1200", "--depth", "16") for i in range(3)]
    wait_until_ready(neighbours)
    request = tenant("request", "request_tenant", 50, "--rate", "10", "--kernels", "8", "--kernel-us", "2200", "--pattern", "4",
                     "--seed", "8")
    wait_until_ready([request])
    daemon.wait_for_clients([*neighbours, request])
    return request, neighbours
