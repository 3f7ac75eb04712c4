// `diapause export`: writes the regions of a version as NumPy arrays, and its files as files, and
// checks every byte.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/collection.hpp"
#include "cli/export_target.hpp"
#include "cli/inspection.hpp"
#include "cli/json_report.hpp"
#include "cli/python.hpp"
#include "cli/rebuilt_image.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "cli/version_energy.hpp"
#include "store/file_paths.hpp"
#include "store/names.hpp"
#include "sys/child.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

// A region of one rank.
struct Piece {
  std::uint32_t rank;
  std::size_t region;  // its number in the rank's image
};

// Returns where a name ends in ".r" and digits, as the names of the files of single ranks do; its
// length if it does not.
std::size_t end_like_that_of_a_rank(const std::string& region) {
  const std::size_t digits = region.find_last_not_of("0123456789") + 1;
  const bool is_one = digits < region.size() && digits >= 2 && region[digits - 1] == 'r' &&
                      region[digits - 2] == '.';
  return is_one ? digits - 2 : region.size();
}

// Returns the name of a region as a file name. Characters that a file name must not contain are
// percent-encoded, and so is the dot of an end like that of a rank.
std::string as_file_name(const std::string& region) {
  const std::size_t end = end_like_that_of_a_rank(region);
  std::string name;
  for (std::size_t i = 0; i < region.size(); ++i) {
    const char character = region[i];
    const bool is_plain = character != '/' && character != '%' && character != '\0' && i != end;
    name += is_plain ? std::string(1, character)
                     : fmt::format("%{:02X}", static_cast<unsigned char>(character));
  }
  return name;
}

// Reads the bytes of a piece from one of its images, checked, a block at a time: a version may be
// larger than the memory.
class PieceReader {
 public:
  PieceReader(store::ImageReader& image, std::size_t region) : image_(image), region_(region) {}

  // Writes `length` bytes from `begin` on to the place `to` of the file. Bytes that are asked for
  // in their order are read once.
  Status copy(std::uint64_t begin, std::uint64_t length, const sys::File& file, std::uint64_t to) {
    for (std::uint64_t done = 0; done < length;) {
      DIAPAUSE_TRY_ASSIGN(ByteView bytes, rest_of_block(begin + done));
      bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), length - done));
      DIAPAUSE_TRY(file.write_all(bytes, to + done));
      done += bytes.size();
    }
    return {};
  }

 private:
  // Returns the bytes from `position` to the end of the block that holds it.
  Result<ByteView> rest_of_block(std::uint64_t position) {
    if (position < begin_) next_ = 0;
    while (position < begin_ || position >= begin_ + block_.size()) {
      if (next_ == image_.index().regions[region_].block_count())
        return fail(Code::corrupt, image_.name() + " is too short");
      const std::uint64_t length = image_.block_length(region_, next_);
      scratch_.resize(std::max<std::size_t>(scratch_.size(), length));
      DIAPAUSE_TRY_ASSIGN(block_,
                          image_.read_block(region_, next_, MutableBytes(scratch_).first(length)));
      begin_ = image_.block_offset(region_, next_++);
    }
    return block_.subspan(position - begin_);
  }

  store::ImageReader& image_;
  std::size_t region_;
  std::uint64_t next_ = 0;  // the block after block_
  std::uint64_t begin_ = 0;
  ByteView block_;
  ByteVector scratch_;
};

class Exporter {
 public:
  Exporter(const CollectedVersion& version, const VersionDetails& details, ExportTarget& to)
      : version_(version), details_(details), to_(to) {}

  Status run() {
    std::map<std::string, std::vector<Piece>> by_name;
    for (std::uint32_t rank = 0; rank < details_.ranks.size(); ++rank) {
      const RankDetails& found = details_.ranks[rank];
      if (!found.regions)
        return fail(Code::not_found, fmt::format("rank {}: {}", rank, found.problem));
      for (std::size_t i = 0; i < found.regions->size(); ++i)
        by_name[(*found.regions)[i].name].push_back({rank, i});
    }
    for (const auto& [name, pieces] : by_name) DIAPAUSE_TRY(export_region(name, pieces));
    return {};
  }

 private:
  const format::Region& region_of(const Piece& piece) const {
    return (*details_.ranks[piece.rank].regions)[piece.region];
  }

  // Exports one file if the ranks' pieces form an array, else one for each rank.
  Status export_region(const std::string& region_name, const std::vector<Piece>& pieces) {
    DIAPAUSE_TRY_ASSIGN(const auto path, store::path_in_name(region_name));
    if (path) return export_files(*path, pieces);
    const std::string name = as_file_name(region_name);
    std::vector<const format::Region*> regions;
    for (const Piece& piece : pieces) regions.push_back(&region_of(piece));
    const auto whole = whole_of(regions);
    if (whole) return export_whole(name + ".npy", *whole, pieces);
    for (const Piece& piece : pieces)
      DIAPAUSE_TRY(export_part(fmt::format("{}.r{}.npy", name, piece.rank), piece));
    return {};
  }

