// A lock for file systems that have none: a file that only one can make. docs/locks.md says when it counts as left
// behind.
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
  // Makes the file `name`. Code::busy if another holder's is there, or may be: it has to be seen not to change for
  // kDead_s, and for that this has to be asked again, with the same `Watch`.
  struct Watch {
    std::string seen;
    double since_s = 0;
  };
  static Result<HeldFile> acquire(const Directory& directory, const std::string& name, Watch& watch);
  // Whether one is there that does not count as left behind, as far as can be told at once.
  static bool is_held(const Directory& directory, const std::string& name);

  static constexpr double kBeat_s = 2;   // between two signs of life of a holder
  static constexpr double kDead_s = 15;  // without one a holder on another machine is dead

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
