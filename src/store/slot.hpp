// A file of this process in a tier, kept open and, in a memory tier, mapped, so that its pages are
// warm when it is used again: a first touch of fresh memory costs ten times a copy into warm pages.
//
// File, mapping and name belong together as long as the slot lives: its name in spare/ is never
// given to another file in this process, whatever becomes of the tier object, and it returns under
// that name when its version goes.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "sys/file.hpp"

namespace diapause::store {

// Says what a slot is for. A `capture` may have less to copy if an earlier one lies in the slot.
// The content of a `shrinking` slot may become smaller than is asked for, so its room is not
// reserved. A slot that is filled `later` gets its memory from Slot::prepare(), which may take as
// long as the copy itself.
enum class SlotUse { capture, other, shrinking, later };

class Slot {
 public:
  Slot() = default;
  Slot(Slot&& other) noexcept;
  Slot& operator=(Slot&& other) noexcept;
  ~Slot();

  // The whole slot, for memory tiers; empty for others, which are written through file().
  MutableBytes mapping() const { return {mapping_, mapping_ == nullptr ? 0 : capacity_}; }
  const sys::File& file() const { return file_; }
  std::uint64_t capacity() const { return capacity_; }
  const std::string& name() const { return name_; }  // name in spare/
  // Returns whether it is part of a version, and not in spare/.
  bool is_settled() const { return is_settled_; }
  bool is_open() const { return file_.is_open(); }

  // Returns the number that the caller has given to the last capture in this slot. It is 0 if there
  // was none, or if something else was written since.
  std::uint64_t content() const { return content_; }
  void set_content(std::uint64_t number) { content_ = number; }

  // Returns whether the file is still as long as its mapping. Another program may have cut it, and
  // a write beyond its end would kill this one.
  bool is_whole() const;

  // Reserves and maps what SlotUse::later has left open. A slot that was used before needs nothing.
  // Returns Code::full if there is no room any more.
  Status prepare();

  // Cuts off what was not needed; for slots that are not mapped.
  Status trim(std::uint64_t bytes);

 private:
  friend class Tier;
  // Makes the file at least `bytes` long, backed by real space, and mapped anew if `mapped`.
  Status resize(std::uint64_t bytes, bool mapped);
  Status map(std::uint64_t bytes, bool mapped);
  void unmap();

  sys::File file_;
  std::byte* mapping_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t content_ = 0;
  std::uint64_t unprepared_ = 0;  // bytes that prepare() is to reserve; 0: none
  bool is_to_be_mapped_ = false;  // set by prepare()
  std::string name_;
  bool is_settled_ = false;
  bool is_borrowed_ = false;  // it belongs to another process, which waits for it
};

}  // namespace diapause::store
