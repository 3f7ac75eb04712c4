// What ranks tell each other: values of one plain type, or texts. Collective.
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

// By place in the Comm, what each put in. All values travel as bytes between processes of one program.
template <class Value>
using Gathered = std::vector<std::vector<Value>>;

// The values in what one rank sent. Code::comm if it did not arrive whole; `what` says what these are.
template <class Value>
Result<std::vector<Value>> values_in(ByteView part, const char* what) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (part.size() % sizeof(Value) != 0) return fail(Code::comm, std::string(what) + " did not arrive whole");
  std::vector<Value> values(part.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), part.data(), part.size());
  return values;
}

// Everybody gets the values of all. Fails on all ranks, with the first error, if `mine` is a failure anywhere.
template <class Value>
Result<Gathered<Value>> gather_values(Context& context, const Status& mine, std::span<const Value> values,
                                      const char* what) {
  DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> parts, agree_and_gather(context, mine, std::as_bytes(values)));
  Gathered<Value> all;
  for (const ByteVector& part : parts) {
    DIAPAUSE_TRY_ASSIGN(std::vector<Value> of_one, values_in<Value>(part, what));
    all.push_back(std::move(of_one));
  }
  return all;
}

// One value of each process in `comm`, by its place there. Does not agree on anything.
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

// The same for texts, which may hold any bytes.
Result<Gathered<std::string>> gather_texts(Context& context, const Status& mine, std::span<const std::string> texts,
                                           const char* what);

}  // namespace diapause::engine
