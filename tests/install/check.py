#!/usr/bin/env python3
"""Installs a build and uses what was installed as a user would, outside of the source tree."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
SOURCES = {"serial": {"c": "minimal.c", "cpp": "minimal.cpp", "f90": "growing.f90"},
           "mpi": {"c": "minimal_mpi.c", "cpp": "minimal_mpi.c", "f90": "minimal_mpi.f90"}}
# Each folder has its libraries, its CMake package, and its target.
DROP_INS = {"fti": (["fti"], "FTI", "fti.shared"), "scr": (["scr", "scrf"], "scr", "scr::scr"),
            "veloc": (["veloc-client"], "veloc", "veloc::client")}
RANKS = "4"
SKIPPED = 77


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def version():
    return re.search(r"project\(diapause VERSION (\S+)",
                     (REPOSITORY / "CMakeLists.txt").read_text())[1]


def fortran_files(libdir, mpi):
    kinds = {"diapause_fortran": "serial"} | ({"diapause_mpi_fortran": "mpi"} if mpi else {})
    files = {f"include/diapause/fortran/{kind}/diapause.mod" for kind in kinds.values()}
    exports = ["FortranTargets"] + (["MpiFortranTargets"] if mpi else [])
    files |= {f"{libdir}/cmake/diapause/diapause{name}{end}.cmake" for name in exports
              for end in ("", "-build")}
    return files | library_files(libdir, kinds)


def library_files(libdir, names):
    short = ".".join(version().split(".")[:2])
    files = {f"{libdir}/pkgconfig/{name}.pc" for name in names}
    return files | {f"{libdir}/lib{name}.so{end}" for name in names
                    for end in ("", f".{short}", f".{version()}")}


def drop_in_files():
    found = set()
    for name, (libraries, package, _) in DROP_INS.items():
        files = [f"lib{library}.so" for library in libraries] + [f"pkgconfig/{name}.pc"]
        files += [f"cmake/{package}/{package}{end}.cmake"
                  for end in ("Config", "ConfigVersion", "Targets", "Targets-build")]
        found |= {f"drop-in/{name}/lib/{file}" for file in files}
    return found


def document_files(build):
    """Pages and completions are as many as there are verbs and functions:
    tests/packaging counts them."""
    documents = build / "packaging/documents"
    pages = {f"share/man/{path.relative_to(documents)}" for path in documents.glob("man?/*")}
    return pages | {"share/bash-completion/completions/diapause",
                    "share/zsh/site-functions/_diapause",
                    f"share/modulefiles/diapause/{version()}"}


def promised_files(libdir, build, mpi, fortran):
    names = ["diapause", "diapause_mpi"] if mpi else ["diapause"]
    files = {"bin/diapause", "share/man/man1/diapause.1", "share/man/man3/diapause.3",
             "include/diapause/diapause.hpp"}
    files |= document_files(build)
    files |= {f"share/doc/diapause/{name}" for name in ("LICENSE", "CHANGES.md")}
    files |= {f"include/diapause/{name}.h" for name in names}
    files |= library_files(libdir, names)
    files |= fortran_files(libdir, mpi) if fortran else set()
    files |= {f"share/diapause/profiles/{profile.name}"
              for profile in REPOSITORY.glob("profiles/*.toml")}
    files |= {f"share/diapause/{path.relative_to(REPOSITORY)}"
              for path in REPOSITORY.glob("python/**/*.*")
              if path.suffix in (".py", ".csv")}
    files |= {f"share/diapause/{path.relative_to(REPOSITORY)}" for path in EXAMPLES.rglob("*")
              if path.suffix in (".c", ".cpp", ".f90", ".py", ".toml", ".sh")}
    if mpi:
        files |= {f"libexec/diapause/{program}{end}" for program in ("heat", "messages", "stream")
                  for end in ("", "_plain")}
        files |= {path.relative_to(REPOSITORY).as_posix()
                  for path in REPOSITORY.glob("drop-in/*/include/**/*.h*")}
        files |= drop_in_files()
        if fortran:
            files |= {"drop-in/fti/lib/libfti_f90.so"}
            files |= {f"drop-in/{module}" for folder in ("include", "mod")
                      for module in (f"fti/{folder}/fti.mod", f"scr/{folder}/scrf.mod")}
    # They are installed where there is a libibverbs to stand in for.
    verbs = ["libibverbs.so.1", "librdmacm.so.1", "libdiapause_verbs.so",
             "libdiapause_real_ibverbs.so.1"]
    if (build / libdir / "diapause/verbs" / verbs[0]).exists():
        files |= {f"{libdir}/diapause/verbs/{name}" for name in verbs}
    package = (["Config", "ConfigVersion", "Targets", "Targets-build"]
               + (["MpiTargets", "MpiTargets-build"] if mpi else []))
    return files | {f"{libdir}/cmake/diapause/diapause{name}.cmake" for name in package}


def files(arguments):
    """Installs to one place and moves it to another: what was installed must not
    know where it was put."""
    prefix = arguments.prefix
    first = prefix.with_name(prefix.name + ".first")
    for folder in (prefix, first):
        shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "--install", arguments.build, "--prefix", first)
    first.rename(prefix)
    found = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()}
    # The package has one file a build type; its name is no promise.
    found = {re.sub(r"(Targets)-(?!build)\w+\.cmake$", r"\1-build.cmake", path) for path in found}
    promised = promised_files(arguments.libdir, arguments.build, arguments.mpi, arguments.fortran)
    for path in sorted(promised - found):
        print(f"missing: {path}")
    for path in sorted(found - promised):
        print(f"not promised: {path}")
    return 0 if found == promised else 1


def declared_functions(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    return set(re.findall(r"DIAPAUSE_API\s[^;(]*?\b(diapause_\w+)\s*\(", text))


def exported_symbols(library):
    listing = run("nm", "--dynamic", "--defined-only", "--format=posix", library,
                  capture_output=True).stdout
    return {line.split()[0].split("@")[0] for line in listing.splitlines()}


def exports(arguments):
    """Each library exports what its header declares, and nothing else gets into the
    program's name space."""
    names = ["diapause", "diapause_mpi"] if arguments.mpi else ["diapause"]
    declared = {n: declared_functions(arguments.prefix / f"include/diapause/{n}.h") for n in names}
    exported = {n: exported_symbols(arguments.prefix / arguments.libdir / f"lib{n}.so")
                for n in names}
    broken = 0
    for name in names:
        promised = declared["diapause"] | declared[name]  # diapause_mpi.h includes diapause.h
        for symbol in sorted(exported[name] - promised):
            print(f"lib{name}.so exports {symbol}, which {name}.h does not declare")
            broken = 1
        for function in sorted(promised - exported[name]):
            print(f"{name}.h declares {function}, which lib{name}.so does not export")
            broken = 1
        dynamic = run("readelf", "--dynamic", arguments.prefix / arguments.libdir / f"lib{name}.so",
                      capture_output=True).stdout
        if "NODELETE" not in dynamic:
            print(f"lib{name}.so goes with dlclose() while its threads work")
            broken = 1
    return broken if all(declared.values()) else 1


