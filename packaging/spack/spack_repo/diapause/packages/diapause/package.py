from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Diapause(CMakePackage):
    """Energy-aware checkpoint/restart for parallel programs in C, C++, Fortran and Python.
    Checkpoints at four levels, taken behind the program, with an account of the seconds and
    joules that they cost."""

    license("BSD-3-Clause")

    # There is no archive to fetch yet: `spack develop` gives the sources
    # (packaging/spack/README.md).
    version("0.1.0")

    variant("mpi", default=True,
            description="Library for MPI programs, and those that stand in for others")
    variant("zfp", default=True, description="Lossy compression by zfp")
    variant("python", default=True, description="Reports and studies with pictures")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    # Without a gfortran the module for programs in Fortran is left out.
    depends_on("fortran", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("tl-expected", type="build")
    depends_on("fmt@9:")
    depends_on("isa-l")
    depends_on("liburing")
    depends_on("lz4")
    depends_on("tomlplusplus")
    depends_on("xxhash")
    depends_on("zstd")
    depends_on("mpi", when="+mpi")
    depends_on("zfp", when="+zfp")
    # The manual pages are made with Python even where nothing is drawn with it.
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("py-matplotlib@3.6:", type="run", when="+python")
    depends_on("py-scipy@1.10:", type="run", when="+python")

    requires("%gcc@12:", "%clang@14:", policy="one_of",
             msg="C++20 as of GCC 12 or Clang 14 is needed")

    def cmake_args(self):
        return [
            self.define("DIAPAUSE_BUILD_TESTS", False),
            self.define_from_variant("DIAPAUSE_WITH_MPI", "mpi"),
            self.define_from_variant("DIAPAUSE_WITH_ZFP", "zfp"),
        ]

    def setup_run_environment(self, env):
        env.prepend_path("PYTHONPATH", self.prefix.share.diapause.python)
