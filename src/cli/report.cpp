// `diapause report`: finds the ledgers and starts the Python package, which draws the report.
#include "cli/ledgers.hpp"
#include "cli/python.hpp"
#include "cli/verbs.hpp"

namespace diapause::cli {

int report(const ReportArguments& arguments) {
  const auto ledger = ledger_of(arguments.job, arguments.places);
  if (!ledger) return complain(ledger.error());
  std::vector<std::string> words = {"report", "--output=" + arguments.output};
  for (const std::string& other : arguments.compare) {
    const auto compared = ledger_of(other, arguments.places);
    if (!compared) return complain(compared.error());
    words.push_back("--compare=" + *compared);
  }
  for (const std::string& trace : arguments.traces) words.push_back("--trace=" + trace);
  if (!arguments.pictures.empty()) words.push_back("--pictures=" + arguments.pictures);
  words.insert(words.end(), {"--", *ledger});
  return become_python(words);
}

}  // namespace diapause::cli
