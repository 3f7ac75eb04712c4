"""Tests of what users are told whose job cannot be checkpointed."""

import os
import signal
import struct
import subprocess

import nodes
from support import Job, Skipped, must, until

WAITS = 'echo ready; while [ ! -e "$TRANSPARENT_GATE" ]; do sleep 0.01; done'


def agentless(place, options):
    """The agent of a job was killed: who asks for a checkpoint is told so at once."""
    del options
    for words in (["launch", "--name", "job", "--", "sh", "-c", WAITS], ["restart", "job"]):
        job = Job(place, *words)
        if words[0] == "launch":
            job.wait_for_lines(1)
        job.checkpoint()
        first = nodes.children_of(job.process.pid)[0]
        job.process.kill()
        job.process.wait()
        status, output, errors = place.verb("checkpoint", "job")
        must(status != 0 and "the agent was killed" in errors,
             f"ended with {status}: {output}{errors}")
        os.kill(first, signal.SIGKILL)
        until(lambda process=first: not nodes.children_of(process), "the job does not end")


def from_inside(place, options):
    """A job that asks for a checkpoint of itself is told to let others do so."""
    del options
    script = f"'{place.command}' checkpoint job 2>&1; echo status $?"
    status, output, errors = place.verb("launch", "--name", "job", "--", "sh", "-c", script)
    must(status == 0 and "from outside of the job" in output and "status 0" not in output,
         f"ended with {status}: {output}{errors}")


def make_program_of_32_bits(path):
    """A program that waits for a signal again and again."""
    code = bytes([0xb8, 29, 0, 0, 0,  # mov $pause, %eax
                  0xcd, 0x80,         # int $0x80
                  0xeb, 0xf7])        # jmp back
    begin, headers, intel, executable = 0x8048000, 52 + 32, 3, 2
    header = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", executable, intel, 1, begin + headers, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    size = headers + len(code)
    segment = struct.pack("<IIIIIIII", 1, 0, begin, begin, size, size, 5, 4096)
    path.write_bytes(header + segment + code)
    path.chmod(0o755)


def of_32_bits(place, options):
    """A 32-bit program is refused as such, and runs on."""
    del options
    program = place.work / "old"
    make_program_of_32_bits(program)
    try:
        trial = subprocess.Popen([program])
    except OSError as why:
        raise Skipped("the kernel runs no 32-bit programs") from why
    trial.kill()
    trial.wait()
    has_begun = f'[ "$(readlink /proc/$!/exe)" = "{program}" ]'
    script = (f"'{program}' & until {has_begun}; do sleep 0.01; done; {WAITS}; kill -USR1 $!; "
              "wait $!; echo ended with $?")
    job = Job(place, "launch", "--name", "job", "--", "sh", "-c", script)
    job.wait_for_lines(1)
    for options_of_verb in ([], ["--check"]):
        status, output, errors = place.verb("checkpoint", "job", *options_of_verb)
        must(status != 0 and "(old) is a 32-bit program, which cannot be checkpointed" in errors,
             f"ended with {status}: {output}{errors}")
    place.gate.touch()
    status, errors = job.wait()
    must(status == 0 and f"ended with {128 + signal.SIGUSR1}\n" in job.output(),
         f"it does not run on: {status} {job.output()}{errors}")


TESTS = {"agentless": agentless, "from_inside": from_inside, "of_32_bits": of_32_bits}
