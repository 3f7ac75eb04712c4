#!/usr/bin/env python3
"""Every rule finds the small bad example made for it, and leaves the good one beside it alone."""

import json
import tempfile
import unittest
from pathlib import Path

import analysis
import calls
import disturbance
import documents
import formatting
import headers
import layering
import limits
import state
from sources import Outline, Tree, blank

REPOSITORY = Path(__file__).resolve().parents[2]


class RuleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Tree(folder.name)

    def write(self, path, text):
        file = self.tree.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def found(self, rule, path, text):
        """The problems a file of this content has, as 'line: text'."""
        self.write(path, text)
        return [f"{p.line}: {p.text}" for p in rule(self.tree) if p.path == path]

    def assert_broken(self, rule, path, text, line=1):
        found = self.found(rule, path, text)
        self.assertEqual([f.split(":")[0] for f in found], [str(line)], f"in {text!r}: {found}")

    def assert_kept(self, rule, path, text):
        self.assertEqual(self.found(rule, path, text), [], f"in {text!r}")


class Reading(unittest.TestCase):
    def test_comments_and_literals_are_blanked_in_place(self):
        text = ('int a = 1\'000; // "x\nauto s = R"(no // comment)"; char c = \'"\'; /* {\n */ '
                'f("\\"}");')
        code = blank(text)
        self.assertEqual([len(line) for line in code.split("\n")],
                         [len(line) for line in text.split("\n")])
        self.assertEqual(code.split(), "int a = 1'000; auto s = ; char c = ; f( );".split())

    def test_functions_have_their_names_and_lines(self):
        text = ("namespace a {\nconst int t[] = {\n    1,\n};\nstruct S {\n  int x{};\n  int get() "
                "const { return x; }\n};\n"
                "S::S()\n    : x_{1},\n      y_{2} {\n  if (x_) {\n  }\n}\nTEST(Some, Thing) {\n}\n"
                "template <class T>\nauto f(int i = int{}) -> T\n{\n}\n}\n")
        functions = [(f.name, f.first_line, f.last_line) for f in Outline(text).functions]
        self.assertEqual(functions, [("get", 7, 7), ("S::S", 9, 14), ("TEST(Some, Thing)", 15, 16),
                                     ("f", 17, 20)])


class Layering(RuleTest):
    def test_a_folder_includes_only_what_the_table_allows(self):
        self.assert_broken(layering.check, "src/policy/a.cpp", '\n#include "store/tier.hpp"\n',
                           line=2)
        self.assert_broken(layering.check, "src/base/a.cpp", '#include "sys/file.hpp"\n')
        self.assert_broken(layering.check, "src/engine/a.cpp", "#include <diapause/diapause.h>\n")
        self.assert_broken(layering.check, "src/sys/a_test.cpp", '#include "format/ids.hpp"\n')
        self.assert_kept(layering.check, "src/policy/b.cpp",
                         '#include "config/settings.hpp"\n#include "policy/b.hpp"\n')
        self.assert_kept(layering.check, "src/policy/c.cpp",
                         '// #include "store/tier.hpp"\n#include <vector>\n')

    def test_a_folder_without_a_line_in_the_table_is_named(self):
        self.assert_broken(layering.check, "src/magic/a.cpp", '#include "base/bytes.hpp"\n')

    def test_a_room_includes_only_rooms_before_it(self):
        self.assert_broken(layering.check, "src/engine/job/a.cpp",
                           '#include "engine/host/host.hpp"\n')
        self.assert_broken(layering.check, "src/engine/node/levels/a.cpp",
                           '#include "engine/restart/fetch.hpp"\n')
        self.assert_broken(layering.check, "src/engine/a.cpp",
                           '#include "engine/job/context.hpp"\n')
        self.assert_broken(layering.check, "src/engine/attic/a.cpp",
                           '#include "engine/job/context.hpp"\n')
        self.assert_kept(layering.check, "src/engine/node/levels/b.cpp",
                         '#include "engine/job/context.hpp"\n')
        self.assert_kept(layering.check, "src/library/b.cpp", '#include "engine/host/host.hpp"\n')
        for rooms in layering.ROOMS.values():
            before = []
            for room, includes in rooms.items():
                self.assertLessEqual(set(includes.split()), set(before),
                                     f"{room} comes before what it includes")
                before.append(room)

    def test_users_programs_see_only_the_public_headers(self):
        self.assert_broken(layering.check, "apps/heat/main.cpp", '#include "library/engine.hpp"\n')
        self.assert_kept(layering.check, "apps/heat/grid.cpp",
                         '#include <mpi.h>\n#include <diapause/diapause_mpi.h>\n')

    def test_mpi_is_named_in_comm_alone(self):
        self.assert_broken(layering.check, "src/engine/a.cpp", "#include <mpi.h>\n")
        self.assert_broken(layering.check, "src/capi/mpi.cpp", "#include <mpi.h>\n")
        self.assert_broken(layering.check, "src/capi/open.cpp",
                           '#include "diapause/diapause_mpi.h"\n')
        self.assert_broken(layering.check, "include/diapause/diapause.h", "#include <mpi.h>\n")
        self.assert_kept(layering.check, "src/comm/a.cpp", "#include <mpi.h>\n")
        self.assert_kept(layering.check, "src/capi/mpi_open.cpp",
                         '#include "diapause/diapause_mpi.h"\n')

    def test_the_kernel_is_asked_in_sys_alone(self):
        for header in ("unistd.h", "fcntl.h", "sys/stat.h", "linux/fs.h", "liburing.h",
                       "filesystem", "fstream"):
            self.assert_broken(layering.check, "src/store/a.cpp", f"#include <{header}>\n")
            self.assert_kept(layering.check, "src/sys/a.cpp", f"#include <{header}>\n")
        self.assert_kept(layering.check, "src/store/b.cpp",
                         '#include "sys/file.hpp"\n#include <sys/types.h>\n')
        self.assert_broken(layering.check, "src/base/log.cpp", "#include <fcntl.h>\n")
        self.assert_kept(layering.check, "src/base/log.cpp", "#include <unistd.h>\n")


