#include "cli/python.hpp"

#include "cli/verbs.hpp"
#include "sys/command.hpp"
#include "sys/process.hpp"

namespace diapause::cli {

int become_python(const std::vector<std::string>& arguments) {
  const std::string program = sys::own_program();
  const std::string start =
      // The path is relative to the program.
      program.substr(0, program.rfind('/')) + "/" DIAPAUSE_PYTHON_FROM_PROGRAM "/start.py";
  std::vector<std::string> command = {"python3", "-B", start};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return complain(sys::become(command).message +
                  ": Python 3.9 or newer draws pictures and writes HDF5 and VTK; on Debian, " +
                  "apt install python3-matplotlib python3-h5py");
}

}  // namespace diapause::cli
