// Exchanges typed values among all ranks: the value of each rank becomes known on all of them.
// Collective.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/job/context.hpp"
#include "format/wire.hpp"

namespace diapause::engine {

// Holds the values of all processes, by their places in the Comm. They travel as bytes between
// processes of one program.
template <class Value>
using Gathered = std::vector<std::vector<Value>>;

// Plain values travel as they lie in memory, and texts with their length. Any other type has two
// members:
//   void put(format::Writer&) const;
//   bool get(format::Reader&);  // false if that is not what put() writes
template <class Value>
void put(format::Writer& writer, const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    writer.sized_text(value);
  } else {
    value.put(writer);
  }
}

template <class Value>
bool get(format::Reader& reader, Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    value = reader.sized_text();
    return reader.ok();
  } else {
    return value.get(reader);
  }
}

template <class Value>
ByteVector packed(std::span<const Value> values) {
  if constexpr (std::is_trivially_copyable_v<Value>) {
    const ByteView bytes = std::as_bytes(values);
    return {bytes.begin(), bytes.end()};
  } else {
    format::Writer writer(256);
    for (const Value& value : values) put(writer, value);
    return writer.take();
  }
}

// Returns the values in one rank's message. Code::comm if it did not arrive whole; `what` describes
// the values.
template <class Value>
Result<std::vector<Value>> values_in(ByteView part, const char* what) {
  std::vector<Value> values;
  bool is_whole = true;
  if constexpr (std::is_trivially_copyable_v<Value>) {
    values.resize(part.size() / sizeof(Value));
    is_whole = part.size() % sizeof(Value) == 0;
    if (is_whole && !values.empty()) std::memcpy(values.data(), part.data(), part.size());
  } else {
    format::Reader reader(part);
    while (is_whole && reader.remaining() > 0) is_whole = get(reader, values.emplace_back());
  }
  if (!is_whole) return fail(Code::comm, std::string(what) + " did not arrive whole");
  return values;
}

// Returns the values of all ranks on all ranks. Fails on all ranks, with the first error, if `mine`
// is a failure anywhere.
template <class Value>
Result<Gathered<Value>> gather_values(const Context& context, const Status& mine,
                                      std::span<const Value> values, const char* what) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> parts,
                      agree_and_gather(context, mine, packed(values)));
  Gathered<Value> all;
  for (const ByteVector& part : parts) {
    DIAPAUSE_TRY_ASSIGN(std::vector<Value> of_one, values_in<Value>(part, what));
    all.push_back(std::move(of_one));
  }
  return all;
}

// Returns one value of each process in `comm`, by its place there. Does not agree on anything.
template <class Value>
Result<std::vector<Value>> gather_one(comm::Comm& comm, const Value& mine) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> parts,
                      comm.all_gather(packed(std::span(&mine, 1))));
  std::vector<Value> all;
  for (const ByteVector& part : parts) {
    DIAPAUSE_TRY_ASSIGN(std::vector<Value> of_one, values_in<Value>(part, "a rank's value"));
    if (of_one.size() != 1) return fail(Code::comm, "a rank's value did not arrive whole");
    all.push_back(std::move(of_one.front()));
  }
  return all;
}

}  // namespace diapause::engine
