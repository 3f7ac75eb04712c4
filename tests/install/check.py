#!/usr/bin/env python3
"""Installs a build and uses what was installed as a user would, outside of the source tree."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
SOURCES = {"serial": {"c": "minimal.c", "cpp": "minimal.cpp"}, "mpi": {"c": "minimal_mpi.c", "cpp": "minimal_mpi.c"}}
RANKS = "4"


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def version():
    return re.search(r"project\(diapause VERSION (\S+)", (REPOSITORY / "CMakeLists.txt").read_text())[1]


def promised_files(libdir, mpi):
    names = ["diapause", "diapause_mpi"] if mpi else ["diapause"]
    files = {"bin/diapause", "share/man/man1/diapause.1", "include/diapause/diapause.hpp"}
    files |= {f"include/diapause/{name}.h" for name in names}
    files |= {f"{libdir}/pkgconfig/{name}.pc" for name in names}
    short = ".".join(version().split(".")[:2])
    files |= {f"{libdir}/lib{name}.so{end}" for name in names for end in ("", f".{short}", f".{version()}")}
    files |= {f"share/diapause/profiles/{profile.name}" for profile in REPOSITORY.glob("profiles/*.toml")}
    files |= {f"share/diapause/{path.relative_to(REPOSITORY)}" for path in REPOSITORY.glob("python/**/*.*")
              if path.suffix in (".py", ".csv")}
    package = ["Config", "ConfigVersion", "Targets", "Targets-build"] + (["MpiTargets", "MpiTargets-build"] if mpi else [])
    return files | {f"{libdir}/cmake/diapause/diapause{name}.cmake" for name in package}


def files(arguments):
    """Installs to one place and moves it to another: what was installed must not know where it was put."""
    prefix = arguments.prefix
    first = prefix.with_name(prefix.name + ".first")
    for folder in (prefix, first):
        shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "--install", arguments.build, "--prefix", first)
    first.rename(prefix)
    found = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()}
    # The package has one file a build type; its name is no promise.
    found = {re.sub(r"(Targets)-(?!build)\w+\.cmake$", r"\1-build.cmake", path) for path in found}
    promised = promised_files(arguments.libdir, arguments.mpi)
    for path in sorted(promised - found):
        print(f"missing: {path}")
    for path in sorted(found - promised):
        print(f"not promised: {path}")
    return 0 if found == promised else 1


def declared_functions(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    return set(re.findall(r"DIAPAUSE_API\s[^;(]*?\b(diapause_\w+)\s*\(", text))


def exported_symbols(library):
    listing = run("nm", "--dynamic", "--defined-only", "--format=posix", library, capture_output=True).stdout
    return {line.split()[0].split("@")[0] for line in listing.splitlines()}


def exports(arguments):
    """Each library exports what its header declares, and nothing else gets into the program's name space."""
    names = ["diapause", "diapause_mpi"] if arguments.mpi else ["diapause"]
    declared = {n: declared_functions(arguments.prefix / f"include/diapause/{n}.h") for n in names}
    exported = {n: exported_symbols(arguments.prefix / arguments.libdir / f"lib{n}.so") for n in names}
    broken = 0
    for name in names:
        promised = declared["diapause"] | declared[name]  # diapause_mpi.h includes diapause.h
        for symbol in sorted(exported[name] - promised):
            print(f"lib{name}.so exports {symbol}, which {name}.h does not declare")
            broken = 1
        for function in sorted(promised - exported[name]):
            print(f"{name}.h declares {function}, which lib{name}.so does not export")
            broken = 1
    return broken if all(declared.values()) else 1


def command(arguments):
    program = arguments.prefix / "bin/diapause"
    output = run(program, "--version", capture_output=True).stdout
    print(output)
    return 0 if version() in output else 1


def pkg_config(arguments, *options):
    path = arguments.prefix / arguments.libdir / "pkgconfig"
    done = run("pkg-config", *options, env={"PKG_CONFIG_PATH": str(path), "PATH": "/usr/bin:/bin"}, capture_output=True)
    return done.stdout.split()


def build_with_pkg_config(arguments, source, work):
    package = "diapause_mpi" if arguments.kind == "mpi" else "diapause"
    compiler = {"c": arguments.cc, "cpp": arguments.cxx}[arguments.language]
    if arguments.kind == "mpi":
        variable = {"c": "mpicc", "cpp": "mpicxx"}[arguments.language]
        compiler = pkg_config(arguments, f"--variable={variable}", package)[0]
    standard = {"c": "-std=gnu11", "cpp": "-std=c++20"}[arguments.language]
    libdir = pkg_config(arguments, "--variable=libdir", package)[0]
    flags = pkg_config(arguments, "--cflags", "--libs", package)
    run(compiler, standard, source, "-o", work / "program", *flags, f"-Wl,-rpath,{libdir}", "-lm")
    return work / "program"


def build_with_find_package(arguments, source, work):
    shutil.copy(REPOSITORY / "tests/install/user/CMakeLists.txt", work)
    language, compiler = {"c": ("C", arguments.cc), "cpp": ("CXX", arguments.cxx)}[arguments.language]
    run("cmake", "-G", "Ninja", "-S", work, "-B", work / "build", f"-DCMAKE_{language}_COMPILER={compiler}",
        f"-DLANGUAGE={language}", f"-DKIND={arguments.kind}", f"-DSOURCE={source.name}",
        f"-DCMAKE_PREFIX_PATH={arguments.prefix}")
    run("cmake", "--build", work / "build")
    return work / "build/program"


def program(arguments):
    """Builds an example on the prefix and lets it crash and go on."""
    with tempfile.TemporaryDirectory(prefix="diapause-user.") as folder:
        work = Path(folder)
        source = work / f"program.{arguments.language}"
        shutil.copy(EXAMPLES / SOURCES[arguments.kind][arguments.language], source)
        build = {"find_package": build_with_find_package, "pkg_config": build_with_pkg_config}[arguments.way]
        words = [arguments.mpiexec, "-n", RANKS] if arguments.kind == "mpi" else []
        words.append(str(build(arguments, source, work)))
        run("cmake", f"-DDIRECTORY={work / 'run'}", f"-DCOMMAND={';'.join(words)}", "-P", EXAMPLES / "run_twice.cmake")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--libdir", required=True, help="below the prefix")
    parser.add_argument("--mpi", action="store_true", help="the build has an MPI library")
    verbs = parser.add_subparsers(required=True)
    files_parser = verbs.add_parser("files")
    files_parser.add_argument("--build", type=Path, required=True)
    files_parser.set_defaults(check=files)
    verbs.add_parser("exports").set_defaults(check=exports)
    verbs.add_parser("command").set_defaults(check=command)
    program_parser = verbs.add_parser("program")
    program_parser.add_argument("--way", choices=["find_package", "pkg_config"], required=True)
    program_parser.add_argument("--kind", choices=["serial", "mpi"], required=True)
    program_parser.add_argument("--language", choices=["c", "cpp"], required=True)
    for tool in ("--cc", "--cxx", "--mpiexec"):
        program_parser.add_argument(tool)
    program_parser.set_defaults(check=program)
    arguments = parser.parse_args()
    return arguments.check(arguments)


if __name__ == "__main__":
    sys.exit(main())
