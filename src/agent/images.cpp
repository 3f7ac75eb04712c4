#include "agent/images.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>

#include "format/checksum.hpp"
#include "process/contents.hpp"

namespace diapause::agent {
namespace {

std::string name_of(const process::Contents& contents) {
  if (contents.process != 0) return fmt::format("{}/{:x}", contents.process, contents.offset);
  return fmt::format("shared/{}/{:x}", contents.shared, contents.offset);
}

bool take_number(std::string_view& text, int base, std::uint64_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return parsed.ec == std::errc();
}

std::optional<process::StoredContents> parse_name(std::string_view name) {
  process::StoredContents contents;
  std::uint64_t number = 0;
  const bool is_shared = name.starts_with("shared/");
  if (is_shared) name.remove_prefix(7);
  if (!take_number(name, 10, number) || number > UINT32_MAX || !name.starts_with("/"))
    return std::nullopt;
  (is_shared ? contents.shared : contents.process) = static_cast<std::uint32_t>(number);
  name.remove_prefix(1);
  if (!take_number(name, 16, contents.offset) || !name.empty()) return std::nullopt;
  return contents;
}

// Returns whether the contents lie in memory of a process of the job, or in one of its shared
// memories.
bool fits(const process::Job& job, const process::StoredContents& contents) {
  const std::uint64_t end = contents.offset + contents.bytes;
  if (end < contents.offset) return false;
  if (contents.process == 0) {
    if (contents.shared >= job.memories.size()) return false;
    const process::SharedMemory& memory = job.memories[contents.shared];
    return memory.kind == process::SharedKind::job_file
               ? end <= memory.bytes
               : contents.offset <= memory.bytes + kPageBytes;
  }
  const auto process = std::ranges::find(job.processes, contents.process, &process::Process::id);
  return process != job.processes.end() &&
         std::ranges::any_of(process->areas, [&](const process::Area& area) {
           return area.kind == process::AreaKind::memory && contents.offset >= area.begin &&
                  end <= area.end;
         });
}

}  // namespace

DumpSource::DumpSource(const process::Dump& dump, unsigned threads)
    : dump_(dump), processes_(process::encode_job(dump.job)), threads_(threads) {}

format::ImageIndex DumpSource::index() const {
  format::ImageIndex index;
  format::Region first;
  first.name = kProcessesRegion;
  first.count = processes_.size();
  index.regions.push_back(std::move(first));
  for (const process::Contents& contents : dump_.contents) {
    format::Region region;
    region.name = name_of(contents);
    region.count = contents.bytes;
    index.regions.push_back(std::move(region));
  }
  return index;
}

Result<std::uint64_t> DumpSource::copy(std::size_t region, std::uint64_t offset, MutableBytes to) {
  if (region == 0) {
    std::memcpy(to.data(), processes_.data() + offset, to.size());
  } else {
    DIAPAUSE_TRY(process::read_contents(dump_.contents[region - 1], offset, to));
  }
  return format::checksum64(to);
}

Status read_contents(StoredImage& stored, const process::ContentsList& contents,
                     const process::TakePiece& take) {
  std::vector<bool> is_wanted(stored.image.index().regions.size());
  std::vector<const process::StoredContents*> of_region(is_wanted.size());
  for (const process::StoredContents* one : contents) {
    is_wanted[one->region] = true;
    of_region[one->region] = one;
  }
  std::atomic<bool> has_refused = false;
  const Status read = stored.image.visit(
      is_wanted, stored.threads, [&](std::size_t region, std::uint64_t offset, ByteView bytes) {
        Status taken = take(*of_region[region], offset, bytes);
        if (!taken) has_refused = true;
        return taken;
      });
  if (!read && !has_refused) stored.sound = read;
  return read;
}

Result<StoredJob> read_job(store::ImageReader& image) {
  const std::vector<format::Region>& regions = image.index().regions;
  if (regions.empty() || regions.front().name != kProcessesRegion) {
    return fail(Code::mismatch,
                "the image holds no processes: its program takes its checkpoints itself");
  }
  ByteVector encoded;
  std::vector<bool> is_wanted(regions.size());
  is_wanted.front() = true;
  encoded.resize(regions.front().raw_bytes());
  DIAPAUSE_TRY(
      image.visit(is_wanted, 1, [&](std::size_t, std::uint64_t offset, ByteView bytes) -> Status {
        std::memcpy(encoded.data() + offset, bytes.data(), bytes.size());
        return {};
      }));
  StoredJob stored;
  DIAPAUSE_TRY_ASSIGN(stored.job, process::decode_job(encoded));
  for (std::size_t i = 1; i < regions.size(); ++i) {
    auto contents = parse_name(regions[i].name);
    if (contents) {
      contents->bytes = regions[i].raw_bytes();
      contents->region = i;
    }
    if (!contents || !fits(stored.job, *contents)) {
      return fail(Code::corrupt,
                  "the image holds a region that belongs to no process: " + regions[i].name);
    }
    stored.contents.push_back(*contents);
  }
  return stored;
}

}  // namespace diapause::agent
