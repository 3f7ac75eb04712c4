#!/usr/bin/env python3
"""The code that is put into processes jumps nowhere but within itself, and names no address."""

import re
import subprocess
import sys


def main():
    program = sys.argv[1]
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    places = {name: int(value, 16)
              for value, _, name in re.findall(r"^(\w+) (\w) (\w+)$", symbols, re.MULTILINE)}
    begin, end = places["diapause_call_table_begin"], places["diapause_call_table_end"]
    code = subprocess.run(
        ["objdump", "-D", "-j", ".rodata", f"--start-address={begin}", f"--stop-address={end}",
         program],
        capture_output=True, text=True, check=True).stdout
    instructions = re.findall(r"^\s+([0-9a-f]+):\t[0-9a-f ]+\t(.+)$", code, re.MULTILINE)
    assert len(instructions) > 20, code
    calls = 0
    for _, text in instructions:
        operation, _, operands = text.partition(" ")
        assert operation not in ("call", "ret", "push", "pop", "int3"), f"needs a stack: {text}"
        assert "rip" not in operands and "rsp" not in operands and "%fs" not in operands, (
            f"needs its surroundings: {text}")
        if operation.startswith("j"):
            target = int(re.match(r"\s*([0-9a-f]+)", operands)[1], 16)
            assert begin <= target < end, f"leaves the code: {text}"
        calls += operation == "syscall"
    assert calls == 2, "it does the calls of its table, and one of its own"


main()
