#include "cli/python.hpp"

#include "cli/exit_codes.hpp"
#include "cli/verbs.hpp"
#include "sys/command.hpp"
#include "sys/process.hpp"

namespace diapause::cli {

namespace {

constexpr const char* kHint =
    ": Python 3.9 or newer draws pictures and writes HDF5 and VTK; on Debian, "
    "apt install python3-matplotlib python3-h5py";

std::vector<std::string> command_of(const std::vector<std::string>& arguments) {
  const std::string program = sys::own_program();
  const std::string start =
      // The path is relative to the program.
      program.substr(0, program.rfind('/')) + "/" DIAPAUSE_PYTHON_FROM_PROGRAM "/start.py";
  std::vector<std::string> command = {"python3", "-B", start};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

int become_python(const std::vector<std::string>& arguments) {
  if (const int settled = settle_output(kDone); settled != kDone) return settled;
  return complain(sys::become(command_of(arguments)).message + kHint);
}

Status run_python(const std::vector<std::string>& arguments) {
  const auto output = sys::output_of(command_of(arguments));
  if (output) return {};
  if (output.error().os_errno == 0)
    return fail(Code::io, "Python could not do its part, as it says above");
  return fail(Code::io, output.error().message + kHint);
}

}  // namespace diapause::cli
