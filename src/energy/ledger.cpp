#include "energy/ledger.hpp"

#include <array>

namespace diapause::energy {

Result<Ledger> Ledger::open(const sys::Directory& directory) {
  auto file = directory.open_file(kFileName, sys::Access::append);
  if (!file && file.error().code == Code::not_found) {
    DIAPAUSE_TRY(directory.create_file(kFileName));
    file = directory.open_file(kFileName, sys::Access::append);
  }
  if (!file) return fail(file.error());
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file->size());
  Ledger ledger(std::move(*file));
  std::array<std::byte, 1> last{std::byte{'\n'}};
  if (size > 0) DIAPAUSE_TRY(ledger.file_.read_exact(last, size - 1));
  if (last[0] != std::byte{'\n'}) DIAPAUSE_TRY(ledger.append(""));
  return ledger;
}

Status Ledger::append(const std::string& json_object) {
  // The remains of a cut line must not pass for a record, even if only its end is missing, because
  // the caller may append it again.
  const std::string line = (is_cut_ ? "~\n" : "") + json_object + "\n";
  Status written = file_.write_all(as_byte_view(line), 0);
  is_cut_ = !written;
  return written;
}

}  // namespace diapause::energy
