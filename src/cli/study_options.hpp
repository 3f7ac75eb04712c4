// The options of `diapause study` and its sub-verbs.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <variant>

#include "cli/study_arguments.hpp"

namespace diapause::cli {

class StudyOptions {
 public:
  // Adds the verb and returns it. This object must live until the arguments are parsed.
  CLI::App& add(CLI::App& app);
  // Returns the chosen arguments. Called if "study" was typed.
  std::variant<StudyCompressArguments, StudyEncodeArguments, StudyRunsArguments> chosen() const;

 private:
  CLI::App* verb_ = nullptr;
  StudyCompressArguments compress_;
  StudyEncodeArguments encode_;
  std::map<std::string, StudyRunsArguments> of_runs_;  // by the name of the study
};

}  // namespace diapause::cli
