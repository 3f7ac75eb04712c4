"""A private Slurm on the machines of the network: its controller on the login machine, one node on
each other machine, its own configuration, key and directories below the scratch directory, and
nothing outside of it. Ends with the machines; the login machine's processes, which are among the
host's, are ended by their ids."""

import os
import shutil
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo", "squeue")
# A job that is queued again waits until its old credential is void, two minutes by default; and the
# controller looks for work every so many seconds.
CONFIG = """\
ClusterName=private
SlurmctldHost=login
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge_socket},cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=2,sched_min_interval=0
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
ReturnToService=2
KillWait=20
MinJobAge=300
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""
LIMIT_S = 60


def missing():
    """Returns what is not installed, or nothing."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class Slurm:
    def __init__(self, network, directory, names, cores):
        self.network, self.directory = network, directory
        self.servers = []
        directory.mkdir()
        (directory / "state").mkdir()
        self.socket = directory / "munge"
        self.config = directory / "slurm.conf"
        nodes = [f"NodeName={name} NodeAddr={network[name].address} CPUs={cores} State=UNKNOWN"
                 for name in names]
        self.config.write_text(CONFIG.format(directory=directory, munge_socket=self.socket,
                                             nodes="\n".join(nodes), names=",".join(names)))
        self.names = names

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in reversed(self.servers):
            if server.poll() is None:
                server.terminate()
        for server in self.servers:
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def serve(self, machine, *command):
        log = open(self.directory / "servers.log", "a")
        with log:
            self.servers.append(subprocess.Popen(machine.command(*command),
                                                 stdin=subprocess.DEVNULL, stdout=log,
                                                 stderr=subprocess.STDOUT, env=self.environment()))

    def environment(self):
        return ({key: value
                 for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH"))}
                | {"SLURM_CONF": str(self.config)})

    def start(self):
        key = self.directory / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))
        files = {"socket": self.socket, "key-file": key, "log-file": self.directory / "munged.log",
                 "pid-file": self.directory / "munged.pid",
                 "seed-file": self.directory / "munged.seed"}
        # --force: the scratch directory need not be as private as one that guards a real key.
        self.serve(self.network.login, "munged", "--foreground", "--force",
                   *(f"--{name}={path}" for name, path in files.items()))
        self.wait_until(self.socket.exists, "munged to start")
        self.serve(self.network.login, "slurmctld", "-D", "-f", self.config)
        for name in self.names:
            self.serve(self.network[name], "slurmd", "-D", "-N", name, "-f", self.config)
        self.wait_until(lambda: self.states().count("idle") == len(self.names),
                        "all nodes to be idle")

    def states(self):
        done = self.run("sinfo", "--noheader", "--Node", "--format", "%T", check=False)
        return done.split()

    def wait_until(self, condition, what, limit_s=LIMIT_S):
        end_s = time.monotonic() + limit_s
        while not condition():
            for server in self.servers:
                if server.poll() is not None:
                    raise RuntimeError(
                        f"{server.args[-1]} ended with {server.returncode}: {self.words()}")
            if time.monotonic() > end_s:
                raise RuntimeError(f"waited {limit_s} s for {what}: {self.words()}")
            time.sleep(0.1)

    def words(self):
        """The last that the servers have said."""
        logs = [*self.directory.glob("*.log")]
        return "".join(f"\n{log.name}:\n" + "\n".join(
            log.read_text(errors="replace").splitlines()[-15:]) for log in logs)

    def run(self, *command, check=True, **environment):
        done = subprocess.run(self.network.login.command(*command), capture_output=True, text=True,
                              env=self.environment() | environment)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}: "
                               f"{done.stderr.strip()}")
        return done.stdout
