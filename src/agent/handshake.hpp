// Exchanges the first words on a connection between processes of one job: each end shows that it
// knows the job's secret, which does not travel. The data that follow are as open to the network as
// the messages of the job itself.
#pragma once

#include <cstdint>
#include <string>

#include "base/sha256.hpp"
#include "sys/network.hpp"

namespace diapause::agent {

// A secret is random bytes that all processes of one start of a job know, and nobody else.
struct Secret {
  Digest bytes{};

  static Result<Secret> draw();
  // Returns one for another purpose, from which this one cannot be found.
  Secret derive(const std::string& purpose) const;
  // Returns it in hexadecimal digits.
  std::string text() const;
  static Result<Secret> parse(const std::string& text);
};

// This is who connects, and what it says of itself.
struct Hello {
  std::uint32_t who = 0;
  std::uint32_t number = 0;
};

// Does the part of the connecting end. Code::denied says that the other end does not know the
// secret.
Status greet(sys::Stream& stream, const Secret& secret, const Hello& hello, double most_s);
// Does the part of the accepting end.
Result<Hello> welcome(sys::Stream& stream, const Secret& secret, double most_s);

}  // namespace diapause::agent
