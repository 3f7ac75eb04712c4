// Shared by the programs of this folder: a clock, warm memory, and pairs of timings printed as one
// line of JSON.
#pragma once

#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace bench {

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The program's standard error says why there is no figure.
[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

// Page-aligned memory whose pages are all there, filled with something that is not constant.
class WarmMemory {
 public:
  explicit WarmMemory(std::size_t bytes) : bytes_(bytes) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) give_up("no memory for " + std::to_string(bytes) + " bytes");
    data_ = static_cast<char*>(memory);
    std::uint64_t value = bytes;
    for (std::size_t i = 0; i + sizeof value <= bytes; i += sizeof value) {
      value = value * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(data_ + i, &value, sizeof value);
    }
  }
  WarmMemory(const WarmMemory&) = delete;
  WarmMemory& operator=(const WarmMemory&) = delete;
  ~WarmMemory() { ::munmap(data_, bytes_); }

  char* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  char* data_ = nullptr;
  std::size_t bytes_;
};

template <class Action>
double seconds_of(Action action) {
  const double start_s = now_s();
  action();
  return now_s() - start_s;
}

// Pairs of seconds: Diapause's and the raw limit's, measured one after the other.
using Pairs = std::vector<std::pair<double, double>>;

inline void print_json(const Pairs& pairs) {
  std::printf("{\"pairs\": [");
  const char* separator = "";
  for (const auto& [ours_s, raw_s] : pairs) {
    std::printf("%s[%.9f, %.9f]", separator, ours_s, raw_s);
    separator = ", ";
  }
  std::printf("]}\n");
}

}  // namespace bench
