"""Machines made of namespaces: each has its own network stack, host name, processes, and memory
file system. All hang on one bridge, and nothing of them is seen outside. Killing the first process
of a machine is a loss of its power: its processes and what was in its memory are gone.

Needs root. A machine's /dev/shm is its own, with a directory for the temporary files of MPI's
launcher; all other directories are those of the host, so the build and the scratch directory
are shared as on a cluster.
"""

import pathlib
import signal
import subprocess
import time

NETWORK = "10.87.13.{}/24"
SUBNET = NETWORK.format(0)
MEMORY_BYTES = 256 << 20
FIRST_WORDS = """\
set -e
hostname {name}
mount --bind {hosts} /etc/hosts
mount -t tmpfs -o size={memory},mode=1777 tmpfs /dev/shm
mkdir /dev/shm/tmp
exec sleep infinity
"""


class Unavailable(Exception):
    """Says why there can be no machines here."""


def command_output(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: "
                           f"{(done.stdout + done.stderr).strip()}")
    return done.stdout


class Machine:
    OWN = ("--net", "--uts", "--ipc", "--mount", "--pid", "--mount-proc")

    def __init__(self, name, number, hosts):
        self.name = name
        self.address = NETWORK.format(number).partition("/")[0]
        words = FIRST_WORDS.format(name=name, hosts=hosts, memory=MEMORY_BYTES)
        # If the process that made it dies, the machine dies, too.
        self.keeper = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", *self.OWN,
                                        "--fork",
                                        "--kill-child", "sh", "-c", words],
                                       stdin=subprocess.DEVNULL)
        self.first = self.wait_for_first()

    def wait_for_first(self):
        """The process id, as the host counts, of the machine's first process once
        that has done its work."""
        children = pathlib.Path(f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children")
        end_s = time.monotonic() + 20
        while self.keeper.poll() is None and time.monotonic() < end_s:
            for pid in children.read_text().split():
                if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                    return int(pid)
            time.sleep(0.01)
        raise RuntimeError(f"machine {self.name} does not start")

    def command(self, *command):
        """The command that runs this one on the machine."""
        return [*self.shell(), *map(str, command)]

    def shell(self):
        return ["nsenter", "-t", str(self.first), "-m", "-u", "-i", "-n", "-p", "--"]

    def run(self, *command, check=True):
        return command_output(*self.command(*command), check=check)

    def join(self, switch, number):
        """Plugs it into the bridge of another machine."""
        port = f"port{number}"
        switch.run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns",
                   self.first)
        switch.run("ip", "link", "set", port, "master", "bridge", "up")
        self.set_up("eth0", number)

    def set_up(self, interface, number):
        self.run("ip", "address", "add", NETWORK.format(number), "dev", interface)
        self.run("ip", "link", "set", interface, "up")
        self.run("ip", "link", "set", "lo", "up")

    def kill(self):
        if self.keeper.poll() is None:
            # This kills the first process, too, and with it all others.
            self.keeper.send_signal(signal.SIGKILL)

    def wait_for_end(self):
        self.keeper.wait()
        while pathlib.Path(f"/proc/{self.first}").exists():
            time.sleep(0.01)


class LoginMachine(Machine):
    """Its processes are among the host's: a launcher there finds the first
    processes of the other machines."""

    OWN = ("--net", "--uts", "--ipc", "--mount")

    def shell(self):
        # Without a change of process ids nsenter becomes the command and does not stay as its
        # parent.
        return ["nsenter", "-t", str(self.first), "-m", "-u", "-i", "-n", "--"]


class Network:
    """A login machine with the bridge, from which jobs are started, and the others by name."""

    LOGIN = 1

    def __init__(self, work, names):
        self.work = work
        self.machines = {}
        self.numbers = {name: number for number, name in enumerate(["login", *names], self.LOGIN)}
        self.hosts = work / "hosts"
        lines = [f"{NETWORK.format(number).partition('/')[0]} {name}"
                 for name, number in self.numbers.items()]
        self.hosts.write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n")

    def __enter__(self):
        try:
            self.login = self.machines["login"] = LoginMachine("login", self.LOGIN, self.hosts)
            self.login.run("ip", "link", "add", "bridge", "type", "bridge")
            self.login.set_up("bridge", self.LOGIN)
        except (OSError, RuntimeError) as error:
            self.__exit__()
            raise Unavailable(f"cannot make machines of namespaces: {error}") from None
        return self

    def __exit__(self, *_):
        for machine in self.machines.values():
            machine.kill()
        for machine in self.machines.values():
            machine.wait_for_end()

    def __getitem__(self, name):
        return self.machines[name]

    def power_on(self, name):
        """A machine that has nothing in its memory."""
        machine = self.machines[name] = Machine(name, self.numbers[name], self.hosts)
        machine.join(self.login, self.numbers[name])
        return machine

    def power_off(self, *names):
        """All at once. The others hear nothing of it, as when a real machine loses its power: its
        connections are not closed, there is just no answer any more."""
        lost = [self.machines.pop(name) for name in names]
        for name in names:
            self.login.run("ip", "link", "delete", f"port{self.numbers[name]}")
        for machine in lost:
            machine.kill()
        for machine in lost:
            machine.wait_for_end()

    def remote_shell(self):
        """Writes a program that stands for ssh: `<it> <machine> <command>`. A launcher that runs on
        the login machine uses it."""
        cases = "\n".join(f'  {name}) exec {" ".join(machine.shell())} sh -c "$*" ;;'
                          for name, machine in self.machines.items())
        script = self.work / "remote-shell"
        script.write_text(f'#!/bin/sh\nname=$1\nshift\ncase "$name" in\n{cases}\nesac\nexit 255\n')
        script.chmod(0o700)
        return script
