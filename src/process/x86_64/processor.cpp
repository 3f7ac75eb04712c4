#include "process/x86_64/processor.hpp"

#include <cpuid.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace diapause::process {
namespace {

// The standard format of saved registers (Intel's manual, volume 1, chapter 13): 512 bytes of
// FXSAVE, of which the kernel uses some for itself, then a header that begins with a bit for each
// part in use, then the parts.
constexpr std::size_t kKernelBegin = 464, kHeader = 512, kParts = 576;
constexpr std::uint64_t kAlways = 3;  // parts 0 and 1, x87 and SSE, are in the first 512 bytes
constexpr std::uint32_t kProtectionKeys = 9;
constexpr std::uint32_t kRegistersLeaf = 0xd;

// The registers that CPUID answers in.
enum Answer : std::uint8_t { eax, ebx, ecx, edx };

std::array<std::uint32_t, 4> ask(std::uint32_t leaf, std::uint32_t part) {
  std::array<std::uint32_t, 4> answer{};
  __get_cpuid_count(leaf, part, &answer[eax], &answer[ebx], &answer[ecx], &answer[edx]);
  return answer;
}

struct InstructionSet {
  std::uint32_t leaf, part;
  Answer answer;
  std::uint32_t bit;
  const char* name;
};

// Programs and libraries choose code by these sets when they start. Sets that only one maker has
// and that no library is known to choose by, such as SSE4A, are left out: a job that happened to
// start where they are could go on nowhere else.
constexpr InstructionSet kSets[] = {
    {1, 0, ecx, 0, "pni"},
    {1, 0, ecx, 1, "pclmulqdq"},
    {1, 0, ecx, 9, "ssse3"},
    {1, 0, ecx, 12, "fma"},
    {1, 0, ecx, 13, "cx16"},
    {1, 0, ecx, 19, "sse4_1"},
    {1, 0, ecx, 20, "sse4_2"},
    {1, 0, ecx, 22, "movbe"},
    {1, 0, ecx, 23, "popcnt"},
    {1, 0, ecx, 25, "aes"},
    {1, 0, ecx, 27, "xsave"},
    {1, 0, ecx, 28, "avx"},
    {1, 0, ecx, 29, "f16c"},
    {1, 0, ecx, 30, "rdrand"},
    {7, 0, ebx, 0, "fsgsbase"},
    {7, 0, ebx, 3, "bmi1"},
    {7, 0, ebx, 4, "hle"},
    {7, 0, ebx, 5, "avx2"},
    {7, 0, ebx, 8, "bmi2"},
    {7, 0, ebx, 11, "rtm"},
    {7, 0, ebx, 16, "avx512f"},
    {7, 0, ebx, 17, "avx512dq"},
    {7, 0, ebx, 18, "rdseed"},
    {7, 0, ebx, 19, "adx"},
    {7, 0, ebx, 21, "avx512ifma"},
    {7, 0, ebx, 23, "clflushopt"},
    {7, 0, ebx, 24, "clwb"},
    {7, 0, ebx, 28, "avx512cd"},
    {7, 0, ebx, 29, "sha_ni"},
    {7, 0, ebx, 30, "avx512bw"},
    {7, 0, ebx, 31, "avx512vl"},
    {7, 0, ecx, 1, "avx512vbmi"},
    {7, 0, ecx, 4, "ospke"},
    {7, 0, ecx, 5, "waitpkg"},
    {7, 0, ecx, 6, "avx512_vbmi2"},
    {7, 0, ecx, 8, "gfni"},
    {7, 0, ecx, 9, "vaes"},
    {7, 0, ecx, 10, "vpclmulqdq"},
    {7, 0, ecx, 11, "avx512_vnni"},
    {7, 0, ecx, 12, "avx512_bitalg"},
    {7, 0, ecx, 14, "avx512_vpopcntdq"},
    {7, 0, ecx, 22, "rdpid"},
    {7, 0, ecx, 27, "movdiri"},
    {7, 0, ecx, 28, "movdir64b"},
    {7, 0, edx, 8, "avx512_vp2intersect"},
    {7, 0, edx, 14, "serialize"},
    {7, 0, edx, 22, "amx_bf16"},
    {7, 0, edx, 23, "avx512_fp16"},
    {7, 0, edx, 24, "amx_tile"},
    {7, 0, edx, 25, "amx_int8"},
    {7, 1, eax, 4, "avx_vnni"},
    {7, 1, eax, 5, "avx512_bf16"},
    {7, 1, eax, 23, "avx_ifma"},
    {kRegistersLeaf, 1, eax, 0, "xsaveopt"},
    {kRegistersLeaf, 1, eax, 1, "xsavec"},
    {kRegistersLeaf, 1, eax, 2, "xgetbv1"},
    {0x80000001, 0, ecx, 5, "abm"},
    {0x80000001, 0, ecx, 11, "xop"},
    {0x80000001, 0, ecx, 16, "fma4"},
    {0x80000001, 0, edx, 27, "rdtscp"},
};

std::string name_of_part(std::uint32_t number) {
  if (number == 2) return "AVX";
  if (number >= 5 && number <= 7) return "AVX-512";
  if (number == 17 || number == 18) return "AMX";
  return fmt::format("part {}", number);
}

bool has_only_zeros(ByteView bytes) {
  return std::ranges::all_of(bytes, [](std::byte one) { return one == std::byte{0}; });
}

// What the kernel says of saved registers in a signal frame, in the bytes of FXSAVE that are its
// own (struct _fpx_sw_bytes of asm/sigcontext.h). A second magic number lies behind the registers.
struct FrameNote {
  std::uint32_t magic, bytes_with_magic;
  std::uint64_t parts;
  std::uint32_t bytes, padding[7];
};
static_assert(sizeof(FrameNote) == kHeader - kKernelBegin);
constexpr std::uint32_t kFirstMagic = 0x46505853, kSecondMagic = 0x46505845;

template <class T>
T load(ByteView bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
template <class T>
void save(MutableBytes bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// Returns the bits of the parts that lie at the same place in both.
std::uint64_t parts_at_same_place(const std::vector<RegisterPart>& from, const Processor& here) {
  std::uint64_t same = kAlways;
  for (const RegisterPart& part : from) {
    if (part.number < 64 && std::ranges::find(here.parts, part) != here.parts.end())
      same |= std::uint64_t{1} << part.number;
  }
  return same;
}

}  // namespace

Processor this_processor() {
  Processor processor;
  InstructionSet last{};
  std::array<std::uint32_t, 4> answer{};
  for (const InstructionSet& set : kSets) {
    // A virtual machine may take microseconds for each question.
    if (set.leaf != last.leaf || set.part != last.part) answer = ask(set.leaf, set.part);
    last = set;
    if ((answer[set.answer] >> set.bit & 1) != 0) processor.instructions.emplace_back(set.name);
  }
  const auto enabled = ask(kRegistersLeaf, 0);
  processor.bytes = enabled[ebx];
  const std::uint64_t parts = std::uint64_t{enabled[edx]} << 32 | enabled[eax];
  for (std::uint32_t number = 2; number < 63; ++number) {
    if ((parts >> number & 1) == 0) continue;
    const auto part = ask(kRegistersLeaf, number);
    constexpr std::uint32_t kOfSystem = 1;  // not in the standard format
    if (part[eax] != 0 && (part[ecx] & kOfSystem) == 0)
      processor.parts.push_back({number, part[ebx], part[eax]});
  }
  return processor;
}

Result<ByteVector> fit_registers(ByteView saved, const std::vector<RegisterPart>& from,
                                 const Processor& here) {
  const bool is_same = from.empty() || from == here.parts;
  if (is_same && saved.size() == here.bytes) return ByteVector(saved.begin(), saved.end());
  if (from.empty()) {
    return fail(Code::mismatch,
                fmt::format("the processor here saves {} bytes of registers, and that of the "
                            "image {}: restart on a processor of the same model",
                            here.bytes, saved.size()));
  }
  if (saved.size() < kParts || here.bytes < kParts)
    return fail(Code::corrupt, "vector registers of another length");
  ByteVector fitted(here.bytes);
  std::ranges::copy(saved.first(kKernelBegin), fitted.begin());
  std::ranges::copy(saved.subspan(kHeader, kParts - kHeader),
                    fitted.begin() + static_cast<std::ptrdiff_t>(kHeader));
  auto used = load<std::uint64_t>(saved, kHeader);
  std::uint64_t kept = used & kAlways;
  for (const RegisterPart& part : from) {
    if (part.number >= 64 || (used >> part.number & 1) == 0) continue;
    used &= ~(std::uint64_t{1} << part.number);
    if (part.offset > saved.size() || part.bytes > saved.size() - part.offset)
      return fail(Code::corrupt, "vector registers that are not all there");
    const ByteView bytes = saved.subspan(part.offset, part.bytes);
    const auto to = std::ranges::find(here.parts, part.number, &RegisterPart::number);
    if (to != here.parts.end() && to->bytes == part.bytes) {
      std::ranges::copy(bytes, fitted.begin() + static_cast<std::ptrdiff_t>(to->offset));
      kept |= std::uint64_t{1} << part.number;
    } else if (part.number != kProtectionKeys && !has_only_zeros(bytes)) {
      // Without protection keys all memory may be used, and no image has memory with such a key.
      return fail(Code::mismatch, fmt::format("the processor here has no registers for {}, which "
                                              "are in use: restart on one that has them",
                                              name_of_part(part.number)));
    }
  }
  if ((used & ~kAlways) != 0) return fail(Code::corrupt, "vector registers of an unknown kind");
  save(fitted, kHeader, kept);
  return fitted;
}

// A part that lies elsewhere here counts as not in use. That loses nothing of protection keys,
// which processes of an image do not use; there is no room in a frame to move others.
std::size_t fit_signal_frames(MutableBytes stack, const std::vector<RegisterPart>& from,
                              std::uint64_t bytes, const Processor& here) {
  constexpr std::size_t kAlignment = 64;
  const std::uint64_t fitting = parts_at_same_place(from, here);
  std::size_t count = 0;
  if (bytes < kParts) return 0;
  for (std::size_t at = 0; at + bytes + sizeof kSecondMagic <= stack.size(); at += kAlignment) {
    const MutableBytes frame = stack.subspan(at);
    auto note = load<FrameNote>(frame, kKernelBegin);
    const bool is_one = note.magic == kFirstMagic && note.bytes == bytes &&
                        load<std::uint32_t>(frame, bytes) == kSecondMagic;
    if (!is_one) continue;
    note.parts &= fitting;
    note.bytes = static_cast<std::uint32_t>(std::min(bytes, here.bytes));
    save(frame, kKernelBegin, note);
    save(frame, kHeader, load<std::uint64_t>(frame, kHeader) & fitting);
    save(frame, note.bytes, kSecondMagic);
    ++count;
  }
  return count;
}

}  // namespace diapause::process
