// The first words on a connection between processes of one job: each end shows that it knows the
// job's secret, which does not travel. What follows is as open to the network as the messages of
// the job itself.
#pragma once

#include <cstdint>
#include <string>

#include "base/sha256.hpp"
#include "sys/network.hpp"

namespace diapause::agent {

// Random bytes that all processes of one start of a job know, and nobody else.
struct Secret {
  Digest bytes{};

  static Result<Secret> draw();
  // One for another purpose, from which this one cannot be found.
  Secret derive(const std::string& purpose) const;
  // In hexadecimal digits.
  std::string text() const;
  static Result<Secret> parse(const std::string& text);
};

// Who connects, and what it says of itself.
struct Hello {
  std::uint32_t who = 0;
  std::uint32_t number = 0;
};

// Connecting end. Code::denied: the other end does not know the secret.
Status greet(sys::Stream& stream, const Secret& secret, const Hello& hello, double most_s);
// Accepting end.
Result<Hello> welcome(sys::Stream& stream, const Secret& secret, double most_s);

}  // namespace diapause::agent
