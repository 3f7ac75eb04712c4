"""Programs as they are packaged, and what they are given to do: they print a line a step, and wait
for a gate at one of the last steps so that they cannot end before they were disturbed."""

import pathlib
import shutil
import subprocess

from support import is_open_mpi

WAIT_IN_PYTHON = (
    "while i == 15 and not os.path.exists(os.environ['TRANSPARENT_GATE']): time.sleep(0.01)")

NUMPY = f"""
import concurrent.futures, os, time
import numpy as np
field = np.arange(160000, dtype=float).reshape(400, 400) % 13
def part(k):
    return float((field[k * 100:(k + 1) * 100] @ field)[:, ::7].sum())
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for i in range(20):
        total = sum(pool.map(part, range(4)))
        field = (field * 1.5 + total) % 17
        print(i, int(total), flush=True)
        time.sleep(0.01)
        {WAIT_IN_PYTHON}
"""

WORKERS = f"""
import multiprocessing, os, time
from multiprocessing import shared_memory
def work(pair):
    name, k = pair
    memory = shared_memory.SharedMemory(name)
    memory.buf[k] = (memory.buf[k] * 3 + k) % 251
    value = memory.buf[k]
    memory.close()
    return value
if __name__ == '__main__':
    memory = shared_memory.SharedMemory(create=True, size=65536)
    with multiprocessing.Pool(3) as pool:
        for i in range(20):
            print(i, sum(pool.map(work, [(memory.name, k) for k in range(12)])), flush=True)
            time.sleep(0.01)
            {WAIT_IN_PYTHON}
    memory.close()
    memory.unlink()
"""

DATABASE = f"""
import os, sqlite3, time
store = sqlite3.connect('store.db')
store.execute('drop table if exists t')
store.execute('create table t (k integer primary key, v integer)')
for i in range(20):
    store.executemany('insert into t (v) values (?)', [(i * 7 + j,) for j in range(50)])
    store.commit()
    print(i, store.execute('select count(*), sum(v) from t').fetchone(), flush=True)
    time.sleep(0.01)
    {WAIT_IN_PYTHON}
"""

RANKS = f"""
import os, time
from mpi4py import MPI
world = MPI.COMM_WORLD
value = world.rank
for i in range(20):
    value = (sum(world.allgather(value)) * 3 + world.rank) % 10007
    if world.rank == 0:
        print(i, value, flush=True)
        {WAIT_IN_PYTHON}
    time.sleep(0.01)
"""

NODE = """
const fs = require('fs');
const { Worker } = require('worker_threads');
const worker = new Worker(`const { parentPort } = require('worker_threads');
  parentPort.on('message', (n) => parentPort.postMessage(n * n % 9973));`, { eval: true });
let i = 0, sum = 1;
worker.on('message', (value) => {
  sum = (sum * 31 + value) % 1000003;
  console.log(i, sum);
  if (++i === 20) { worker.terminate(); return; }
  const again = () => {
    if (i === 16 && !fs.existsSync(process.env.TRANSPARENT_GATE)) setTimeout(again, 10);
    else worker.postMessage(sum);
  };
  setTimeout(again, 10);
});
worker.postMessage(7);
"""

JAVA = """
import java.io.File;
import java.util.concurrent.*;
public class Steps {
  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(3);
    long sum = 1;
    for (int i = 0; i < 20; ++i) {
      final long from = sum;
      Future<Long> one = pool.submit(() -> from * 31 % 10007);
      Future<Long> other = pool.submit(() -> from * 17 % 9973);
      sum = one.get() + other.get();
      System.out.println(i + " " + sum + " " + new int[100000].length);
      Thread.sleep(10);
      while (i == 15 && !new File(System.getenv("TRANSPARENT_GATE")).exists()) Thread.sleep(10);
    }
    pool.shutdown();
  }
}
"""

