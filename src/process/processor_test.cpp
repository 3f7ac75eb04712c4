#include "process/x86_64/processor.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

namespace diapause::process {
namespace {

constexpr std::uint64_t kX87AndSse = 3, kAvx = 1u << 2, kMasks = 1u << 5, kKeys = 1u << 9;
const std::vector<RegisterPart> kSmall = {{2, 576, 256}, {9, 832, 8}};
const Processor kLarge{{}, {{2, 576, 256}, {5, 1088, 64}, {9, 2688, 8}}, 2696};

void fill(ByteVector& bytes, std::size_t begin, std::size_t count, int value) {
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), count,
              static_cast<std::byte>(value));
}

ByteVector saved(std::size_t length, std::uint64_t used) {
  ByteVector bytes(length);
  fill(bytes, 0, 464, 7);
  std::memcpy(bytes.data() + 512, &used, sizeof used);
  return bytes;
}

std::uint64_t used_in(const ByteVector& bytes) {
  std::uint64_t used = 0;
  std::memcpy(&used, bytes.data() + 512, sizeof used);
  return used;
}

TEST(SavedRegisters, AreTheSameOnTheSameProcessor) {
  const Processor here = this_processor();
  ASSERT_GE(here.bytes, 576u);
  ByteVector bytes(here.bytes);
  fill(bytes, 0, bytes.size(), 1);
  EXPECT_EQ(fit_registers(bytes, here.parts, here).value(), bytes);
  EXPECT_EQ(fit_registers(bytes, {}, here).value(), bytes);
  EXPECT_TRUE(std::ranges::find(here.instructions, "pni") != here.instructions.end());
}

TEST(SavedRegisters, GoWhereThisProcessorHasThem) {
  ByteVector bytes = saved(840, kX87AndSse | kAvx | kKeys);
  fill(bytes, 576, 256, 2);
  fill(bytes, 832, 8, 3);
  const auto fitted = fit_registers(bytes, kSmall, kLarge);
  ASSERT_TRUE(fitted) << fitted.error().message;
  ByteVector wanted = saved(2696, kX87AndSse | kAvx | kKeys);
  fill(wanted, 576, 256, 2);
  fill(wanted, 2688, 8, 3);
  EXPECT_EQ(*fitted, wanted);
  EXPECT_EQ(fit_registers(*fitted, kLarge.parts, {{}, kSmall, 840}).value(), bytes);
}

TEST(SavedRegisters, AreRefusedWhereTheyAreInUseAndNotHere) {
  const Processor small{{}, kSmall, 840};
  ByteVector bytes = saved(2696, kX87AndSse | kAvx | kMasks);
  EXPECT_EQ(used_in(fit_registers(bytes, kLarge.parts, small).value()), kX87AndSse | kAvx)
      << "registers that hold zeros are in no use";
  fill(bytes, 1088 + 63, 1, 1);
  const auto refused = fit_registers(bytes, kLarge.parts, small);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::mismatch);
  EXPECT_NE(refused.error().message.find("AVX-512"), std::string::npos);
}

TEST(SavedRegisters, OfAnUnknownProcessorFitNoOther) {
  const auto refused = fit_registers(saved(840, kX87AndSse), {}, kLarge);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::mismatch);
}

TEST(SavedRegisters, AreNotBelieved) {
  const auto code_of = [](const ByteVector& bytes, const std::vector<RegisterPart>& parts) {
    const auto fitted = fit_registers(bytes, parts, kLarge);
    return fitted ? Code::internal : fitted.error().code;
  };
  EXPECT_EQ(code_of(saved(570, kX87AndSse), kSmall), Code::corrupt);
  EXPECT_EQ(code_of(saved(832, kX87AndSse | kKeys), kSmall), Code::corrupt);
  EXPECT_EQ(code_of(saved(840, kX87AndSse | kMasks), kSmall), Code::corrupt);
  EXPECT_EQ(code_of(saved(840, kX87AndSse | kAvx), {{2, 0xffffffff, 0xffffffff}}), Code::corrupt);
}

