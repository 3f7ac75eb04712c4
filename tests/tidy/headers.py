"""Every public header compiles alone: as C11 and C++20 without one warning, with both
MPIs where it needs MPI."""

import shutil
import subprocess

from sources import Problem

FLAGS = ["-pedantic-errors", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror",
         "-fsyntax-only"]
# The C++ bindings of MPI are gone from the standard; a header that pulls them in would drown its
# user in warnings.
MPI_FLAGS = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
LANGUAGES = {"c": ["-x", "c", "-std=c11"], "c++": ["-x", "c++", "-std=c++20"]}
COMPILERS = {"c": ["gcc", "clang-14"], "c++": ["g++", "clang++-14"]}
MPI_COMPILERS = {"c": ["mpicc.openmpi", "mpicc.mpich"], "c++": ["mpicxx.openmpi", "mpicxx.mpich"]}


def compile_alone(tree, header, language, compiler):
    """None, or the first error."""
    if not shutil.which(compiler):
        return f"{compiler} is not there; tools/install-packages test"
    flags = FLAGS + LANGUAGES[language] + ["-I", "include"]
    if compiler in MPI_COMPILERS[language]:
        flags += MPI_FLAGS
    program = f'#include "{header}"\n#include "{header}"\nint main(void) {{ return 0; }}\n'
    done = subprocess.run([compiler, *flags, "-"], cwd=tree.root, input=program,
                          capture_output=True, text=True)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return (errors or done.stderr.splitlines() or ["no message"])[0]


def check(tree):
    problems = []
    for path in tree.code(["include"]):
        header = path.removeprefix("include/")
        with_mpi = "mpi" in header
        for language in ("c++",) if path.endswith(".hpp") else ("c", "c++"):
            for compiler in (MPI_COMPILERS if with_mpi else COMPILERS)[language]:
                error = compile_alone(tree, header, language, compiler)
                if error:
                    problems.append(Problem(path, 1,
                                            f"does not compile alone with {compiler}: {error}"))
    return problems
