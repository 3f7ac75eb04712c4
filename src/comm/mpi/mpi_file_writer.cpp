#include "comm/mpi/mpi_file_writer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "comm/mpi/mpi_error.hpp"

namespace diapause::comm {
namespace {

// Records the first failure in `status`. A collective sequence continues after a failure, because
// the other ranks take part in it.
void note(Status& status, int code, const char* call, const std::string& path) {
  if (!status || code == MPI_SUCCESS) return;
  status = fail(Code::io, path + ": " + check(code, call).error().message);
}

constexpr std::uint64_t kPieceBytes = 16 * kMiB;

// Records a transfer that moved fewer bytes than it should have. An MPI may report success for one.
void note_count(Status& status, const MPI_Status& told, std::uint64_t length,
                const std::string& what) {
  int count = 0;
  const int code = MPI_Get_count(&told, MPI_BYTE, &count);
  if (!status || (code == MPI_SUCCESS && count >= 0 && static_cast<std::uint64_t>(count) == length))
    return;
  status = fail(Code::io,
                fmt::format("{}: {} of {} bytes", what, code == MPI_SUCCESS ? count : 0, length));
}

// Compares the file with `bytes`. In a collective write, other ranks may have written for this rank
// and failed without this rank being told.
Status compare_with_file(MPI_File file, const FilePart& part, ByteSource& bytes) {
  ByteVector scratch(std::min(bytes.size(), kPieceBytes));
  ByteVector room(scratch.size());
  for (std::uint64_t offset = 0; offset < bytes.size(); offset += kPieceBytes) {
    const std::uint64_t length = std::min(kPieceBytes, bytes.size() - offset);
    Status status;
    MPI_Status told;
    note(status,
         MPI_File_read_at(file,
                          static_cast<MPI_Offset>(part.offset) + static_cast<MPI_Offset>(offset),
                          room.data(), static_cast<int>(length), MPI_BYTE, &told),
         "MPI_File_read_at", part.path);
    if (status) note_count(status, told, length, part.path + " was read back");
    DIAPAUSE_TRY(status);
    DIAPAUSE_TRY_ASSIGN(const ByteView written,
                        bytes.view(offset, MutableBytes(scratch).first(length)));
    if (std::ranges::equal(written, ByteView(room).first(length))) continue;
    return fail(Code::io,
                fmt::format("{} does not hold what was written into it, between bytes {} and {}",
                            part.path, part.offset + offset, part.offset + offset + length));
  }
  return {};
}

// Writes the parts that the ranks of `together` have in one file.
Status write_together(MPI_Comm together, const FilePart& part, ByteSource& bytes) {
  Status status;
  std::uint64_t pieces = (bytes.size() + kPieceBytes - 1) / kPieceBytes;
  DIAPAUSE_TRY(check(MPI_Allreduce(MPI_IN_PLACE, &pieces, 1, MPI_UINT64_T, MPI_MAX, together),
                     "MPI_Allreduce"));
  MPI_File file = MPI_FILE_NULL;
  note(status, MPI_File_open(together, part.path.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file),
       "MPI_File_open", part.path);
  if (!status) return status;
  ByteVector scratch(std::min(bytes.size(), kPieceBytes));
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    const std::uint64_t offset = std::min(piece * kPieceBytes, bytes.size());
    const std::uint64_t length = std::min(kPieceBytes, bytes.size() - offset);
    auto view = bytes.view(offset, MutableBytes(scratch).first(length));
    if (!view && status) status = fail(std::move(view.error()));
    const ByteView data = view ? *view : ByteView(scratch).first(length);
    MPI_Status told;
    note(status,
         MPI_File_write_at_all(
             file, static_cast<MPI_Offset>(part.offset) + static_cast<MPI_Offset>(offset),
             data.data(), static_cast<int>(length), MPI_BYTE, &told),
         "MPI_File_write_at_all", part.path);
    if (status) note_count(status, told, length, part.path + " was written");
  }
  // After everybody has synced, and after another sync by the reader, all ranks' data can be read.
  note(status, MPI_File_sync(file), "MPI_File_sync", part.path);
  note(status, MPI_Barrier(together), "MPI_Barrier", part.path);
  note(status, MPI_File_sync(file), "MPI_File_sync", part.path);
  if (status) status = compare_with_file(file, part, bytes);
  note(status, MPI_File_close(&file), "MPI_File_close", part.path);
  return status;
}

class MpiFileWriter : public FileWriter {
 public:
  explicit MpiFileWriter(MPI_Comm comm) : comm_(comm) {}

  Status write(const FilePart& part, ByteSource& bytes) override {
    int rank = 0;
    DIAPAUSE_TRY(check(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank"));
    MPI_Comm together = MPI_COMM_NULL;
    DIAPAUSE_TRY(check(MPI_Comm_split(comm_, static_cast<int>(part.number), rank, &together),
                       "MPI_Comm_split"));
    DIAPAUSE_TRY(
        check(MPI_Comm_set_errhandler(together, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    Status written = write_together(together, part, bytes);
    MPI_Comm_free(&together);
    return written;
  }

 private:
  MPI_Comm comm_;
};

}  // namespace

std::unique_ptr<FileWriter> make_mpi_file_writer(MPI_Comm comm) {
  return std::make_unique<MpiFileWriter>(comm);
}

}  // namespace diapause::comm
