#!/usr/bin/env python3
"""Jobs of a real Slurm as clients: their claims, priorities, and what fails without harm to them.

Run by `run` in `booted`; the arguments are the root's suite, one of slurm_place.py, and the file for what is measured
(slurm_latency.py). Two partitions share one GPU by shards; munge, slurmctld and slurmd run on the one machine. Jobs
are of the user alice, and their GPU program is the packages' self-test client. Each step needs the one before it and waits
for conditions. The last line is `N passed, N failed`.
"""

import json
import pathlib
import re
import signal
import socket
import sys

import slurm_database
import slurm_latency
import slurm_place
from machine import ROOT, Program, expect, property_of, run, run_steps, wait_for

CONNECTED = "2"  # XSCHEDD_STATE_CONNECTED of xschedd.h
DAEMON = ("xschedd.service", "xschedd-client.socket", "xschedd-admin.socket")
SYNC = "xschedd-slurm-sync"
SHARD = "--gres=shard:1"
MAX_CLAIMS = 1024
# As slurmstepd is.
ENTER_SLURMD = ("root=/sys/fs/cgroup; [ ! -d $root/systemd ] || root=$root/systemd; "
                "echo $$ >$root/system.slice/slurmd.service/cgroup.procs")
LIMITS = """
[partition.high]
priority = 20
ceiling = 50
[partition.low]
priority = -20
memory = "24G"
"""
SETTINGS = {
    "slurm.conf": """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={place.controller}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ReturnToService=2
KillWait=1
GresTypes=gpu,shard
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:1,shard:8 State=UNKNOWN
PartitionName=high Nodes=ALL Default=YES PriorityTier=1 OverSubscribe=FORCE:16 State=UP
PartitionName=low Nodes=ALL PriorityTier=1 OverSubscribe=FORCE:16 State=UP
""",
    "gres.conf": "Name=gpu File=/dev/null\nName=shard Count=8\n",
}


