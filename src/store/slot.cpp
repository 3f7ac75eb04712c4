#include "store/slot.hpp"

#include <cerrno>
#include <utility>

namespace diapause::store {

Slot::Slot(Slot&& other) noexcept
    : file_(std::move(other.file_)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      content_(std::exchange(other.content_, 0)),
      unprepared_(std::exchange(other.unprepared_, 0)),
      is_to_be_mapped_(other.is_to_be_mapped_),
      name_(std::move(other.name_)),
      is_settled_(other.is_settled_),
      is_borrowed_(other.is_borrowed_) {}

Slot& Slot::operator=(Slot&& other) noexcept {
  if (this != &other) {
    unmap();
    file_ = std::move(other.file_);
    mapping_ = std::exchange(other.mapping_, nullptr);
    capacity_ = std::exchange(other.capacity_, 0);
    content_ = std::exchange(other.content_, 0);
    unprepared_ = std::exchange(other.unprepared_, 0);
    is_to_be_mapped_ = other.is_to_be_mapped_;
    name_ = std::move(other.name_);
    is_settled_ = other.is_settled_;
    is_borrowed_ = other.is_borrowed_;
  }
  return *this;
}

Slot::~Slot() { unmap(); }

void Slot::unmap() {
  if (mapping_ != nullptr) file_.kernel().unmap(mapping_, capacity_);
  mapping_ = nullptr;
}

Status Slot::resize(std::uint64_t bytes, bool mapped) {
  unmap();
  capacity_ = 0;
  DIAPAUSE_TRY(file_.truncate(bytes));
  if (mapped) file_.back_by_large_pages(0, bytes);
  DIAPAUSE_TRY(file_.reserve(bytes));
  return map(bytes, mapped);
}

bool Slot::is_whole() const {
  if (mapping_ == nullptr) return true;
  const auto bytes = file_.size();
  return bytes && *bytes >= capacity_;
}

Status Slot::prepare() {
  if (unprepared_ == 0) return {};
  return resize(std::exchange(unprepared_, 0), is_to_be_mapped_);
}

Status Slot::trim(std::uint64_t bytes) {
  DIAPAUSE_TRY(file_.truncate(bytes));
  capacity_ = bytes;
  return {};
}

Status Slot::map(std::uint64_t bytes, bool mapped) {
  capacity_ = bytes;
  if (!mapped) return {};
  int error = 0;
  do {
    error = 0;
    mapping_ = file_.kernel().map_shared(file_.fd(), bytes, &error);
  } while (mapping_ == nullptr && error == EINTR);
  if (mapping_ == nullptr) return fail(os_error("mapping " + file_.path(), error));
  return {};
}

}  // namespace diapause::store
