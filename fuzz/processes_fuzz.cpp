// The input is the processes of an image. They are decoded as they are, and again with length and
// digest made sound.
#include "process/state.hpp"
#include "seal.hpp"

using namespace diapause;

namespace {

constexpr std::size_t kLengthOffset = 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteVector bytes = fuzz::copy_of(data, size);
  (void)process::decode_job(bytes);

  fuzz::seal(bytes, kLengthOffset);
  const auto job = process::decode_job(bytes);
  if (!job) {
    fuzz::must_hold(!job.error().message.empty(), "a refusal says why");
    return 0;
  }
  for (const process::Process& process : job->processes) {
    fuzz::must_hold(!process.threads.empty(), "a process has a thread");
    for (const process::Descriptor& one : process.descriptors) {
      fuzz::must_hold(one.description < job->descriptions.size(), "a descriptor has a description");
    }
  }
  const auto again = process::decode_job(process::encode_job(*job));
  fuzz::must_hold(again.has_value(), "what was decoded can be decoded again");
  return 0;
}
