// The input is the processes of an image. They are decoded as they are, and again with length and
// digest made sound. What they say of registers and of the kernel's code is then made to fit.
#include "process/state.hpp"
#include "process/x86_64/processor.hpp"
#include "process/x86_64/vdso.hpp"
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
  const process::Processor here{{}, {{2, 576, 256}, {9, 832, 8}}, 840};
  for (const process::Process& process : job->processes) {
    for (const process::Thread& thread : process.threads) {
      const auto fitted =
          process::fit_registers(thread.extended_registers, job->register_parts, here);
      fuzz::must_hold(!fitted || fitted->size() == here.bytes, "registers fit this processor");
    }
  }
  (void)process::lead_over(job->kernel_code, job->kernel_code, 0);
  const auto again = process::decode_job(process::encode_job(*job));
  fuzz::must_hold(again.has_value(), "what was decoded can be decoded again");
  return 0;
}
