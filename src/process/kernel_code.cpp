#include "process/kernel_code.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "format/checksum.hpp"
#include "process/trace.hpp"
#include "process/x86_64/machine.hpp"
#include "process/x86_64/vdso.hpp"

namespace diapause::process {
namespace {

constexpr const char* kCode = "[vdso]";

// Returns whether this machine has what an area of the kernel holds in the image.
bool is_same(const Area& area, const std::vector<Mapping>& mappings, ByteView own) {
  const auto here =
      std::ranges::find_if(mappings, [&](const Mapping& one) { return one.name == area.name; });
  return here != mappings.end() && here->end - here->begin == area.end - area.begin &&
         (area.checksum == 0 || format::checksum64(own) == area.checksum);
}

// Checks that processes can go on with the code that they know as memory of their own. A thread in
// that code would read clocks of the other kernel.
Status check_process(const Process& process, const Area& area, ByteView known) {
  if (!has_kernel_code(area)) return {};
  if (known.size() != area.end - area.begin || format::checksum64(known) != area.checksum) {
    return fail(Code::mismatch,
                "the kernel here gives processes another [vdso] than the one that the image was "
                "made under, and the image does not hold that: restart under that kernel");
  }
  for (const Thread& thread : process.threads) {
    Registers registers;
    std::memcpy(&registers, thread.registers.data(), sizeof registers);
    if (registers.rip < area.begin || registers.rip >= area.end) continue;
    return fail(Code::mismatch,
                fmt::format("thread {} was in code of another kernel than the one here: take "
                            "another version, or restart under that kernel",
                            thread.id));
  }
  return {};
}

}  // namespace

bool is_of_kernel(const Mapping& mapping) {
  return has_kernel_code(mapping) || mapping.name.starts_with("[vvar");
}

bool has_kernel_code(const Mapping& mapping) { return mapping.name == kCode; }

bool has_kernel_code(const Area& area) {
  return area.kind == AreaKind::kernel && area.name == kCode;
}

Result<KernelCode> KernelCode::for_job(const Job& job) {
  KernelCode code;
  DIAPAUSE_TRY_ASSIGN(const std::vector<Mapping> mappings, places_of(::getpid()));
  for (const Mapping& mapping : mappings) {
    if (!has_kernel_code(mapping)) continue;
    code.own_.resize(mapping.end - mapping.begin);
    DIAPAUSE_TRY(read_memory(::getpid(), mapping.begin, code.own_));
  }
  const auto for_all = [&](const auto& action) -> Status {
    for (const Process& process : job.processes) {
      for (const Area& area : process.areas) {
        if (area.kind == AreaKind::kernel && !process.has_ended)
          DIAPAUSE_TRY(action(process, area));
      }
    }
    return {};
  };
  DIAPAUSE_TRY(for_all([&](const Process&, const Area& area) -> Status {
    code.is_known_ = code.is_known_ && is_same(area, mappings, code.own_);
    return {};
  }));
  if (code.is_known_) return code;
  code.known_ = job.kernel_code;
  DIAPAUSE_TRY(for_all([&](const Process& process, const Area& area) {
    return check_process(process, area, code.known_);
  }));
  DIAPAUSE_TRY(code.known_leading_to(0));
  return code;
}

// The range above the programs and below the libraries is empty in most processes.
std::uint64_t KernelCode::place_in(const Process& process, std::uint64_t bytes, Extent taken) {
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 40, kMargin = 16 * kPageBytes;
  std::uint64_t place = kFirst;
  const auto stay_clear_of = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin < place + bytes + kMargin && place < end + kMargin) place = end + kMargin;
  };
  for (const Area& area : process.areas) {
    if (area.kind == AreaKind::foreign) continue;
    stay_clear_of(taken.begin, taken.end);
    stay_clear_of(area.begin, area.end);
  }
  return place;
}

Result<ByteVector> KernelCode::known_leading_to(std::uint64_t address) const {
  return lead_over(known_, own_, address);
}

}  // namespace diapause::process
