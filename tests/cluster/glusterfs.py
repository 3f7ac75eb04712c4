"""A parallel file system: GlusterFS served by a machine of the network, two bricks in directories of its own, mounted
by the others over the bridge. Ends with its machine; the bricks go with the scratch directory."""

import shutil
import time

VOLUME = "checkpoints"
# A server finds out that a client has lost its power, and lets go of the client's locks, after so
# many seconds of silence instead of the usual 42, and asks a client that has nothing to say this
# often instead of every 20.
SILENCE_S = 4
ASKS_EVERY_S = 1
STATE = ("/run", "/var/lib/glusterd", "/var/log/glusterfs")  # its own, and gone with the machine


def missing():
    """What is not installed, or nothing."""
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
    machine.run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", "/var/log/glusterfs")  # the client's log
    wait_for(lambda: machine.run("mount", "-t", "glusterfs", f"{server.name}:/{VOLUME}", path))
