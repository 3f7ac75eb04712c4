// Has a lock for file systems that have none: a file that only one process can create.
// docs/locks.md says when the file of a dead holder counts as stale.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "sys/file.hpp"
#include "sys/thread.hpp"

namespace diapause::sys {

class HeldFile {
 public:
  // Creates the file `name`. Returns Code::busy if another holder's file exists, or may still be
  // valid: it counts as stale only after it was seen unchanged for kDead_s. The caller has to call
  // again with the same `Watch` until then.
  struct Watch {
    std::string seen;
    double since_s = 0;
  };
  static Result<HeldFile> acquire(const Directory& directory, const std::string& name,
                                  Watch& watch);
  // Returns whether a file exists that does not count as stale, as far as can be told at once.
  static bool is_held(const Directory& directory, const std::string& name);

  static constexpr double kBeat_s = 2;  // between two signs of life of a holder
  // A silent holder on another machine counts as dead after this time.
  static constexpr double kDead_s = 15;

  HeldFile(HeldFile&&) noexcept = default;
  HeldFile& operator=(HeldFile&& other) noexcept;
  ~HeldFile();  // removes the file

 private:
  struct Beating {
    Directory directory;
    std::string name;
    File file;
    std::atomic<bool> is_over = false;
    std::atomic<std::uint32_t> bell = 0;
  };
  explicit HeldFile(std::unique_ptr<Beating> beating) : beating_(std::move(beating)) {}
  static Result<File> make(const Directory& directory, const std::string& name);
  void end();

  std::unique_ptr<Beating> beating_;
  std::optional<Thread> thread_;
};

}  // namespace diapause::sys
