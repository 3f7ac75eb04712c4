// Exchange of values of one plain type, or of texts, among all ranks. Collective.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/job/context.hpp"

namespace diapause::engine {

// The values of each process, by its place in the Comm. They travel as bytes between processes of
// one program.
template <class Value>
using Gathered = std::vector<std::vector<Value>>;

// Returns the values in one rank's message. Code::comm if it did not arrive whole; `what` describes
// the values.
template <class Value>
Result<std::vector<Value>> values_in(ByteView part, const char* what) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (part.size() % sizeof(Value) != 0) return fail(Code::comm, std::string(what) + " did not arrive whole");
  std::vector<Value> values(part.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), part.data(), part.size());
  return values;
}

// Returns the values of all ranks on all ranks. Fails on all ranks, with the first error, if `mine`
// is a failure anywhere.
template <class Value>
Result<Gathered<Value>> gather_values(const Context& context, const Status& mine, std::span<const Value> values,
                                      const char* what) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> parts, agree_and_gather(context, mine, std::as_bytes(values)));
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
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> parts, comm.all_gather(as_byte_view(mine)));
  std::vector<Value> all;
  for (const ByteVector& part : parts) {
    DIAPAUSE_TRY_ASSIGN(const std::vector<Value> of_one, values_in<Value>(part, "a rank's value"));
    if (of_one.size() != 1) return fail(Code::comm, "a rank's value did not arrive whole");
    all.push_back(of_one.front());
  }
  return all;
}

// Gathers texts, which may hold any bytes, in the same way as gather_values().
Result<Gathered<std::string>> gather_texts(const Context& context, const Status& mine,
                                           std::span<const std::string> texts, const char* what);

}  // namespace diapause::engine