GO = """
package main

import ("fmt"; "os"; "time")

func main() {
	requests, answers := make(chan int), make(chan int)
	for k := 0; k < 4; k++ {
		go func(k int) { for n := range requests { answers <- n*31%10007 + k*0 } }(k)
	}
	sum := 1
	for i := 0; i < 20; i++ {
		for k := 0; k < 8; k++ { go func(k int) { requests <- sum*k + i }(k) }
		next := 0
		for k := 0; k < 8; k++ { next += <-answers }
		sum = next % 100003
		fmt.Println(i, sum)
		time.Sleep(10 * time.Millisecond)
		for i == 15 {
			if _, failed := os.Stat(os.Getenv("TRANSPARENT_GATE")); failed == nil { break }
			time.Sleep(10 * time.Millisecond)
		}
	}
}
"""

PERL = """
$| = 1;
my %seen;
for my $i (0 .. 19) {
  $seen{$_ * 7 % 101} += $i for 1 .. 50;
  my $sum = 0;
  $sum += $_ * $seen{$_} for keys %seen;
  print "$i $sum\\n";
  select undef, undef, undef, 0.01;
  select undef, undef, undef, 0.01 while $i == 15 && !-e $ENV{TRANSPARENT_GATE};
}
"""


def python(source):
    return lambda place, options: ["/usr/bin/python3", "-c", source]


MPICH = "/usr/lib/x86_64-linux-gnu/libmpich.so.12"


def make_python_with_mpich(home):
    """Makes a Python of its own with mpi4py of the Python package index. That looks for MPICH by a
    name that Debian has changed."""
    (home / "lib").mkdir(parents=True)
    (home / "lib" / "libmpi.so.12").symlink_to(MPICH)
    for words in (["/usr/bin/python3", "-m", "venv", home],
                  [home / "bin" / "pip", "install", "--quiet", "mpi4py>=4.1"]):
        if subprocess.run(words, check=False).returncode != 0:
            return


def ranks(place, options):
    if not options.mpirun:
        return None
    interpreter = pathlib.Path("/usr/bin/python3")
    if not is_open_mpi(options.mpirun):
        interpreter = options.fetched / "bin" / "python"
        place.settings |= {"LD_LIBRARY_PATH": str(options.fetched / "lib"),
                           "MPI4PY_MPIABI": "mpich"}
    has_it = interpreter.exists() and place.run([interpreter, "-c", "import mpi4py"])[0] == 0
    return [options.mpirun, "-n", "2", interpreter, "-c", RANKS] if has_it else None


def found(name, *words):
    """The command, if there is such a program."""
    def command(place, options):
        del place, options
        return [shutil.which(name), *words] if shutil.which(name) else None

    return command


def java(place, options):
    del options
    if shutil.which("javac") is None:
        return None
    (place.root / "Steps.java").write_text(JAVA)
    subprocess.run(["javac", "Steps.java"], cwd=place.root, check=True)
    return [shutil.which("java"), "-cp", place.root, "Steps"]


def go(place, options):
    del options
    compiler = shutil.which("go") or shutil.which("go", path="/usr/lib/go/bin:/usr/local/go/bin")
    if compiler is None:
        return None
    (place.root / "steps.go").write_text(GO)
    subprocess.run([compiler, "build", "-o", "steps", "steps.go"], cwd=place.root, check=True,
                   env=place.environment() | {"GOCACHE": str(place.root / "cache"),
                                              "GOFLAGS": "-mod=mod",
                                              "PATH": str(pathlib.Path(compiler).parent)
                                              + ":/usr/bin:/bin"})
    return [place.root / "steps"]


# A function of place and options each, which returns a command, or None if the machine has no such
# program.
COMMANDS = {"numpy": python(NUMPY), "workers": python(WORKERS), "database": python(DATABASE),
            "ranks": ranks,
            "node": found("node", "-e", NODE), "java": java, "go": go,
            "perl": found("perl", "-e", PERL)}