  Status export_whole(const std::string& file_name, const ArrayShape& shape,
                      const std::vector<Piece>& pieces) {
    return to_.array(file_name, shape, [&](const sys::File& file, std::uint64_t begin) -> Status {
      for (const Piece& piece : pieces) {
        DIAPAUSE_TRY(read(piece, [&](PieceReader& bytes) {
          return for_each_run(region_of(piece), [&](std::uint64_t in_array, std::uint64_t in_piece,
                                                    std::uint64_t length) {
            return bytes.copy(in_piece, length, file, begin + in_array);
          });
        }));
      }
      return {};
    });
  }

  Status export_part(const std::string& file_name, const Piece& piece) {
    const format::Region& region = region_of(piece);
    ArrayShape own{region.type, region.element_bytes, {region.count}};
    if (!region.place.empty()) own.dims.clear();
    for (const format::BlockDim& dim : region.place) own.dims.push_back(dim.shape);
    return to_.array(file_name, own, [&](const sys::File& file, std::uint64_t begin) {
      return read(piece, [&](PieceReader& bytes) {
        return bytes.copy(0, region.raw_bytes(), file, begin);
      });
    });
  }

  // Exports a file of the program, of which several ranks may have one with the same name.
  Status export_files(const std::vector<std::string>& path, const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      std::vector<std::string> below = {"files", fmt::format("r{}", piece.rank)};
      below.insert(below.end(), path.begin(), path.end());
      const std::uint64_t length = region_of(piece).raw_bytes();
      DIAPAUSE_TRY(to_.file(below, length, [&](const sys::File& file, std::uint64_t begin) {
        return read(piece, [&](PieceReader& bytes) { return bytes.copy(0, length, file, begin); });
      }));
    }
    return {};
  }

  // Has `use` read a piece. If it is damaged in one place, the next place is tried from the
  // beginning.
  Status read(const Piece& piece, const std::function<Status(PieceReader&)>& use) const {
    Error last{Code::not_found,
               fmt::format("no image of rank {} can be reached from here", piece.rank), 0};
    for (const Part& part : version_.parts) {
      if (!store::ranks_in(*part.found, version_.manifest).contains(piece.rank)) continue;
      const Status used = read_from(part, piece, use);
      if (used) return used;
      last = used.error();
    }
    if (auto rebuilt = rebuild_image(version_, piece.rank)) return read_from(*rebuilt, piece, use);
    return fail(std::move(last));
  }

  Status read_from(const Part& part, const Piece& piece,
                   const std::function<Status(PieceReader&)>& use) const {
    const store::LocatedImage image =
        store::locate_image(part.place->kind, *version_.manifest, piece.rank);
    DIAPAUSE_TRY_ASSIGN(store::ImageReader reader, open_image(part, image.file, image.expected));
    return read_from(reader, piece, use);
  }

  Status read_from(store::ImageReader& reader, const Piece& piece,
                   const std::function<Status(PieceReader&)>& use) const {
    const format::Region& wanted = region_of(piece);
    const auto& regions = reader.index().regions;
    const bool is_same = piece.region < regions.size() &&
                         regions[piece.region].name == wanted.name &&
                         regions[piece.region].raw_bytes() == wanted.raw_bytes();
    if (!is_same)
      return fail(Code::corrupt, reader.name() + " holds other regions than another copy of it");
    PieceReader bytes(reader, piece.region);
    return use(bytes);
  }

  const CollectedVersion& version_;
  const VersionDetails& details_;
  ExportTarget& to_;
};

// Returns the version of that number, or else the newest that could be restored from here.
const CollectedVersion* choose_version(const Job& job, const std::optional<std::uint64_t>& number) {
  for (const CollectedVersion& version : job.versions) {
    if (version.manifest == nullptr || (number && version.id.number != *number)) continue;
    const std::string_view state = state_of(version);
    if (number || state == "complete" || state == "archive") return &version;
  }
  return nullptr;
}

// Writes what the version is, beside its arrays.
Status write_about(const Job& job, const CollectedVersion& version, const VersionDetails& details,
                   const Places& places, const sys::Directory& to) {
  DIAPAUSE_TRY_ASSIGN(const sys::File file, to.create_file("version.json"));
  const std::string about =
      show_json(job, details, energy_of_version(job.key, version.id.number, places)) + "\n";
  return file.write_all(as_byte_view(about), 0);
}

