"""Programs of several processes that serve each other or a terminal, all in the job."""

import glob
import os
import shlex
import shutil
import signal

import nodes
from support import Job, Scenario, Skipped, must, until

STEPS = "for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do"
WAIT = "while [ $i = 15 ] && [ ! -e $TRANSPARENT_GATE ]; do sleep 0.02; done; sleep 0.02"

SQL = f"""
set -e
rm -rf data
initdb -D data -A trust -N > /dev/null
pg_ctl -D data -l server.log -o "-k $PWD -c listen_addresses=''" -w start > /dev/null
{STEPS}
  [ $i != 0 ] || echo "create table t (k serial primary key, v int);"
  echo "insert into t (v) select $i * 7 + n from generate_series(1, 50) n;"
  echo "select $i, count(*), sum(v), sum(k) from t;"
  {WAIT}
done | psql -h "$PWD" -qAt postgres
pg_ctl -D data -m fast -w stop > /dev/null
"""


def server_and_client(place, options):
    """PostgreSQL with all its processes, and a client that stays connected."""
    del options
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not folders or shutil.which("psql") is None:
        raise Skipped("the machine has no PostgreSQL")
    if place.user == 0 and os.geteuid() == 0:
        return  # the server does not run as root
    place.settings["PATH"] = folders[-1] + ":" + os.environ["PATH"]
    Scenario(place, ["sh", "-c", SQL]).all()


TYPED = f"""
export TERM=xterm
unset TMUX
tmux -S "$PWD/door" -f /dev/null new-session -d -x 60 -y 20 "/usr/bin/python3 -q"
{STEPS}
  tmux -S "$PWD/door" send-keys "print('has', $i, sum(range(30 * $i)))" Enter
  until tmux -S "$PWD/door" capture-pane -p | grep "^has $i "; do sleep 0.02; done
  {WAIT}
done
tmux -S "$PWD/door" kill-server
"""


def multiplexer(place, options):
    """An interactive program on a terminal of tmux, whose server, keys and screen are all in the
    job."""
    del options
    if shutil.which("tmux") is None:
        raise Skipped("the machine has no tmux")
    Scenario(place, ["sh", "-c", TYPED], 4).all()


# A program that is killed leaves the terminal as it has set it.
SESSION = """
"$0" launch --name job -- /usr/bin/python3 -q
status=$?
for number in 1 2; do
  stty sane
  printf '\\nit ended with %s\\n' $status
  "$0" restart job
  status=$?
done
printf '\\nat last it ended with %s\\n' $status
sleep 1000
"""


class Screen:
    """A terminal of tmux, outside of the job, on which `launch` and `restart` run."""

    def __init__(self, place):
        self.place = place
        self.door = place.root / "door"
        self.tmux("new-session", "-d", "-x", "120", "-y", "40",
                  shlex.join(["sh", "-c", SESSION, str(place.command)]))

    def tmux(self, *words):
        status, output, errors = self.place.run(["tmux", "-S", self.door, "-f", "/dev/null",
                                                 *words])
        must(status == 0, f"tmux {words}: {output}{errors}")
        return output

    def type(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def wait_for(self, line):
        def text():
            return self.tmux("capture-pane", "-p")

        until(lambda: line in text().splitlines(), f"no line {line!r} on the screen: {text()}")

    def first_process(self):
        """The job's first process."""
        agents = nodes.children_of(int(self.tmux("display-message", "-p", "#{pane_pid}")))
        must(len(agents) == 1, f"the screen has the processes {agents}")
        return nodes.children_of(agents[0])[0]


def at_a_screen(place, options):
    """An interactive program on the terminal of `launch` and of `restart`."""
    del options
    if shutil.which("tmux") is None:
        raise Skipped("the machine has no tmux")
    screen = Screen(place)
    try:
        screen.wait_for(">>>")
        screen.type("x = 41; 'set'")
        screen.wait_for("'set'")
        for number in (42, 43):
            status, output, errors = place.verb("checkpoint", "job")
            must(status == 0, f"no checkpoint: {output}{errors}")
            os.kill(screen.first_process(), signal.SIGKILL)
            screen.wait_for("it ended with 137")
            screen.tmux("clear-history")
            screen.type("x += 1; ('has', x)")
            screen.wait_for(f"('has', {number})")
            screen.tmux("send-keys", "C-l")  # which clears the screen
        screen.type("exit(5)")
        screen.wait_for("at last it ended with 5")
    finally:
        screen.tmux("kill-server")


TESTS = {"server_and_client": server_and_client, "multiplexer": multiplexer,
         "at_a_screen": at_a_screen}
