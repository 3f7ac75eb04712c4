#include "store/finished.hpp"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "format/checksum.hpp"
#include "store/names.hpp"

namespace diapause::store {
namespace {

constexpr std::string_view kFirstLine = "diapause finished 1";

std::string with_digest(std::string text) {
  return text + fmt::format("digest {:016x}\n", format::checksum64(as_byte_view(text)));
}

// Takes the line "<word> <value>" off the front of `text`; nothing if there is another one.
std::optional<std::string_view> take_line(std::string_view& text, std::string_view word) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(word)) return std::nullopt;
  const std::string_view line = text.substr(word.size(), end - word.size());
  if (!line.starts_with(' ')) return std::nullopt;
  text.remove_prefix(end + 1);
  return line.substr(1);
}

std::optional<FinishedMark> parse(std::string_view text) {
  if (!text.starts_with(kFirstLine) || !text.substr(kFirstLine.size()).starts_with('\n'))
    return std::nullopt;
  text.remove_prefix(kFirstLine.size() + 1);
  const auto incarnation = take_line(text, "incarnation");
  const auto archive = take_line(text, "archive");
  if (!incarnation || !archive) return std::nullopt;
  FinishedMark mark;
  const char* const end = incarnation->data() + incarnation->size();
  if (std::from_chars(incarnation->data(), end, mark.incarnation).ptr != end) return std::nullopt;
  if (*archive == "none") return mark;
  mark.archive = parse_version_directory(*archive);
  if (!mark.archive) return std::nullopt;
  return mark;
}

}  // namespace

std::string encode_finished(const FinishedMark& mark) {
  return with_digest(fmt::format("{}\nincarnation {}\narchive {}\n", kFirstLine, mark.incarnation,
                                 mark.archive ? version_directory(*mark.archive) : "none"));
}

Result<FinishedMark> decode_finished(const std::string& text) {
  const std::size_t digest = text.rfind("digest ");
  const bool is_whole = digest != std::string::npos && with_digest(text.substr(0, digest)) == text;
  const auto mark = is_whole ? parse(text) : std::nullopt;
  if (!mark) return fail(Code::corrupt, "is damaged, or of a later version of Diapause");
  return *mark;
}

Result<FinishedMark> read_finished(const sys::Directory& job) {
  auto file = job.open_file(kFinishedName, sys::Access::read);
  if (!file && file.error().code == Code::not_found) return FinishedMark{};
  if (!file) return fail(file.error());
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file->size());
  constexpr std::uint64_t kMostBytes = 4096;
  std::string text(std::min(size, kMostBytes), '\0');
  DIAPAUSE_TRY(file->read_exact(std::as_writable_bytes(std::span(text)), 0));
  auto mark = decode_finished(text);
  if (!mark) mark.error().message = file->path() + ": " + mark.error().message;
  return mark;
}

Status write_finished(const sys::Directory& job, const FinishedMark& mark) {
  const std::string temporary = std::string(kFinishedName) + ".tmp";
  DIAPAUSE_TRY_ASSIGN(const sys::File file, job.create_file(temporary));
  DIAPAUSE_TRY(file.write_all(as_byte_view(encode_finished(mark)), 0));
  DIAPAUSE_TRY(file.sync());
  DIAPAUSE_TRY(job.rename(temporary, job, kFinishedName));
  return job.sync();
}

}  // namespace diapause::store
