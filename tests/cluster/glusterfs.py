"""A parallel file system: GlusterFS served by a machine of the network, two bricks in
directories of its own, mounted by the others over the bridge. Ends with its machine; the bricks
go with the scratch directory."""

import contextlib
import os
import shutil
import time

from machines import Network, Unavailable

VOLUME = "checkpoints"
# A server finds out that a client has lost its power, and lets go of the client's locks, after so
# many seconds of silence instead of the usual 42, and asks a client that has nothing to say this
# often instead of every 20.
SILENCE_S = 4
ASKS_EVERY_S = 1
STATE = ("/run", "/var/lib/glusterd", "/var/log/glusterfs")  # its own, and gone with the machine


def missing():
    """Returns what is not installed, or nothing."""
    return [name for name in ("glusterd", "gluster", "glusterfs", "mount.glusterfs")
            if shutil.which(name) is None]


def wait_for(attempt, limit_s=60):
    end_s = time.monotonic() + limit_s
    while True:
        try:
            return attempt()
        except RuntimeError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.2)


def serve(machine, directory):
    bricks = [directory / f"brick{number}" for number in range(2)]
    for brick in bricks:
        brick.mkdir(parents=True)
    for path in STATE:
        machine.run("mkdir", "-p", path)
        machine.run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", path)
    machine.run("mkdir", "-p", "/run/gluster", "/var/lib/glusterd/groups")
    machine.run("glusterd", "--log-level", "WARNING")
    names = [f"{machine.name}:{brick}" for brick in bricks]
    wait_for(lambda: machine.run("gluster", "--mode=script", "volume", "info"))
    machine.run("gluster", "--mode=script", "volume", "create", VOLUME, *names, "force")
    for key, value in {"tcp-user-timeout": SILENCE_S, "keepalive-time": ASKS_EVERY_S,
                       "keepalive-interval": ASKS_EVERY_S}.items():
        machine.run("gluster", "--mode=script", "volume", "set", VOLUME, f"server.{key}", value)
    machine.run("gluster", "--mode=script", "volume", "start", VOLUME)


def mount(machine, server, path):
    # The client's log goes there.
    machine.run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", "/var/log/glusterfs")
    wait_for(lambda: machine.run("mount", "-t", "glusterfs", f"{server.name}:/{VOLUME}", path))


@contextlib.contextmanager
def mounted(path, place):
    """A machine that has it mounted at this directory, with the bricks in the directory `place`;
    both end with the context. Unavailable if it cannot be had here."""
    if os.getuid() != 0:
        raise Unavailable("needs root, to make machines of namespaces")
    if missing():
        raise Unavailable(
            f"not installed: {', '.join(missing())}; tools/install-packages cluster does that")
    with Network(place, ["storage", "client"]) as network:
        try:
            serve(network.power_on("storage"), place / "bricks")
            client = network.power_on("client")
            mount(client, network["storage"], path)
        except RuntimeError as error:
            raise Unavailable(f"GlusterFS cannot be started: {error}") from None
        yield client
