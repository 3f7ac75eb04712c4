"""Tests of jobs that read their standard input from a file, and are restarted amid it."""

import os

from support import Job, must

LINES = 400
# Holds after 10 and after 20 lines until the test lets it go on.
SUMS = r"""
sum=0; read=0
while read -r line; do
  sum=$((sum + line)); read=$((read + 1))
  if [ "$read" = 10 ] || [ "$read" = 20 ]; then
    echo "$read"
    while [ ! -e "$TRANSPARENT_GATE.$read" ]; do sleep 0.01; done
  fi
done
echo "sum $sum"
"""
CLOSED = ["sh", "-c", 'exec "$@" <&-', "sh"]
COMMAND = ["sh", "-c", SUMS]
READ_BYTES = sum(len(f"{line}\n") for line in range(1, 11))  # until it holds for the first time


class Reader:
    """A job that reads `input`."""

    def __init__(self, place):
        self.place = place
        self.input = place.work / "input"
        self.input.write_text("".join(f"{line}\n" for line in range(1, LINES + 1)))
        for read in (10, 20):
            self.gate(read).unlink(missing_ok=True)

    def gate(self, read):
        return self.place.gate.with_name(f"{self.place.gate.name}.{read}")

    def start(self, given, *words):
        """With nothing open as standard input if `given` is None."""
        self.place.input = given or os.devnull
        job = Job(self.place, *words, under=CLOSED if given is None else ())
        self.place.input = os.devnull
        return job

    def launch(self):
        """A job that has read ten lines, and has a version of that."""
        job = self.start(self.input, "launch", "--name", "job", "--", *COMMAND)
        job.wait_for_lines(1)
        return job

    def is_checkpointed_and_killed(self, job):
        job.checkpoint()
        job.kill()

    def goes_on(self, first, second):
        """It is restarted from each hold with something as standard input."""
        self.is_checkpointed_and_killed(self.launch())
        job = self.start(first, "restart", "job")
        self.gate(10).touch()
        job.wait_for_lines(1)
        self.is_checkpointed_and_killed(job)
        job = self.start(second, "restart", "job")
        self.gate(20).touch()
        self.must_end(job, LINES * (LINES + 1) // 2)

    def must_end(self, job, total, warning=None):
        status, errors = job.wait()
        must(status == 0 and job.output().splitlines()[-1] == f"sum {total}",
             f"ended with {status} in place of {total}: {job.output()}{errors}")
        if warning is None:
            must(errors == "", f"it warns: {errors}")
        else:
            must(warning in errors, f"says nothing of {warning}: {errors}")

    def must_refuse(self, what):
        status, errors = self.start(os.devnull, "restart", "job").wait()
        must(status == 125 and str(self.input) in errors and what in errors,
             f"ended with {status}, and says nothing of {what}: {errors}")


def file_as_input(place, options):
    """It goes on where it was in the file, which the restart is given or opens itself."""
    del options
    file = place.work / "input"
    for first, second in ((file, file), (file, None), (None, os.devnull), (os.devnull, file)):
        Reader(place).goes_on(first, second)


def other_input(place, options):
    """What a restart is given in place of the file is taken, and a warning says so. A restart
    without the file is refused."""
    del options
    reader = Reader(place)
    reader.is_checkpointed_and_killed(reader.launch())
    content = reader.input.read_text()
    reader.input.write_text("1\n")
    reader.must_refuse("has 2 bytes")
    reader.input.unlink()
    reader.must_refuse("had read")
    other = place.root / "other"
    other.write_text("5000\n")
    reader.gate(10).touch()
    job = reader.start(other, "restart", "job")
    reader.must_end(job, 10 * 11 // 2 + 5000,
                    f"had read {READ_BYTES} bytes of {reader.input} as its standard input")
    reader.input.write_text(content)
    reader.gate(20).touch()
    reader.must_end(reader.start(os.devnull, "restart", "job"), LINES * (LINES + 1) // 2)


def nameless_input(place, options):
    """A file without a name, such as a long here-document, is part of the image."""
    del options
    reader = Reader(place)
    job = reader.launch()
    reader.input.unlink()
    reader.is_checkpointed_and_killed(job)
    reader.gate(10).touch()
    reader.gate(20).touch()
    reader.must_end(reader.start(os.devnull, "restart", "job"), LINES * (LINES + 1) // 2)


TESTS = {"file_as_input": file_as_input, "other_input": other_input,
         "nameless_input": nameless_input}
