// An image that comes from other processes into a slot of this one: a copy of another rank's image,
// or one that its node has lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capture/stream_writer.hpp"
#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

struct Incoming {
  std::uint32_t owner;  // the rank
  std::uint64_t bytes;
  store::Slot slot;
};

// Writes the pieces of one image, from front to back.
class IncomingSink {
 public:
  // `incoming` must outlive the object.
  static Result<IncomingSink> create(const Incoming& incoming);
  std::uint64_t left() const { return incoming_->bytes - done_; }
  // Returns a place for the next `length` bytes, valid until advance(length).
  MutableBytes room(std::uint64_t length) {
    return writer_ ? writer_->room(length) : incoming_->slot.mapping().subspan(done_, length);
  }
  Status advance(std::uint64_t length) {
    done_ += length;
    return writer_ ? writer_->advance(length) : Status{};
  }
  Status finish() { return writer_ ? writer_->finish() : Status{}; }

 private:
  explicit IncomingSink(const Incoming& incoming) : incoming_(&incoming) {}
  const Incoming* incoming_;
  std::uint64_t done_ = 0;
  std::optional<capture::StreamWriter> writer_;
};

// One for each of them, in their order.
Result<std::vector<IncomingSink>> make_sinks(const std::vector<Incoming>& incoming);

// Keeps the image in the version, if it is what the manifest says.
Status keep_incoming(const Context& context, Catalogue& catalogue, const Work& work,
                     Incoming incoming);

}  // namespace diapause::engine
