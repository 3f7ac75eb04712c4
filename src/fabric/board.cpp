#include "fabric/board.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

namespace diapause::fabric {

bool give(int memory, Page& page, std::span<const Record> records) {
  page.given_at = kPageSize + page.published * sizeof(Record);
  page.given = records.size();
  return ::pwrite(memory, records.data(), records.size_bytes(),
                  static_cast<off_t>(page.given_at)) == static_cast<ssize_t>(records.size_bytes());
}

Result<Board> Board::make() {
  Board board;
  board.memory_ = ::memfd_create(kMemoryName.data(), MFD_CLOEXEC);
  void* mapped = MAP_FAILED;
  if (board.memory_ >= 0 && ::ftruncate(board.memory_, kPageSize) == 0)
    mapped = ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, board.memory_, 0);
  if (mapped == MAP_FAILED)
    return fail(os_error("making memory for the numbers of InfiniBand", errno));
  board.page_ = new (mapped) Page;
  return board;
}

Board::Board(Board&& other) noexcept
    : memory_(std::exchange(other.memory_, -1)), page_(std::exchange(other.page_, nullptr)) {}

Board& Board::operator=(Board&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(page_, other.page_);
  return *this;
}

Board::~Board() {
  if (page_ != nullptr) ::munmap(page_, kPageSize);
  if (memory_ >= 0) ::close(memory_);
}

void Board::set_held(bool is_held) {
  if (page_ != nullptr) page_->is_stopped = is_held ? 1 : 0;
}

Status Board::show(std::span<const Record> records) {
  if (page_ == nullptr || give(memory_, *page_, records)) return {};
  return fail(os_error("showing the numbers of InfiniBand", errno));
}

}  // namespace diapause::fabric