class Limits(RuleTest):
    def test_long_files_are_refused_and_rather_long_ones_named(self):
        self.assert_broken(limits.check, "apps/a.cpp", "\n" * 1001)
        self.assert_broken(limits.check, "tools/a.py", "\n" * 1001)
        self.assert_kept(limits.check, "apps/a.cpp", "\n" * 500)
        self.write("apps/a.cpp", "\n" * 501)
        self.assertEqual([p.hard for p in limits.check(self.tree) if p.path == "apps/a.cpp"],
                         [False])

    def test_long_functions_are_refused_and_rather_long_ones_named(self):
        self.assert_broken(limits.check, "apps/a.cpp", "\nint f() {\n" + "  g();\n" * 99 + "}\n",
                           line=2)
        self.assert_broken(limits.check, "tools/a.py", "def f():\n" + "    g()\n" * 100)
        self.assert_kept(limits.check, "apps/a.cpp", "int f() {\n" + "  g();\n" * 58 + "}\n")
        self.write("apps/a.cpp", "int f() {\n" + "  g();\n" * 59 + "}\n")
        self.assertEqual([p.hard for p in limits.check(self.tree) if p.path == "apps/a.cpp"],
                         [False])

    def test_long_lines_of_python_are_refused(self):
        self.assert_broken(limits.check, "tools/a.py", "\n# " + "ä" * 99 + "\n", line=2)
        self.assert_broken(limits.check, "tools/a", "#!/usr/bin/env python3\n# " + "ä" * 99 + "\n",
                           line=2)
        self.assert_kept(limits.check, "tools/a.py", "# " + "ä" * 98 + "\n")
        self.assert_kept(limits.check, "tools/a", "#!/bin/sh\n# " + "ä" * 99 + "\n")

    def test_a_folder_with_sources_has_a_readme_of_the_right_length(self):
        self.write("src/base/a.cpp", "\n")
        self.assertEqual([p.path for p in limits.check(self.tree)], ["src/base/README.md"])
        self.assert_broken(limits.check, "src/base/README.md", "word\n" * 4)
        self.assert_broken(limits.check, "src/base/README.md", "word\n" * 26)
        self.assert_kept(limits.check, "src/base/README.md", "word\n" * 10)