// What a signal has found on the stack, which the handler changes as a restart would.
struct Frame {
  const Processor* before = nullptr;
  const Processor* here = nullptr;
  std::size_t changed = 0;
  std::uint64_t bytes = 0, parts = 0;
};

void fit_own_frame(int, siginfo_t* signal, void* context) {
  Frame& frame = *static_cast<Frame*>(signal->si_value.sival_ptr);
  auto* const saved =
      reinterpret_cast<std::byte*>(static_cast<ucontext_t*>(context)->uc_mcontext.fpregs);
  const MutableBytes stack(saved, frame.before->bytes + 4);
  frame.changed = fit_signal_frames(stack, frame.before->parts, frame.before->bytes, *frame.here);
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, saved + 464 + 16, sizeof bytes);
  frame.bytes = bytes;
  std::memcpy(&frame.parts, saved + 512, sizeof frame.parts);
}

// Raises a signal with values in the upper halves of the vector registers, and returns whether they
// are there afterwards.
bool keeps_vectors(Frame& frame) {
  siginfo_t signal{};
  signal.si_code = SI_QUEUE;
  signal.si_value.sival_ptr = &frame;
  const std::array<std::uint64_t, 4> in = {1, 2, 3, 4};
  std::array<std::uint64_t, 4> out{};
  const pid_t process = ::getpid(), thread = ::gettid();
  long result = SYS_rt_tgsigqueueinfo;
  register const siginfo_t* fourth asm("r10") = &signal;
  asm volatile("vmovdqu %2, %%ymm13\n\tsyscall\n\tvmovdqu %%ymm13, %1"
               : "+a"(result), "=m"(out)
               : "m"(in), "D"(process), "S"(thread), "d"(SIGUSR2), "r"(fourth)
               : "rcx", "r11", "xmm13", "memory");
  return result == 0 && in == out;
}

TEST(FramesOfSignals, AreReturnedFromOnAnotherProcessor) {
  const Processor own = this_processor();
  if (std::ranges::find(own.instructions, "avx") == own.instructions.end())
    GTEST_SKIP() << "the processor has no AVX";
  // The last part is at another place, and nothing lies behind AVX.
  Processor other = own;
  if (other.parts.size() > 1) other.parts.back().offset += 64;
  other.bytes = 832;
  Frame frame;
  frame.before = &own;
  frame.here = &other;
  struct sigaction action {
  }, before{};
  action.sa_sigaction = fit_own_frame;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  EXPECT_TRUE(keeps_vectors(frame));
  ASSERT_EQ(::sigaction(SIGUSR2, &before, nullptr), 0);
  EXPECT_EQ(frame.changed, 1u);
  EXPECT_EQ(frame.bytes, 832u);
  EXPECT_NE(frame.parts & kAvx, 0u);
  EXPECT_TRUE(other.parts.size() < 2 || (frame.parts >> other.parts.back().number & 1) == 0);
}

TEST(FramesOfSignals, AreFoundAmongOtherBytes) {
  ByteVector stack(4096);
  EXPECT_EQ(fit_signal_frames(stack, kSmall, 840, kLarge), 0u);
  const std::uint32_t first = 0x46505853, second = 0x46505845, bytes = 840;
  const std::uint64_t parts = kX87AndSse | kAvx | kKeys;
  const std::size_t at = 1024;
  std::memcpy(stack.data() + at + 464, &first, 4);
  std::memcpy(stack.data() + at + 472, &parts, 8);
  std::memcpy(stack.data() + at + 480, &bytes, 4);
  std::memcpy(stack.data() + at + 512, &parts, 8);
  EXPECT_EQ(fit_signal_frames(stack, kSmall, 840, kLarge), 0u) << "without the second number";
  std::memcpy(stack.data() + at + 840, &second, 4);
  EXPECT_EQ(fit_signal_frames(stack, kSmall, 840, kLarge), 1u);
  std::uint64_t used = 0;
  std::memcpy(&used, stack.data() + at + 512, 8);
  EXPECT_EQ(used, kX87AndSse | kAvx);
  EXPECT_EQ(fit_signal_frames(MutableBytes(stack).first(at + 842), kSmall, 840, kLarge), 0u);
}

}  // namespace
}  // namespace diapause::process
