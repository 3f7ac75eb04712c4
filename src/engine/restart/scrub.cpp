#include "engine/restart/scrub.hpp"

#include <exception>
#include <string>

namespace diapause::engine {

Scrub::Scrub(store::ImageReader image) : image_(std::move(image)) {
  auto thread = sys::Thread::start([this] { work(); });
  if (thread) thread_ = std::make_unique<sys::Thread>(std::move(*thread));
}

Scrub::~Scrub() {
  stop_ = true;
}  // the thread is joined by its own destructor, before the image goes

void Scrub::work() {
  try {
    result_ = image_.verify_through_cache([this] { return !stop_; });
    is_done_ = true;
  } catch (const std::exception& error) {
    result_ = fail(Code::memory, image_.name() + " was not checked: " + error.what());
  }
}

Status Scrub::wait() {
  thread_.reset();
  if (!is_done_) work();
  return result_;
}

}  // namespace diapause::engine