class State(RuleTest):
    def test_variables_at_file_scope_are_refused(self):
        for bad in (
            "int count = 0;",
            "static std::vector<int> all;",
            "std::atomic<bool> stop{false};",
            'const char* name = "x";',
            "thread_local std::string last_error;",
            "constinit int ready = 0;",
            "inline int limit = 3;",
            "void (*hook)(int) = nullptr;",
        ):
            self.assert_broken(state.check, "src/base/a.cpp", f"namespace d {{\n{bad}\n}}\n",
                               line=2)

    def test_static_members_and_static_locals_are_refused(self):
        self.assert_broken(state.check, "src/base/a.hpp",
                           "struct S {\n  static inline int users = 0;\n};\n", line=2)
        self.assert_broken(state.check, "src/base/b.cpp",
                           "int f() {\n  static int calls = 0;\n  return ++calls;\n}\n")

    def test_constants_functions_and_members_are_fine(self):
        good = (
            "using A = int;\nstruct B;\nint f(int a = 1);\nB& operator=(const B&);\n"
            "extern int g();\n"
            'constexpr int kA = 1;\nconst std::string kB = "x";\n'
            'const char* const kNames[] = {"a", "b"};\n'
            "struct S {\n  int x = 0;\n  int* p;\n  static constexpr int kC = 3;\n"
            "  static int make(int);\n};\n"
            "int h() {\n  static const int kD = 1;\n  int local = kD;\n  return local;\n}\n"
            "template <class T>\nconstexpr bool is = false;\ntemplate class S<int>;\n")
        self.assert_kept(state.check, "src/base/a.cpp", good)


class Calls(RuleTest):
    def test_the_library_does_not_print_exit_or_race(self):
        for bad in ('std::cout << "x";', 'printf("x");', 'std::fprintf(stderr, "x");',
                    "std::exit(1);", "abort();", "::_exit(1);", "std::terminate();",
                    'fmt::print("x");', 'puts("x");', "std::strerror(2);",
                    "std::atof(text);", "strtod(text, &end);", "std::stoi(text);",
                    'sscanf(text, "%d", &n);'):
            self.assert_broken(calls.check, "src/store/a.cpp", f"void f() {{\n  {bad}\n}}\n",
                               line=2)
            self.assert_kept(calls.check, "src/cli/a.cpp", bad + "\n")
            self.assert_kept(calls.check, "src/store/a_test.cpp", bad + "\n")

    def test_other_functions_of_such_names_are_fine(self):
        good = ('snprintf(b, 1, "x");\nqueue.abort();\nguard->exit();\n// exit(1)\nf("abort()");\n'
                'at_exit();\nQueue::abort();\nstrerror_r(1);\n')
        self.assert_kept(calls.check, "src/store/b.cpp", good)

    def test_notes_to_self_are_refused_everywhere(self):
        self.assert_broken(calls.check, "apps/a.cpp", "\n// TODO: later\n", line=2)


class Disturbance(RuleTest):
    def test_names_that_another_test_may_use_are_refused(self):
        for bad in ('std::ofstream(::testing::TempDir() + "hot.toml") << text;',
                    'const std::string path = "/tmp/hot.toml";', 'open("/dev/shm/job");',
                    'std::ofstream("hot.toml") << text;', 'fopen("hot.toml", "w");',
                    'std::filesystem::temp_directory_path() / ("values-" + '
                    'std::to_string(process_id()));'):
            self.assert_broken(disturbance.check, "src/base/a_test.cpp",
                               f"void f() {{\n  {bad}\n}}\n", line=2)
            self.assert_broken(disturbance.check, "tests/engine/a.cpp",
                               f"void f() {{\n  {bad}\n}}\n", line=2)
            self.assert_kept(disturbance.check, "src/base/a.cpp", bad + "\n")
        self.assert_broken(disturbance.check, "tests/cli/a.py",
                           "path = pathlib.Path('/tmp/hot.toml')\n")

    def test_directories_of_a_tests_own_are_fine(self):
        good = ('std::string name = testing::TempDir() + "devices-XXXXXX";\nconst ScratchDirectory '
                'scratch;\n'
                '// "/tmp/a"\nscratch.write("hot.toml", text);\nstd::ofstream(scratch.path() / '
                '"a");\n')
        self.assert_kept(disturbance.check, "tests/engine/a.cpp", good)
        self.assert_kept(disturbance.check, "tests/cli/a.py",
                         'tempfile.mkdtemp(prefix="a-", dir="/dev/shm")\n')

    def test_a_result_that_was_only_expected_is_not_used(self):
        for use in ("return std::move(*started);", "started->stop();", "take(*started);"):
            text = ("Sampler open() {\n  auto started = start();\n  EXPECT_TRUE(started);\n  "
                    f"{use}\n}}\n")
            self.assert_broken(disturbance.check, "tests/engine/a.cpp", text, line=3)
            self.assert_kept(disturbance.check, "tests/engine/a.cpp",
                             text.replace("EXPECT", "ASSERT"))
        self.assert_kept(disturbance.check, "tests/engine/a.cpp",
                         "int f() {\n  EXPECT_TRUE(done);\n  return done ? *done : 0;\n}\n")


