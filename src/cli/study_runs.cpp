// `diapause study levels` and the other studies that start programs: becomes the Python package, which plans the runs,
// starts them, and makes tables and pictures of what they leave.
#include "cli/python.hpp"
#include "cli/verbs.hpp"
#include "sys/process.hpp"

namespace diapause::cli {

int study_runs(const StudyRunsArguments& arguments) {
  std::vector<std::string> words = {"study-" + arguments.name, "--command=" + sys::own_program()};
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  return become_python(words);
}

}  // namespace diapause::cli
