#include "cli/ledgers.hpp"

#include <fmt/format.h>

#include "cli/collection.hpp"
#include "cli/repeated_lines.hpp"
#include "energy/ledger.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {

namespace {

Result<std::string> ledger_of_job(const std::string& job, const Places& places) {
  Places only_global = places;
  only_global.memory = only_global.local = "";
  DIAPAUSE_TRY_ASSIGN(const Collection collection, collect(only_global));
  DIAPAUSE_TRY_ASSIGN(const Job* const found, find_job(collection, job));
  for (const store::SurveyedPlace& place : collection.places) {
    if (place.job == found->key) return place.directory.path() + "/" + energy::Ledger::kFileName;
  }
  return fail(Code::not_found, fmt::format("job '{}' has no directory in: {}", job,
                                           fmt::join(collection.roots, ", ")));
}

}  // namespace

Result<std::string> ledger_of(const std::string& name, const Places& places) {
  if (name.find('/') != std::string::npos || name.ends_with(".jsonl")) return name;
  return ledger_of_job(name, places);
}

Result<std::size_t> read_ledger(const std::string& path,
                                const std::function<void(std::string_view)>& each) {
  RepeatedLines repeated;
  DIAPAUSE_TRY(sys::read_lines(sys::real_kernel(), path, [&](std::string_view line) {
    if (repeated.is_new(line)) each(line);
  }));
  return repeated.count();
}

}  // namespace diapause::cli