class Documents(RuleTest):
    def test_links_lead_somewhere(self):
        self.write("docs/there.md", "# A heading, of `one`\n")
        for bad in ("[x](gone.md)", "[x](there.md#no)", "[x](../../out.md)", "![x](gone.png)",
                    "[x](#no)", "[x]: gone.md"):
            self.assert_broken(documents.check, "docs/a.md", f"text\n\n{bad}\n", line=3)
        good = ("[x](there.md) [x](../docs/there.md#a-heading-of) [x](https://example.org/) "
                "`[x](gone.md)`\n")
        self.assert_kept(documents.check, "docs/a.md", good + "```\n[x](gone.md)\n```\n")

    def test_documents_named_in_sources_are_there(self):
        self.write("docs/there.md", "\n")
        self.assert_broken(documents.check, "src/base/a.hpp", "// See docs/gone.md.\n")
        self.assert_kept(documents.check, "src/base/a.hpp", "// See docs/there.md.\n")


class Formatting(RuleTest):
    def test_a_file_that_clang_format_would_change_is_refused_until_it_has(self):
        self.write(".clang-format", (REPOSITORY / ".clang-format").read_text())
        self.assert_broken(formatting.check, "src/base/a.cpp", "int  a( );\n")
        formatting.fix(self.tree)
        self.assertEqual(self.tree.read("src/base/a.cpp"), "int a();\n")
        self.assertEqual(formatting.check(self.tree), [])


class Headers(RuleTest):
    def test_a_header_that_needs_another_first_is_refused_by_every_compiler(self):
        found = self.found(headers.check, "include/diapause/a.h", "uint64_t f(void);\n")
        self.assertEqual(len(found), 4, found)
        self.assert_kept(headers.check, "include/diapause/a.h",
                         "#include <stdint.h>\nuint64_t f(void);\n")

    def test_a_header_of_cpp_that_is_no_c_is_refused_by_both_c_compilers(self):
        found = self.found(headers.check, "include/diapause/a.h", "class A;\n")
        self.assertEqual(len(found), 2, found)
        self.assert_kept(headers.check, "include/diapause/b.hpp", "#pragma once\nclass A;\n")

    def test_a_header_with_mpi_is_compiled_with_both(self):
        found = self.found(headers.check, "include/diapause/a_mpi.h",
                           "#include <mpi.h>\nMPI_Comm f(Gone);\n")
        self.assertEqual(len(found), 4, found)
        self.assert_kept(headers.check, "include/diapause/a_mpi.h", "#include <mpi.h>\n")


class Analysis(RuleTest):
    def check(self, text):
        path = "src/base/a.cpp"
        self.write(path, text)
        self.write(".clang-tidy", (REPOSITORY / ".clang-tidy").read_text())
        file = str(self.tree.root / path)
        entry = {"directory": str(self.tree.root), "file": file,
                 "command": f"c++ -std=c++20 -c {file}"}
        self.write("build/compile_commands.json", json.dumps([entry]))
        return [(p.path, p.line) for p in analysis.check(self.tree, self.tree.root / "build")]

    def test_a_use_after_move_is_found(self):
        bad = ("#include <string>\nvoid take(std::string);\nchar f(std::string s) {\n  "
               "take(std::move(s));\n  return s[0];\n}\n")
        self.assertEqual(self.check(bad), [("src/base/a.cpp", 5)])

    def test_a_file_that_does_not_compile_is_found(self):
        self.assertEqual(self.check("int f() { return nowhere_declared; }\n"),
                         [("src/base/a.cpp", 1)])

    def test_sound_code_passes(self):
        self.assertEqual(self.check("int f(int a) { return a + 1; }\n"), [])

    def test_a_build_without_the_sources_is_no_success(self):
        self.write("build/compile_commands.json", "[]")
        self.assertEqual(len(analysis.check(self.tree, self.tree.root / "build")), 1)


if __name__ == "__main__":
    unittest.main()
