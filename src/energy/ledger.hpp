// The ledger is the bill of a job. It has one JSON object a line, and one line for every open,
// checkpoint, restart and close (docs/formats/ledger.md).
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::energy {

class Ledger {
 public:
  static constexpr const char* kFileName = "ledger.jsonl";

  // Opens or makes the ledger in `directory`; a line that a crash cut short is closed off.
  static Result<Ledger> open(const sys::Directory& directory);

  // Appends one line; two processes of a node may do so at the same time. The line is not synced: a
  // crash may cost the last record. After a failure a part of the line may be there, which no
  // reader takes for a record; it may be appended again.
  Status append(const std::string& json_object);

 private:
  explicit Ledger(sys::File file) : file_(std::move(file)) {}
  sys::File file_;
  bool is_cut_ = false;  // the last line may be there in part
};

}  // namespace diapause::energy
