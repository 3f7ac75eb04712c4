// Reads what a job has written into its ledger.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/cluster.hpp"

namespace diapause::test_support {

// Returns the events of one kind, in their order.
inline std::vector<nlohmann::json> ledger_events(const VolatileDisk& disk,
                                                 const std::string& event) {
  std::vector<nlohmann::json> found;
  for (const std::string& path : files_matching(disk, "/ledger.jsonl")) {
    const ByteVector content = *disk.read_content(path);
    std::istringstream lines(
        std::string(reinterpret_cast<const char*>(content.data()), content.size()));
    for (std::string line; std::getline(lines, line);) {
      auto parsed = nlohmann::json::parse(line, nullptr, false);  // a line may have been cut
      if (parsed.is_object() && parsed["event"] == event) found.push_back(std::move(parsed));
    }
  }
  return found;
}

}  // namespace diapause::test_support