def command(arguments):
    program = arguments.prefix / "bin/diapause"
    output = run(program, "--version", capture_output=True).stdout
    print(output)
    return 0 if version() in output else 1


def pkg_config(arguments, *options):
    path = arguments.prefix / arguments.libdir / "pkgconfig"
    done = run("pkg-config", *options, env={"PKG_CONFIG_PATH": str(path), "PATH": "/usr/bin:/bin"},
               capture_output=True)
    return done.stdout.split()


def build_with_pkg_config(arguments, source, work):
    package = "diapause_mpi" if arguments.kind == "mpi" else "diapause"
    package += "_fortran" if arguments.language == "f90" else ""
    compiler = {"c": arguments.cc, "cpp": arguments.cxx, "f90": arguments.fc}[arguments.language]
    if arguments.kind == "mpi":
        variable = {"c": "mpicc", "cpp": "mpicxx", "f90": "mpifort"}[arguments.language]
        compiler = pkg_config(arguments, f"--variable={variable}", package)[0]
    standard = {"c": "-std=gnu11", "cpp": "-std=c++17", "f90": "-std=f2018"}[arguments.language]
    flags = pkg_config(arguments, "--cflags", "--libs", package)
    run(compiler, standard, source, "-o", work / "program", *flags, "-lm")
    return work / "program"


def build_with_find_package(arguments, source, work):
    shutil.copy(REPOSITORY / "tests/install/user/CMakeLists.txt", work)
    language, compiler = {"c": ("C", arguments.cc), "cpp": ("CXX", arguments.cxx),
                          "f90": ("Fortran", arguments.fc)}[arguments.language]
    run("cmake", "-G", "Ninja", "-S", work, "-B", work / "build",
        f"-DCMAKE_{language}_COMPILER={compiler}",
        f"-DLANGUAGE={language}", f"-DLANGUAGES={language}{';C' if language == 'Fortran' else ''}",
        f"-DKIND={arguments.kind}", f"-DSOURCE={source.name}",
        f"-DCMAKE_PREFIX_PATH={arguments.prefix}")
    run("cmake", "--build", work / "build")
    return work / "build/program"


