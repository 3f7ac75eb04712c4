"""Jobs that are restarted on machines with other addresses: their processes go on knowing their
nodes by the addresses that these had. The machines have networks of their own, which needs root."""

import contextlib
import os
import pathlib
import signal
import sys

import nodes
from support import Job, Scenario, Skipped, one_on_each_node

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from machines import Network, Unavailable  # noqa: E402

NAMES = ["alpha", "beta", "gamma", "delta"]


@contextlib.contextmanager
def as_root(place):
    """Only root may enter a machine; the job's user comes behind."""
    user, place.user = place.user, 0
    yield
    place.user = user


class Machines:
    """Machines on which jobs of a place run."""

    def __init__(self, place, network):
        self.place = place
        self.network = network
        for name in NAMES:
            network.power_on(name)
        self.shell = network.remote_shell()

    def address(self, name):
        return self.network[name].address

    def job(self, hosts, *words):
        """A job whose first node is the first host."""
        user = ["setpriv", f"--reuid={self.place.user}", f"--regid={self.place.user}",
                "--clear-groups"] if self.place.user else []
        verb, *rest = words
        options = ["--hosts", ",".join(hosts), "--remote-shell", self.shell]
        # Of its machine, the first agent has name and network only: it sees the first processes of
        # all machines, by which the remote shell finds them.
        enter = ["nsenter", "-t", self.network[hosts[0]].first, "-u", "-n", "--"]
        with as_root(self.place):
            return Job(self.place, verb, *(options if len(hosts) > 1 else []), *rest,
                       under=[*enter, *user])

    def lose(self, job, hosts):
        """All of the job's machines; they are there again, without what they had."""
        agent = job.process.pid
        nodes_here = [child for child in nodes.children_of(agent) if nodes.is_agent(child)]
        victims = [child for node in [agent, *nodes_here] for child in nodes.children_of(node)]
        for victim in {*victims, agent}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        names = dict.fromkeys(hosts)
        self.network.power_off(*names)
        job.wait()
        for name in names:
            self.network.power_on(name)
        self.shell = self.network.remote_shell()


@contextlib.contextmanager
def machines(place):
    try:
        with Network(place.root, NAMES) as network:
            yield Machines(place, network)
    except (Unavailable, FileNotFoundError) as why:
        raise Skipped(str(why)) from None


def restarted(scenario, all_hosts, there):
    """Launched on the first hosts, lost after a checkpoint, and restarted on the next ones."""
    scenario.place.gate.unlink(missing_ok=True)
    job = there.job(all_hosts[0], "launch", "--name", "job", "--", *scenario.command)
    job.wait_for_lines(scenario.lines)
    for hosts, next_hosts in zip(all_hosts, all_hosts[1:]):
        job.checkpoint("--level", "4")
        there.lose(job, hosts)
        killed, job = job, there.job(next_hosts, "restart", "job")
        scenario.wait_for_more(job, killed)
    scenario.ends_well(job, job.output, begins_anywhere=True)


def on_two_nodes(name):
    def test(place, options):
        if place.user != 0:
            return  # the remote shell of these machines is root's
        with machines(place) as there:
            scenario = Scenario(place, [place.own_copy(options.programs / name)], lines=3)
            first, second = there.address("alpha"), there.address("beta")
            place.settings |= {"NAMES_FIRST": first, "NAMES_SECOND": second, "NAMES_HOST": "beta",
                               "ACROSS_ADDRESS": first, "ACROSS_HOST": "beta"}
            restarted(scenario, [["alpha", "beta"], ["gamma", "delta"], ["delta", "alpha"],
                                 ["beta", "alpha"], ["gamma", "gamma"], ["alpha", "beta"]], there)

    return test


def other_machine(place, options):
    """A job of one node that uses the address of its machine."""
    with machines(place) as there:
        scenario = Scenario(place, [place.own_copy(options.programs / "names")], lines=3)
        place.settings |= {"NAMES_FIRST": there.address("alpha"),
                           "NAMES_SECOND": there.address("alpha")}
        restarted(scenario, [["alpha"], ["beta"], ["gamma"], ["alpha"]], there)


def mpi_addresses(place, options):
    """Ranks that connect to each other when the nodes of both have other addresses."""
    if place.user != 0:
        return
    with machines(place) as there:
        command = [options.mpirun, "-n", "4", place.own_copy(options.programs / "partners")]
        scenario = Scenario(place, command, lines=3)
        scenario.command = [*command[:3], *one_on_each_node(options.mpirun), command[3]]
        restarted(scenario, [["alpha", "beta"], ["gamma", "delta"], ["beta", "beta"]], there)


TESTS = {"mpi_addresses": mpi_addresses, "new_addresses": on_two_nodes("names"),
         "across_addresses": on_two_nodes("across"), "other_machine": other_machine}
