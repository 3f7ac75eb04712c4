// `diapause study levels` and the other studies that start programs: starts the Python package,
// which plans and starts the runs, and makes tables and figures of their results.
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
