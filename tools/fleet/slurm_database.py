"""QOS, accounts and Slurm's own priority as limits: Slurm's database (slurmdbd on MariaDB) on the same machine, with an account that may
use the QOS "urgent" and one that may not.

Thread rule: main thread.
"""

from machine import ROOT, expect, run, wait_for
from slurm_place import INSTALL

SETTINGS = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStorageEnforce=associations,qos
PriorityType=priority/basic
"""
# Newer servers refuse what Slurm's transactions do. The root shares the machine's network.
SERVER = "[mariadbd]\nloose_innodb_snapshot_isolation=OFF\nskip_networking\n"
DATABASE = """
AuthType=auth/munge
DbdHost=localhost
DbdPort={port}
SlurmUser={controller}
LogFile=/var/log/slurm/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={controller}
"""
# What `sacctmgr add` gets.
ASSOCIATIONS = (("cluster", "test"), ("qos", "urgent"), ("account", "lab"), ("account", "guests"),
                ("user", "alice", "account=lab", "qos=normal,urgent"), ("user", "alice", "account=guests"))
# A job to which nobody has given a priority in Slurm is above the last row there.
LIMITS = """
[qos.urgent]
priority = 40
ceiling = 45
memory = "16G"
[account.guests]
ceiling = 0
[[by_slurm_priority]]
at_least = 2000
priority = 5
[[by_slurm_priority]]
at_least = 3000
priority = 45
[[by_slurm_priority]]
at_least = 4000
priority = 10
"""


class Database:
    """Steps of slurm.Fleet, which has `start`, `sync`, `priority` and `runs_and_says`."""

    # ---- steps, in this order
    def slurm_gets_its_database(self):
        port, controller = self.free_ports()[0], self.place.controller
        run("sh", "-c", f"{INSTALL} slurmdbd mariadb-server")
        (ROOT / "etc/mysql/mariadb.conf.d/90-slurm.cnf").write_text(SERVER)
        run("systemctl", "restart", "mariadb")
        # Its root@localhost is the machine's root already.
        run("mariadb", "-e", "create database slurm_acct_db" + ("" if controller == "root" else
            f"; create user {controller}@localhost identified via unix_socket; grant all on slurm_acct_db.* to {controller}@localhost"))
        (ROOT / "etc/slurm/slurmdbd.conf").write_text(DATABASE.format(port=port, controller=controller))
        run("chown", controller, "/etc/slurm/slurmdbd.conf")
        run("chmod", "600", "/etc/slurm/slurmdbd.conf")
        with (ROOT / "etc/slurm/slurm.conf").open("a") as file:
            file.write(SETTINGS.format(port=port))
        run("systemctl", "restart", "slurmdbd")
        for name, *words in ASSOCIATIONS:
            wait_for(lambda which=name: "error" not in run("sacctmgr", "--noheader", "list", which, status=None), "slurmdbd answers")
            run("sacctmgr", "--immediate", "add", name, *words)
        # The database numbers the cluster anew, which a newer slurmctld takes for another's files.
        run("systemctl", "stop", "slurmctld")
        run("rm", "-f", "/var/lib/slurm/slurmctld/clustername")
        run("systemctl", "restart", "slurmctld", "slurmd")
        self.wait_for_slurm()
        return run("sacctmgr", "--noheader", "--parsable2", "list", "associations", "user=alice", "format=account,qos").replace("\n", " ")

    def a_qos_goes_before_the_partition(self):
        self.write_limits(LIMITS.partition("[[")[0])
        program, job = self.start("high", "--qos=urgent", "--account=lab")
        claim = self.claims()[f"slurm-{job}.0"]
        expect(self.priority(job) == (40, "claim"), f"its priority: {self.of(job)}")
        expect(claim["memory_limit_bytes"] == 16 << 30, f"its claim: {claim}")
        expect(program.end() == 0, "the job failed")
        self.runs_and_says(0, "", "--qos=urgent")
        return self.runs_and_says(1, '--gpu-priority=50 is limited by QOS "urgent"; the job has GPU priority 45', "--qos=urgent",
                                  "--gpu-priority=50")

    def an_account_limits_its_jobs(self):
        program, job = self.start("high", "--account=guests")
        expect(self.priority(job) == (0, "claim"), f"its priority: {self.of(job)}")
        expect(program.end() == 0, "the job failed")
        return self.runs_and_says(1, '--gpu-priority=30 is limited by account "guests"; the job has GPU priority 0', "--account=guests",
                                  "--gpu-priority=30")

    def a_user_s_variables_name_no_other_account(self):
        """Slurm refuses a QOS that is not the account's; the variables of a job say what its user likes."""
        said = run(*self.srun("high", "--account=guests", "--qos=urgent", "true"), status=None)
        expect("Invalid qos" in said, f"srun said: {said}")
        program, job = self.start("high", "--account=guests", environment=(
            "env", "SLURM_JOB_QOS=urgent", "SLURM_JOB_ACCOUNT=lab", "XSCHEDD_PRIORITY=50"))
        expect(self.priority(job) == (0, "claim"), f"its priority: {self.of(job)}")
        expect(program.end() == 0, "the job failed")

    def slurm_s_priority_of_a_live_job_changes_it(self):
        """Only operators change that of a running job."""
        self.write_limits(LIMITS)
        program, job = self.start("high")
        expect(self.priority(job) == (10, "claim"), f"its priority: {self.of(job)}")
        for slurm_priority, expected in ((3500, 45), (2000, 5), (1, 20)):
            run("scontrol", "update", f"JobId={job}", f"Priority={slurm_priority}")
            self.sync()
            expect(self.priority(job) == (expected, "claim"), f"with {slurm_priority}: {self.of(job)}")
        expect(program.end() == 0, "the job failed")

    def a_qos_of_a_job_that_waits_is_changed(self):
        """Slurm changes it for jobs that do not run yet; a running one is requeued."""
        self.write_limits(LIMITS.partition("[[")[0])
        job = run(*self.user("sbatch", "--parsable", "--requeue", "--partition=high", self.shard, "--output=/tmp/job.log",
                             "--wrap=sleep 1000"))
        name = f"slurm-{job}.batch"
        wait_for(lambda: name in self.claims(), "the job has a claim")
        expect(self.claims()[name]["priority"] == 20, f"its claim: {self.claims()}")
        said = run("scontrol", "update", f"JobId={job}", "QOS=urgent", status=None)
        run("scontrol", "requeuehold", job)
        self.no_claims("the claim ends")
        run("scontrol", "update", f"JobId={job}", "QOS=urgent")
        run("scontrol", "release", job)
        wait_for(lambda: name in self.claims(), "the job has a claim again")
        expect(self.claims()[name]["priority"] == 40, f"its claim: {self.claims()}")
        run("scancel", job)
        self.no_claims("the claim ends")
        return said

    DATABASE_STEPS = (slurm_gets_its_database, a_qos_goes_before_the_partition, an_account_limits_its_jobs,
                      a_user_s_variables_name_no_other_account, slurm_s_priority_of_a_live_job_changes_it,
                      a_qos_of_a_job_that_waits_is_changed)