def program(arguments):
    """Builds an example on the prefix and lets it crash and go on."""
    with tempfile.TemporaryDirectory(prefix="diapause-user.") as folder:
        work = Path(folder)
        source = work / f"program.{arguments.language}"
        shutil.copy(EXAMPLES / SOURCES[arguments.kind][arguments.language], source)
        build = {"find_package": build_with_find_package,
                 "pkg_config": build_with_pkg_config}[arguments.way]
        words = [arguments.mpiexec, "-n", RANKS] if arguments.kind == "mpi" else []
        words.append(str(build(arguments, source, work)))
        run("cmake", f"-DDIRECTORY={work / 'run'}", f"-DCOMMAND={';'.join(words)}", "-P",
            EXAMPLES / "run_twice.cmake")
    return 0


CPP_PROGRAM = """
{includes}
int main(int argc, char** argv) {{
  MPI_Init(&argc, &argv);
  int right = 0;
  {{
    diapause::Instance diapause(MPI_COMM_WORLD, "headers");
    double one = 1;
    diapause.protect("one", &one);
    diapause.checkpoint(1);
    MPI_Comm_size(diapause.comm(), &right);
    diapause.finish();
  }}
  MPI_Finalize();
  return right == 1 ? 0 : 1;
}}
"""


def headers(arguments):
    """The headers of C++ and of MPI work in any order, in C++17 and later, without a warning,
    and say what they need."""
    orders = [("diapause.hpp", "diapause_mpi.h"), ("diapause_mpi.h", "diapause.hpp")]
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    compiler = pkg_config(arguments, "--variable=mpicxx", "diapause_mpi")[0]
    with tempfile.TemporaryDirectory(prefix="diapause-user.") as folder:
        work = Path(folder)
        settings = {"DIAPAUSE_MEMORY_PATH": str(work / "memory"),
                    "DIAPAUSE_GLOBAL_PATH": str(work / "global")}
        for order, standard in zip(orders, ("-std=c++17", "-std=c++20")):
            includes = "\n".join(f'#include "diapause/{header}"' for header in order)
            (work / "program.cpp").write_text(CPP_PROGRAM.format(includes=includes))
            run(compiler, standard, *flags, "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX",
                work / "program.cpp", "-o", work / "program",
                *pkg_config(arguments, "--cflags", "--libs", "diapause_mpi"))
            run(arguments.mpiexec, "-n", "1", work / "program", env=os.environ | settings)
        (work / "old.cpp").write_text('#include "diapause/diapause.hpp"\n')
        old = subprocess.run([compiler, "-std=c++14", "-fsyntax-only",
                              f"-I{arguments.prefix}/include", work / "old.cpp"],
                             capture_output=True, text=True)
        return 0 if old.returncode != 0 and "needs C++17" in old.stderr else 1


DROP_IN_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package({package} REQUIRED)
add_executable(program {source})
target_link_libraries(program PRIVATE {target} m)
"""


def drop_ins(arguments):
    """Programs written for others find the drop-ins under the others' names, from
    CMake and by pkg-config."""
    programs = REPOSITORY / "tests/drop_in"
    with tempfile.TemporaryDirectory(prefix="diapause-user.") as folder:
        for name, (_, package, target) in DROP_INS.items():
            work, source = Path(folder) / name, programs / f"{name}_functions.c"
            work.mkdir()
            place = arguments.prefix / "drop-in" / name
            (work / "CMakeLists.txt").write_text(
                DROP_IN_PROJECT.format(package=package, source=source, target=target))
            run("cmake", "-G", "Ninja", "-S", work, "-B", work / "build",
                f"-DCMAKE_C_COMPILER={arguments.cc}", f"-DCMAKE_PREFIX_PATH={place}")
            run("cmake", "--build", work / "build")
            asked = {"env": os.environ | {"PKG_CONFIG_PATH": str(place / "lib/pkgconfig")},
                     "capture_output": True}
            compiler = run("pkg-config", "--variable=mpicc", name, **asked).stdout.strip()
            flags = run("pkg-config", "--cflags", "--libs", name, **asked).stdout.split()
            run(compiler, source, "-o", work / "program", *flags, "-lm")
            for built in (work / "build/program", work / "program"):
                needed = run("ldd", built, capture_output=True).stdout
                if f"{place}/lib/" not in needed or "not found" in needed:
                    print(f"{built} does not find its library:\n{needed}")
                    return 1
    return 0


MISMATCHED = """
#include <stdio.h>
#include "diapause/diapause_mpi.h"
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  diapause_t* diapause = NULL;
  const int status = diapause_mpi_open(MPI_COMM_WORLD, "other", NULL, &diapause);
  printf("%s: %s\\n", diapause_status_name(status), diapause_last_error());
  fflush(stdout);
  _exit(0);
}
"""


def other_mpi(arguments):
    """A program of another MPI than the library's is told so, and does not crash."""
    own = pkg_config(arguments, "--variable=mpicc", "diapause_mpi")[0]
    others = [path for path in ("/usr/bin/mpicc.mpich", "/usr/bin/mpicc.openmpi") if path != own
              and Path(path).exists()]
    if not others:
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="diapause-user.") as folder:
        work = Path(folder)
        (work / "program.c").write_text("#include <unistd.h>\n" + MISMATCHED)
        run(others[0], work / "program.c", "-o", work / "program",
            *pkg_config(arguments, "--cflags", "--libs", "diapause_mpi"))
        launcher = others[0].replace("mpicc", "mpiexec")
        # The program ends without MPI_Finalize, which launchers take differently.
        done = subprocess.run([launcher, "-n", "1", work / "program"], text=True,
                              capture_output=True)
        print(done.stdout)
        said = ("compiled with" in done.stdout and "MPICH" in done.stdout
                and "Open MPI" in done.stdout)
        return 0 if said and "DIAPAUSE_ERR_ARGUMENT" in done.stdout else 1