def free_ports():
    """Two of the machine's, whose network the root shares."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def user(*command):
    return ("setpriv", "--reuid", "alice", "--regid", "alice", "--clear-groups", "env", "-C", "/tmp", *command)


def srun(partition, *words, environment=()):
    return user(*environment, "srun", "--partition", partition, "--unbuffered", *words)


def claims():
    return {claim["name"]: claim for claim in json.loads(run("xschedctl", "--json", "claim", "list"))["claims"]}


def clients():
    return json.loads(run("xschedctl", "--json", "ps"))["clients"]


def lines_of(said):
    return [line for line in said.splitlines() if line.startswith("xschedd: ")]


class Fleet(slurm_latency.Latency, slurm_database.Database):
    def __init__(self, place, report):
        super().__init__(report)
        self.place = place
        self.shim = f"{place.folder}/libxschedd-shim.so"
        self.program = (f"{place.folder}/self-test/self-test-client", f"{place.folder}/self-test/libamdhip64.so.self-test",
                        "0000:c1:00.0")
        self.high = self.low = self.high_job = self.low_job = None

    shard = SHARD
    user, srun, claims, free_ports = map(staticmethod, (user, srun, claims, free_ports))

    def write_limits(self, more=""):
        (ROOT / "etc/xschedd/slurm.toml").write_text(LIMITS + more)

    def sync(self):
        """By the timer's service."""
        run("systemctl", "start", f"{SYNC}.service")

    def start(self, partition, *options, environment=()):
        """A step that is a client, and its job's number."""
        before = set(claims())
        program = Program(*srun(partition, SHARD, *options, *self.program, environment=environment))
        state = program.ask("attach")
        expect(state == CONNECTED, f"the job in {partition} has not connected to the daemon: {state}")
        new = set(claims()) - before
        expect(len(new) == 1, f"the job in {partition} has these new claims: {new}")
        return program, claims()[new.pop()]["labels"]["job"]

    def of(self, job):
        """The job's client in the output of ps, or None."""
        return next((client for client in clients() if (client["claim"] or {}).get("labels", {}).get("job") == job), None)

    def priority(self, job):
        client = self.of(job)
        return (client["priority_effective"], client["priority_source"]) if client else None

    def state(self, job):
        client = self.of(job)
        return client["devices"][0]["state"] if client and client["devices"] else ""

    def no_claims(self, what):
        wait_for(lambda: not claims(), what)

    def runs_and_says(self, count, text, *options, partition="high"):
        """A job with a shard runs, and its log has `count` lines of ours, the first with `text`."""
        said = run(*srun(partition, SHARD, *options, "echo", "it", "ran"))
        ours = lines_of(said)
        expect("it ran" in said.splitlines(), f"the job did not run: {said}")
        expect(len(ours) == count and (count == 0 or text in ours[0]), f"its log: {said}")
        return ours[0] if ours else ""

    def end_processes(self, cgroup):
        run("sh", "-c", f"find /sys/fs/cgroup -path '*{cgroup}/cgroup.procs' -exec cat {{}} + | sort -u | xargs -r kill -KILL", status=None)

    def end_of_claim(self, job):
        """By the timer's service."""
        def is_gone():
            self.sync()
            return f"slurm-{job}.0" not in claims()
        wait_for(is_gone, "sync removes the claim")

    def wait_for_slurm(self):
        """After a restart, nodes register and shards are there only later."""
        wait_for(lambda: "it runs" in run(*srun("low", SHARD, "echo", "it runs"), status=None), "Slurm runs jobs")
        self.no_claims("the claim ends")

    # ---- steps, in this order
    def prepare(self):
        run("apt-get", "update", "-q")
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", "jq")
        self.place.install()
        host, ports = run("hostname"), free_ports()
        for name, text in SETTINGS.items():
            (ROOT / "etc/slurm" / name).write_text(text.format(host=host, ports=ports, place=self.place))
        self.write_limits()
        run("sh", "-c", f"grep -q ' {host}$' /etc/hosts || echo 127.0.0.1 {host} >>/etc/hosts")
        run("sh", "-c", "useradd -m alice; mkdir -p /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm")
        run("chown", self.place.controller, "/var/lib/slurm/slurmctld", "/var/log/slurm")
        run("sed", "-i", "s/^software_gpu = false/software_gpu = true/", "/etc/xschedd/xschedd.toml")
        # The steps start it themselves.
        run("systemctl", "stop", f"{SYNC}.timer")
        run("systemctl", "restart", "xschedd", "munge", "slurmctld", "slurmd")
        self.wait_for_slurm()
        return run("srun", "--version")

    def a_job_without_gpus_is_untouched(self):
        said = run(*srun("low", "sh", "-c", "env; cat /proc/self/cgroup; ls -l /proc/self/fd | grep -c xsched"), status=None)
        expect("LD_PRELOAD" not in said and "xsched" not in said, said)
        program = Program(*srun("low", "--gpu-priority=high", "cat"))
        expect(program.ask("runs") == "runs", "the job does not run")
        expect(not claims(), f"it has a claim: {claims()}")
        expect(program.end() == 0, "the job failed")

    def a_step_has_the_claim_of_its_partition(self):
        self.low, self.low_job = self.start("low")
        name = f"slurm-{self.low_job}.0"
        claim = claims()[name]
        expect(claim["priority"] == -20 and claim["group"] == name, f"the claim: {claim}")
        expect({key: claim["labels"][key] for key in ("step", "user", "partition")} ==
               {"step": "0", "user": "alice", "partition": "low"}, f"its labels: {claim}")
        expect(self.priority(self.low_job) == (-20, "claim"), f"the claim has no effect: {self.of(self.low_job)}")
        self.high, self.high_job = self.start("high")
        expect(self.priority(self.high_job) == (20, "claim"), f"the claim has no effect: {self.of(self.high_job)}")

    def the_low_partition_is_held(self):
        run("xschedctl", "set", self.of(self.high_job)["pid"], "--latency", "strict")
        for program in (self.low, self.high):
            expect(program.ask("work") == "0", "it cannot work")
        wait_for(lambda: self.state(self.low_job) == "held", "the low partition's job is held")
        expect(self.state(self.high_job) == "running", f"the high partition's is {self.state(self.high_job)}")

    def a_suspended_job_lets_go(self):
        run("scontrol", "suspend", self.high_job)
        wait_for(lambda: self.state(self.low_job) == "running", "the other job runs")
        expect(self.of(self.high_job) is not None, "the suspended job has lost its claim")
        self.sync()
        expect(f"slurm-{self.high_job}.0" in claims(), "the suspended job has lost its claim")
        run("scontrol", "resume", self.high_job)
        # srun stops itself with its job, and so does what started it here.
        self.high.process.send_signal(signal.SIGCONT)
        wait_for(lambda: self.state(self.low_job) == "held", "the other job is held again")

    def scontrol_changes_live_priorities(self):
        """By the timer's service. Only root's and operators' changes raise a priority, and never above the ceiling."""
        run("scontrol", "update", f"JobId={self.high_job}", "Nice=6000")
        self.sync()
        expect(self.priority(self.high_job) == (-40, "claim"), f"its priority: {self.of(self.high_job)}")
        run("xschedctl", "set", self.of(self.low_job)["pid"], "--latency", "strict")
        wait_for(lambda: self.state(self.high_job) == "held", "the job with the higher nice is held")
        run("scontrol", "update", f"JobId={self.high_job}", "Nice=-10000")
        self.sync()
        expect(self.priority(self.high_job) == (50, "claim"), f"its priority: {self.of(self.high_job)}")
        wait_for(lambda: self.state(self.low_job) == "held", "the other job is held again")
        return property_of(f"{SYNC}.service", "Result")

    def a_restart_of_slurmd_changes_nothing(self):
        run("systemctl", "restart", "slurmd")
        wait_for(lambda: run("sinfo", "--noheader", "--format", "%T", status=None) in ("mixed", "allocated"), "slurmd is back")
        expect(self.priority(self.high_job) == (50, "claim"), f"its priority: {self.of(self.high_job)}")
        expect(self.low.runs() and self.high.runs(), "a job has ended")

    def nor_does_a_daemon_that_is_killed(self):
        run("systemctl", "kill", "--signal=KILL", "xschedd.service")
        wait_for(lambda: run("systemctl", "is-active", "xschedd.service", status=None) == "active", "the daemon is back")
        wait_for(lambda: self.priority(self.high_job) == (50, "claim"), "the job's client is back with its claim")
        # The one that is held rests when the other does.
        for program in (self.high, self.low):
            expect(program.ask("rest") == "0", "it does not rest")

    def a_claim_ends_with_its_step(self):
        for program in (self.low, self.high):
            expect(program.end() == 0, "the job failed")
        self.no_claims("the claims end")
        wait_for(lambda: not run("sh", "-c", "find /sys/fs/cgroup -name 'xschedd_*'"), "the cgroups are gone")

        def account():
            """As a user reads it."""
            said = run(*user("cat", "/var/log/xschedd-slurm.jsonl"), status=None)
            return {line["labels"]["job"]: line for line in map(json.loads, said.splitlines())}
        wait_for(lambda: {self.low_job, self.high_job} <= set(account()), "both steps are in the account")
        low = account()[self.low_job]
        expect(low["held_ns"] > 0 and low["labels"]["user"] == "alice" and low["ended_unix_ms"], f"the account: {low}")

    def the_how_to_s_commands_work(self):
        """Its file of limits, its check and its account, as docs/how-to/slurm.md has them."""
        text = (pathlib.Path(__file__).parents[2] / "docs/how-to/slurm.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        (ROOT / "etc/xschedd/slurm.toml").write_text(next(block for block in blocks if "[partition.interactive]" in block))
        check = re.search(r"`(xschedctl slurm check [^`]*)`", text).group(1)
        said = run(*check.split())
        expect(said.startswith("GPU priority 50\n") and "limited by partition" in said, f"{check}: {said}")
        self.write_limits()
        command = next(block for block in blocks if block.startswith("jq ")).replace('"17"', f'"{self.low_job}"')
        said = json.loads(run(*user("sh", "-c", command)))
        expect(said[0] == "0" and said[2] > 0, f"{command}: {said}")

    def ranks_are_one_group(self):
        """A job of two ranks, as a batch script's step. Its own step and the script's have claims."""
        script = f"#!/bin/sh\n#SBATCH --gpu-priority=35\nsrun --overcommit -n 2 {' '.join(self.program)} </tmp/hold\n"
        (ROOT / "opt/test/job.sh").write_text(script)
        run(*user("mkfifo", "/tmp/hold"))
        job = run(*user("sbatch", "--parsable", "--partition", "high", SHARD, "--output=/tmp/job.log", "/opt/test/job.sh"))
        keeper = Program(*user("sh", "-c", "exec 3>/tmp/hold; echo open; read end; echo attach >&3; echo sent; read end"))
        expect(keeper.hear() == "open", "the step does not read")
        wait_for(lambda: {f"slurm-{job}.batch", f"slurm-{job}.0"} <= set(claims()), "both steps have claims")
        groups = {name: claim["group"] for name, claim in claims().items()}
        expect(groups == {f"slurm-{job}.batch": "", f"slurm-{job}.0": f"slurm-{job}.0"}, f"groups: {groups}")
        expect({claim["priority"] for claim in claims().values()} == {35}, f"priorities: {claims()}")
        keeper.ask("")
        wait_for(lambda: len(clients()) == 2, "both ranks are clients")
        expect({client["group"] for client in clients()} == {f"slurm-{job}.0"}, f"groups: {clients()}")
        run("scancel", job)
        keeper.end()
        self.no_claims("claims end after scancel")
        run(*user("rm", "/tmp/hold"))

    def a_priority_above_the_ceiling_is_limited(self):
        program, job = self.start("high", "--gpu-priority=90")
        expect(self.priority(job) == (50, "claim"), f"its priority: {self.of(job)}")
        expect(program.end() == 0, "the job failed")
        return self.runs_and_says(1, '--gpu-priority=90 is limited by partition "high"; the job has GPU priority 50',
                                  "--gpu-priority=90")

    def a_priority_below_it_is_given(self):
        for requested, value in (("high", 20), ("normal", 0), ("low", -20), ("-77", -77), ("50", 50)):
            program, job = self.start("high", f"--gpu-priority={requested}")
            expect(self.priority(job) == (value, "claim"), f"{requested} gives: {self.of(job)}")
            expect(program.end() == 0, "the job failed")
        self.runs_and_says(0, "", "--gpu-priority=high")

    def a_user_s_variables_change_nothing(self):
        program, job = self.start("low", environment=(
            "env", "XSCHEDD_PRIORITY=90", "SLURM_JOB_PARTITION=high", "SLURM_JOB_QOS=high", "SLURM_STEP_GPUS=",
            "SLURM_GPUS_ON_NODE=", "SLURM_SHARDS_ON_NODE=", "SLURM_CONF=/etc/slurm/slurm.conf", "PATH=/tmp:/usr/bin:/bin"))
        expect(self.priority(job) == (-20, "claim"), f"its priority: {self.of(job)}")
        expect(program.end() == 0, "the job failed")
        said = run(*srun("low", SHARD, "--job-name=x Partition=high QOS=high", "--comment=|high|", "--gpu-priority=50",
                         "sh", "-c", "echo $LD_PRELOAD", environment=("env", "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libm.so.6")))
        expect("the job has GPU priority -20" in said, f"its log: {said}")
        expect(f"{self.shim}:/usr/lib/x86_64-linux-gnu/libm.so.6" in said, f"its preload: {said}")

    def a_wrong_option_is_one_line(self):
        said = self.runs_and_says(1, 'is not low, normal, high or a number from -100 to 100; the job has GPU priority 20',
                                  "--gpu-priority=urgent")
        submitted = run(*user("sbatch", "--wait", "--partition=high", "--gpu-priority=101", "--output=/tmp/log", "--wrap=true"))
        expect("--gpu-priority=101 is not low" in submitted, f"sbatch said: {submitted}")
        return said

    def memory_is_limited_by_the_partition(self):
        """Less can be asked for, and more where there is no limit."""
        for partition, options, limit in (("low", (), 24), ("low", ("--gpu-memory=8G",), 8), ("high", (), None),
                                          ("high", ("--gpu-memory=40G",), 40)):
            program, job = self.start(partition, *options)
            claim = claims()[f"slurm-{job}.0"]
            expect(claim["memory_limit_bytes"] == (limit and limit << 30), f"{partition} {options}: {claim}")
            expect(program.end() == 0, "the job failed")
        self.runs_and_says(1, '--gpu-memory=48G is limited by partition "low"; the job may have 24G of each GPU\'s memory',
                           "--gpu-memory=48G", partition="low")
        return self.runs_and_says(1, '--gpu-memory="much" is not a size such as 24G; the job has no limit', "--gpu-memory=much")

    def a_wrong_file_is_one_line(self):
        (ROOT / "etc/xschedd/slurm.toml").write_text("[partition.high]\npriority = 2000\n")
        said = self.runs_and_says(1, '/etc/xschedd/slurm.toml:2:12: "priority" = 2000 is out of range')
        self.write_limits()
        return said

    def a_wrong_setting_of_the_plugin_is_one_line(self):
        """In slurmd's log, where who wrote plugstack.conf looks; jobs run."""
        run("sed", "-i", "--follow-symlinks", "s/^optional .*xschedd-spank.*/& speed=9/", self.place.plugstack)
        run("systemctl", "restart", "slurmd")
        line = 'xschedd: plugstack.conf: "speed=9" is not a setting; it has no effect'
        wait_for(lambda: line in run("cat", "/var/log/slurm/slurmd.log"), "slurmd's log has the line")
        run("sed", "-i", "--follow-symlinks", "s/ speed=9$//", self.place.plugstack)
        run("systemctl", "restart", "slurmd")
        self.wait_for_slurm()

    def a_node_full_of_claims_is_one_line(self):
        run("sh", "-c", f"for i in $(seq {MAX_CLAIMS}); do xschedctl claim put full-$i --socket >&2 || exit 1; done")
        said = self.runs_and_says(1, "as many as xschedd keeps")
        run("sh", "-c", f"for i in $(seq {MAX_CLAIMS}); do xschedctl claim rm full-$i >&2 || exit 1; done")
        return said

    def a_daemon_that_hangs_is_one_line(self):
        run("systemctl", "kill", "--signal=STOP", "xschedd.service")
        said = self.runs_and_says(1, "took longer than 2000 ms")
        run("systemctl", "kill", "--signal=CONT", "xschedd.service")
        self.no_claims("no claim is left")
        return said

    def no_daemon_is_one_line(self):
        run("systemctl", "stop", *DAEMON)
        said = self.runs_and_says(1, "the job runs without a GPU priority", "--gpu-priority=30")
        run("systemctl", "start", *DAEMON)
        return said

    def no_xschedctl_is_one_line(self):
        run("mv", "/usr/bin/xschedctl", "/usr/bin/xschedctl.away")
        said = self.runs_and_says(1, "cannot run /usr/bin/xschedctl")
        run("mv", "/usr/bin/xschedctl.away", "/usr/bin/xschedctl")
        return said

    def no_controller_is_one_line(self):
        """A step within a job that has its allocation."""
        program = Program(*user("salloc", "--quiet", "--partition=high", SHARD, "sh"))
        job = program.ask("echo $SLURM_JOB_ID")
        begin = ("sh", "-c", f"{ENTER_SLURMD} && exec xschedctl slurm begin --job {job} --step 7 --uid 1000")
        run(*begin)
        expect(claims()[f"slurm-{job}.7"]["priority"] == 20, f"its claim: {claims()}")
        run("systemctl", "stop", "slurmctld")
        said = run(*begin)
        expect(claims()[f"slurm-{job}.7"]["priority"] == 0, f"its claim: {claims()}")
        expect(said.count("trouble ") == 1 and "squeue" in said, said)
        sync = run("xschedctl", "slurm", "sync", status=6)
        expect(f"slurm-{job}.7" in claims(), "without a controller, sync removes a claim")
        run("systemctl", "start", "slurmctld")
        wait_for(lambda: "slurm-" in run("xschedctl", "slurm", "sync", status=None), "sync gives the partition's priority")
        expect(claims()[f"slurm-{job}.7"]["priority"] == 20, f"its claim: {claims()}")
        program.end()
        wait_for(lambda: "removed" in run("xschedctl", "slurm", "sync", status=None), "sync removes it after the job's end")
        self.wait_for_slurm()
        return sync

    def a_slurmstepd_that_is_killed_leaves_no_claim(self):
        program, job = self.start("high")
        cgroup = claims()[f"slurm-{job}.0"]["cgroup"]
        run("pkill", "--signal=KILL", "--full", f"slurmstepd: .{job}.0.")
        run("scancel", job, status=None)
        program.end()
        self.end_processes(cgroup)
        self.end_of_claim(job)

    def a_requeued_job_has_one_claim(self):
        job = run(*user("sbatch", "--parsable", "--requeue", "--partition=high", SHARD, "--output=/tmp/job.log",
                        "--wrap=sleep 1000"))
        wait_for(lambda: set(claims()) == {f"slurm-{job}.batch"}, "the job has a claim")
        run("scontrol", "requeue", job)
        self.no_claims("the claim ends")
        run("scancel", job)

    def many_come_and_go(self):
        run("sh", "-c", f"for i in $(seq 20); do {' '.join(srun('low', SHARD, 'true'))} || exit 1; done")
        self.no_claims("no claim is left")
        wait_for(lambda: not run("sh", "-c", "find /sys/fs/cgroup -name 'xschedd_*'"), "no cgroup is left")

    def without_the_package_slurm_runs_as_before(self):
        self.place.remove()
        run("systemctl", "restart", "slurmd")
        self.wait_for_slurm()
        said = run(*srun("low", SHARD, "sh", "-c", "env; echo it ran"))
        expect("it ran" in said.splitlines() and "xsched" not in said, f"the job: {said}")
        expect("gpu-priority" not in run("srun", "--help"), "the option is there")
        self.place.install_again()
        expect("gpu-priority" in run("srun", "--help"), "the option has not come back")
        self.place.purge()
        left = run("find", "/etc", "-path", "/etc/slurm/*xschedd*", "-o", "-name", "slurm.toml*")
        expect(not left, f"files are left: {left}")

    STEPS = (prepare, a_job_without_gpus_is_untouched, a_step_has_the_claim_of_its_partition, the_low_partition_is_held,
             a_suspended_job_lets_go, scontrol_changes_live_priorities, a_restart_of_slurmd_changes_nothing,
             nor_does_a_daemon_that_is_killed, a_claim_ends_with_its_step, the_how_to_s_commands_work, ranks_are_one_group,
             a_priority_above_the_ceiling_is_limited, a_priority_below_it_is_given, a_user_s_variables_change_nothing,
             a_wrong_option_is_one_line, memory_is_limited_by_the_partition, a_wrong_file_is_one_line,
             a_wrong_setting_of_the_plugin_is_one_line,
             a_node_full_of_claims_is_one_line, a_daemon_that_hangs_is_one_line, no_daemon_is_one_line, no_xschedctl_is_one_line,
             no_controller_is_one_line, a_slurmstepd_that_is_killed_leaves_no_claim, a_requeued_job_has_one_claim,
             many_come_and_go, *slurm_latency.Latency.LATENCY_STEPS, *slurm_database.Database.DATABASE_STEPS,
             without_the_package_slurm_runs_as_before)


if __name__ == "__main__":
    sys.exit(run_steps(Fleet(slurm_place.PLACES[sys.argv[1]](), pathlib.Path(sys.argv[2]))))