Result<sys::Directory> make_directory(const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const std::string whole, sys::absolute_path(path));
  return sys::Directory::make_private(sys::real_kernel(), whole);
}

Result<std::vector<std::string>> export_to_directory(const Job& job,
                                                     const CollectedVersion& version,
                                                     const Places& places,
                                                     const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const sys::Directory to, make_directory(path));
  // Beside the arrays of another version nobody could tell which are of this one.
  if (to.id_of("version.json")) {
    return fail(Code::argument,
                fmt::format("{} holds a version that was exported before: remove it, or name "
                            "another directory",
                            to.path()));
  }
  const VersionDetails details = read_details(version);
  ManyFiles files(to, ManyFiles::Content::written);
  DIAPAUSE_TRY(Exporter(version, details, files).run());
  DIAPAUSE_TRY(write_about(job, version, details, places, to));
  return std::move(files.written());
}

// Reads where in the file that Python has made there is room for what.
Result<OneFile::Places> read_places(const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const std::string text, sys::read_text_file(sys::real_kernel(), path));
  OneFile::Places places;
  const auto object = nlohmann::json::parse(text, nullptr, false);
  for (const auto& [name, place] : object.items()) {
    if (!place.is_number_unsigned())
      return fail(Code::internal, path + " does not say where there is room");
    places[name] = place;
  }
  return places;
}

// Has Python make the file of HDF5 with room for everything, from arrays that have no content yet,
// and writes the content there: it is written once. `directory` holds what is in the making.
Status export_to_hdf5(const Job& job, const CollectedVersion& version, const Places& places,
                      const std::string& directory, const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const sys::Directory parts, make_directory(directory));
  const VersionDetails details = read_details(version);
  ManyFiles outlines(parts, ManyFiles::Content::left_out);
  DIAPAUSE_TRY(Exporter(version, details, outlines).run());
  DIAPAUSE_TRY(write_about(job, version, details, places, parts));
  constexpr const char* kWhole = "whole.h5";
  DIAPAUSE_TRY(parts.create_file(kWhole));  // for nobody else, whoever writes to it
  DIAPAUSE_TRY(run_python({"export-h5", directory, directory + "/" + kWhole}));
  DIAPAUSE_TRY_ASSIGN(OneFile::Places where, read_places(directory + "/places.json"));
  DIAPAUSE_TRY_ASSIGN(sys::File file, parts.open_file(kWhole, sys::Access::write));
  OneFile whole(std::move(file), std::move(where));
  DIAPAUSE_TRY(Exporter(version, details, whole).run());
  return sys::replace_file(directory + "/" + kWhole, path);
}

// Removes the directory and what was exported into it, as far as there is one.
void remove_parts(const std::string& path) {
  const auto parts = sys::Directory::open_private(sys::real_kernel(), path);
  if (!parts) return;
  if (const auto entries = parts->list()) {
    for (const sys::DirectoryEntry& entry : *entries) (void)parts->remove_child(entry.name);
  }
  sys::remove_directory(path);
}

int complain_of_export(const Error& error) {
  const int trouble = complain(error);
  return error.code == Code::corrupt ? kNotRestorable : trouble;
}

int export_to_file(const Job& job, const CollectedVersion& version, const Places& places,
                   const std::string& path) {
  const std::string parts = fmt::format("{}.parts-{}", path, sys::process_id());
  if (path.ends_with(".h5")) {
    const Status written = export_to_hdf5(job, version, places, parts, path);
    remove_parts(parts);
    if (!written) return complain_of_export(written.error());
    fmt::print("{}\n", printable(path));
    return kDone;
  }
  const auto written = export_to_directory(job, version, places, parts);
  // Python also removes the directory.
  const int status =
      written ? become_python({"export-vti", parts, path}) : complain_of_export(written.error());
  remove_parts(parts);
  return status;
}

}  // namespace

int export_version(const ExportArguments& arguments) {
  const auto collection = collect(arguments.places);
  if (!collection) return complain(collection.error());
  const auto found = find_job(*collection, arguments.job);
  if (!found) return complain(found.error());
  const Job& job = **found;
  const CollectedVersion* const version = choose_version(job, arguments.version);
  if (version == nullptr) {
    return complain(arguments.version
                        ? fmt::format("there is no version {} of {}", *arguments.version, job.key)
                        : fmt::format("no version of {} is complete here", job.key));
  }
  if (arguments.to.ends_with(".h5") || arguments.to.ends_with(".vti"))
    return export_to_file(job, *version, arguments.places, arguments.to);
  const auto written = export_to_directory(job, *version, arguments.places, arguments.to);
  if (!written) return complain_of_export(written.error());
  for (const std::string& path : *written) fmt::print("{}\n", printable(path));
  return kDone;
}

}  // namespace diapause::cli