def job_script(arguments):
    """examples/slurm/job.sh as it was installed, in a shell instead of Slurm."""
    with tempfile.TemporaryDirectory(prefix="diapause-user.") as folder:
        work = Path(folder)
        (work / "bin").mkdir()
        # No link: a launcher may look for its parts beside the name that it was started by.
        (work / "bin/mpirun").write_text(f'#!/bin/sh\nexec {arguments.mpiexec} "$@"\n')
        (work / "bin/mpirun").chmod(0o755)
        settings = {"DIAPAUSE_MEMORY_PATH": str(work / "memory"),
                    "DIAPAUSE_GLOBAL_PATH": str(work / "global"),
                    "PATH": f"{arguments.prefix}/bin:{work}/bin:/usr/bin:/bin"}
        run("sh", arguments.prefix / "share/diapause/examples/slurm/job.sh", "--size", "60",
            "--iterations", "40", cwd=work, env=os.environ | settings)
        return 0 if (work / "field.raw").stat().st_size == 60 * 60 * 8 else 1


def plain(arguments):
    """Configures what a user types who has neither ccache nor GoogleTest nor libpng. Building it
    all again would take too long."""
    with tempfile.TemporaryDirectory(prefix="diapause-user.") as folder:
        work = Path(folder)
        done = run("cmake", "-S", REPOSITORY, "-B", work / "build",
                   f"-DCMAKE_INSTALL_PREFIX={work / 'prefix'}",
                   "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON",
                   "-DCCACHE=CCACHE-NOTFOUND",
                   capture_output=True)
        cache = (work / "build/CMakeCache.txt").read_text()
        return 0 if "GoogleTest was not found" in done.stdout and "LAUNCHER:" not in cache else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--libdir", required=True, help="below the prefix")
    parser.add_argument("--mpi", action="store_true", help="the build has an MPI library")
    parser.add_argument("--fortran", action="store_true", help="the build has the Fortran module")
    verbs = parser.add_subparsers(required=True)
    files_parser = verbs.add_parser("files")
    files_parser.add_argument("--build", type=Path, required=True)
    files_parser.set_defaults(check=files)
    verbs.add_parser("exports").set_defaults(check=exports)
    verbs.add_parser("command").set_defaults(check=command)
    verbs.add_parser("plain").set_defaults(check=plain)
    verbs.add_parser("other_mpi").set_defaults(check=other_mpi)
    drop_ins_parser = verbs.add_parser("drop_ins")
    drop_ins_parser.add_argument("--cc")
    drop_ins_parser.set_defaults(check=drop_ins)
    for name, check in {"headers": headers, "job_script": job_script}.items():
        launched = verbs.add_parser(name)
        launched.add_argument("--mpiexec")
        launched.set_defaults(check=check)
    program_parser = verbs.add_parser("program")
    program_parser.add_argument("--way", choices=["find_package", "pkg_config"], required=True)
    program_parser.add_argument("--kind", choices=["serial", "mpi"], required=True)
    program_parser.add_argument("--language", choices=["c", "cpp", "f90"], required=True)
    for tool in ("--cc", "--cxx", "--fc", "--mpiexec"):
        program_parser.add_argument(tool)
    program_parser.set_defaults(check=program)
    arguments = parser.parse_args()
    return arguments.check(arguments)


if __name__ == "__main__":
    sys.exit(main())
