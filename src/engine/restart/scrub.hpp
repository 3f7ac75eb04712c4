// The check of an image while the program already works with it.
#pragma once

#include <atomic>
#include <memory>

#include "base/result.hpp"
#include "store/image_reader.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {

class Scrub {
 public:
  // Begins at once, in a thread of its own; without one, wait() does the work.
  explicit Scrub(store::ImageReader image);
  // Stops it.
  ~Scrub();
  Scrub(const Scrub&) = delete;
  Scrub& operator=(const Scrub&) = delete;

  // Waits until every block was read. Code::corrupt names the file, the region and the block.
  Status wait();

 private:
  void work();

  store::ImageReader image_;
  std::atomic<bool> stop_ = false;
  bool is_done_ = false;  // read after the thread has ended
  Status result_;
  std::unique_ptr<sys::Thread> thread_;
};

}  // namespace diapause::engine
