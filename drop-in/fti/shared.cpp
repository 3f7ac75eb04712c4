#include "shared.hpp"

#include <filesystem>
#include <iomanip>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "../common/durable.hpp"
#include "../common/ini.hpp"
#include "../common/together.hpp"

namespace diapause::drop_in {
namespace {

using Failure = std::runtime_error;

// The region that says where the pieces of a rank lie in their datasets.
constexpr const char* kPieces = "fti.datasets";
constexpr std::uint64_t kGreatestInt = std::numeric_limits<int>::max();

// One line of that region.
void write_piece(std::ostream& to, const std::string& region, const DatasetPart& part) {
  to << std::quoted(region) << ' ' << std::quoted(part.dataset->name) << ' '
     << part.dataset->element_bytes << ' ' << part.box.start.size();
  for (const auto* numbers : {&part.dataset->lengths, &part.box.start, &part.box.shape}) {
    for (const std::uint64_t number : *numbers) to << ' ' << number;
  }
  to << '\n';
}

Block block_of(const DatasetPart& part) {
  const GlobalDataset& dataset = *part.dataset;
  return {part.data,
          part.box.elements(),
          dataset.element_bytes,
          dataset.type,
          {part.box.shape, dataset.lengths, part.box.start}};
}

// What a rank stores of its parts: one piece of each dataset, if the parts fill one box, else each
// part by itself.
class Pieces {
 public:
  explicit Pieces(const std::vector<DatasetPart>& parts) {
    std::map<const GlobalDataset*, std::vector<DatasetPart>> by_dataset;
    for (const DatasetPart& part : parts) {
      if (part.box.elements() > 0) by_dataset[part.dataset].push_back(part);
    }
    for (const auto& [dataset, own] : by_dataset) add_all(own);
    text_ = lines_.str();
    blocks_[kPieces] = {text_.data(), text_.size(), 1, DIAPAUSE_BYTES};
  }
  const Blocks& blocks() const { return blocks_; }

 private:
  void add_all(const std::vector<DatasetPart>& parts) {
    const GlobalDataset& dataset = *parts.front().dataset;
    std::vector<Box> boxes;
    for (const DatasetPart& part : parts) boxes.push_back(part.box);
    const auto whole = filled_by(boxes);
    if (whole && parts.size() == 1) return add(dataset.name, parts.front());
    if (whole) return add(dataset.name, {&dataset, *whole, put_together(parts, *whole)});
    for (std::size_t i = 0; i < parts.size(); ++i)
      add(dataset.name + "#" + std::to_string(i), parts[i]);
  }

  std::byte* put_together(const std::vector<DatasetPart>& parts, const Box& whole) {
    const std::uint64_t element_bytes = parts.front().dataset->element_bytes;
    copies_.emplace_back(whole.elements() * element_bytes);
    for (const DatasetPart& part : parts) {
      copy_part(part.box, {part.box, part.data}, {whole, copies_.back().data()}, element_bytes);
    }
    return copies_.back().data();
  }

  void add(const std::string& region, const DatasetPart& part) {
    blocks_[region] = block_of(part);
    write_piece(lines_, region, part);
  }

  Blocks blocks_;
  std::vector<std::vector<std::byte>> copies_;
  std::ostringstream lines_;
  std::string text_;
};

// A part of a box that lies in memory, whole and in order.
struct PartOfBox {
  const Box& box;
  const Box& part;
  std::uint64_t element_bytes;
};

// Messages of parts of boxes. Those between two ranks arrive in the order in which they are sent.
class Messages {
 public:
  explicit Messages(MPI_Comm comm) : comm_(comm) {}
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  ~Messages() {
    for (MPI_Datatype& type : types_) MPI_Type_free(&type);
  }

  void receive(void* data, const PartOfBox& part, int from) {
    MPI_Irecv(data, 1, type_of(part), from, kTag, comm_, &open_.emplace_back());
  }
  void send(const void* data, const PartOfBox& part, int to) {
    MPI_Isend(data, 1, type_of(part), to, kTag, comm_, &open_.emplace_back());
  }
  void wait() {
    MPI_Waitall(static_cast<int>(open_.size()), open_.data(), MPI_STATUSES_IGNORE);
    open_.clear();
  }

 private:
  static constexpr int kTag = 0;

  MPI_Datatype type_of(const PartOfBox& part) {
    std::vector<int> sizes;
    std::vector<int> shape;
    std::vector<int> start;
    for (std::size_t i = 0; i < part.box.shape.size(); ++i) {
      sizes.push_back(static_cast<int>(part.box.shape[i]));
      shape.push_back(static_cast<int>(part.part.shape[i]));
      start.push_back(static_cast<int>(part.part.start[i] - part.box.start[i]));
    }
    MPI_Datatype element = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(part.element_bytes), MPI_BYTE, &element);
    MPI_Datatype& type = types_.emplace_back();
    MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), shape.data(),
                             start.data(), MPI_ORDER_C, element, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&element);
    return type;
  }

  MPI_Comm comm_;
  std::vector<MPI_Datatype> types_;
  std::vector<MPI_Request> open_;
};

void check_fits_a_message(const Box& box, const std::string& dataset) {
  for (const std::uint64_t length : box.shape) {
    if (length > kGreatestInt)
      throw Failure("dataset '" + dataset + "': a part of it has more than 2^31 - 1 elements in " +
                    "one dimension");
  }
}

// Gives each rank the numbers that are for it; returns those of each rank for this one.
using Numbers = std::vector<std::vector<std::uint64_t>>;
Numbers hand_out(MPI_Comm comm, const Numbers& to) {
  const auto ranks = to.size();
  std::vector<int> sent(ranks), received(ranks), sent_at(ranks), received_at(ranks);
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < ranks; ++i) {
    sent[i] = static_cast<int>(to[i].size());
    out.insert(out.end(), to[i].begin(), to[i].end());
  }
  MPI_Alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, comm);
  std::exclusive_scan(sent.begin(), sent.end(), sent_at.begin(), 0);
  std::exclusive_scan(received.begin(), received.end(), received_at.begin(), 0);
  std::vector<std::uint64_t> in(
      static_cast<std::size_t>(std::accumulate(received.begin(), received.end(), 0)));
  MPI_Alltoallv(out.data(), sent.data(), sent_at.data(), MPI_UINT64_T, in.data(), received.data(),
                received_at.data(), MPI_UINT64_T, comm);
  Numbers from(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto begin = in.begin() + received_at[i];
    from[i].assign(begin, begin + received[i]);
  }
  return from;
}

std::vector<std::uint64_t> next_numbers(std::istream& from, std::size_t count) {
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t& number : numbers) from >> number;
  return numbers;
}

}  // namespace

SharedVersions::SharedVersions(MPI_Comm comm, const FtiSharedConfiguration& configuration)
    : configuration_(configuration) {
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &ranks_);
}

SharedVersions::~SharedVersions() {
  job_.reset();
  MPI_Comm_free(&comm_);
}

void SharedVersions::take(const std::vector<DatasetPart>& parts) {
  if (job_ranks_ != ranks_) open(ranks_);
  catalogue_.clear();  // what was opened to be read is closed
  std::optional<Pieces> pieces;
  together(comm_, [&] { pieces.emplace(parts); });
  job_->checkpoint(pieces->blocks(), job_->newest() + 1, DIAPAUSE_L4);
  together(comm_, [&] { job_->wait(); });
  together(comm_, [&] {
    if (rank_ == 0) note_ranks();
  });
}

bool SharedVersions::find() {
  int ranks = 0;
  together(comm_, [&] {
    if (rank_ == 0) ranks = noted_ranks();
  });
  MPI_Bcast(&ranks, 1, MPI_INT, 0, comm_);
  if (ranks == 0) return false;
  if (ranks > ranks_) {
    throw Failure("the global datasets were stored by " + std::to_string(ranks) + " ranks, and " +
                  std::to_string(ranks_) + " are too few to read them: start at least as many");
  }
  open(ranks);
  int is_found = 0;
  together(comm_, [&] { is_found = job_ && job_->find(DIAPAUSE_NEWEST) ? 1 : 0; });
  MPI_Bcast(&is_found, 1, MPI_INT, 0, comm_);
  if (is_found != 0) read_catalogue();
  return is_found != 0;
}

std::string SharedVersions::note_path() const {
  return configuration_.directory + "/" + configuration_.prefix + ".diapause";
}

int SharedVersions::noted_ranks() const {
  if (!std::filesystem::exists(note_path())) return 0;
  const long ranks = Ini::read(note_path()).number("", "ranks").value_or(0);
  if (ranks < 1 || ranks > std::numeric_limits<int>::max())
    throw Failure(note_path() + ": it does not say how many ranks have stored the datasets");
  return static_cast<int>(ranks);
}

void SharedVersions::note_ranks() const {
  replace_file(note_path(), "ranks = " + std::to_string(ranks_) + "\n",
               "what the next run has to know of the datasets");
}

// Only as many ranks as have stored a version can open its job.
void SharedVersions::open(int ranks) {
  job_.reset();
  job_ranks_ = 0;
  catalogue_.clear();
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(comm_, rank_ < ranks ? 0 : MPI_UNDEFINED, rank_, &comm);
  const std::string name = "fti-" + configuration_.prefix + "-" + std::to_string(ranks);
  std::string failure;
  try {
    if (comm != MPI_COMM_NULL) job_ = std::make_unique<Job>(comm, name, configuration_.settings);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  agree(comm_, failure);
  job_ranks_ = ranks;
}

void SharedVersions::read_catalogue() {
  std::string own;
  together(comm_, [&] {
    if (!job_) return;
    own.resize(job_->stored_bytes(kPieces).value_or(0));
    job_->read(kPieces, own.data());
  });
  std::vector<int> bytes(static_cast<std::size_t>(ranks_));
  std::vector<int> at(bytes.size());
  const int own_bytes = static_cast<int>(own.size());
  MPI_Allgather(&own_bytes, 1, MPI_INT, bytes.data(), 1, MPI_INT, comm_);
  std::exclusive_scan(bytes.begin(), bytes.end(), at.begin(), 0);
  std::string all(static_cast<std::size_t>(at.back() + bytes.back()), '\0');
  MPI_Allgatherv(own.data(), own_bytes, MPI_CHAR, all.data(), bytes.data(), at.data(), MPI_CHAR,
                 comm_);
  own_.clear();
  together(comm_, [&] {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      add_to_catalogue(
          all.substr(static_cast<std::size_t>(at[i]), static_cast<std::size_t>(bytes[i])),
          static_cast<int>(i));
    }
  });
}

void SharedVersions::add_to_catalogue(const std::string& text, int rank) {
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    OwnPiece piece;
    std::uint64_t element_bytes = 0;
    std::size_t dims = 0;
    words >> std::quoted(piece.region) >> std::quoted(piece.dataset) >> element_bytes >> dims;
    if (!words || dims == 0 || dims > line.size())
      throw Failure(std::string("the region ") + kPieces + " cannot be read: " + line);
    const std::vector<std::uint64_t> lengths = next_numbers(words, dims);
    piece.box.start = next_numbers(words, dims);
    piece.box.shape = next_numbers(words, dims);
    StoredDataset& dataset =
        catalogue_.try_emplace(piece.dataset, StoredDataset{lengths, element_bytes, {}})
            .first->second;
    if (!words || dataset.lengths != lengths || dataset.element_bytes != element_bytes)
      throw Failure("dataset '" + piece.dataset + "' is not stored by all ranks as the same");
    dataset.pieces.push_back({rank, number, piece.box});
    if (rank == rank_) own_.push_back(std::move(piece));
  }
}

std::vector<std::uint64_t> SharedVersions::stored_lengths(const std::string& dataset) const {
  const auto found = catalogue_.find(dataset);
  if (found == catalogue_.end()) throw Failure("dataset '" + dataset + "' is not stored");
  return found->second.lengths;
}

void SharedVersions::read(const std::vector<DatasetPart>& parts) {
  std::vector<Request> requests;
  together(comm_, [&] {
    for (const DatasetPart& part : parts) {
      const auto more = requests_for(part);
      requests.insert(requests.end(), more.begin(), more.end());
    }
  });
  exchange(requests);
}

// Every element is taken from one piece, and pieces that overlap from the first of them.
std::vector<SharedVersions::Request> SharedVersions::requests_for(const DatasetPart& wanted) const {
  const std::string& name = wanted.dataset->name;
  const std::vector<std::uint64_t> lengths = stored_lengths(name);
  const StoredDataset& stored = catalogue_.at(name);
  if (lengths.size() != wanted.box.start.size() ||
      stored.element_bytes != wanted.dataset->element_bytes ||
      stored.element_bytes > kGreatestInt) {
    throw Failure("dataset '" + name + "' is stored with " + std::to_string(lengths.size()) +
                  " dimensions and " + std::to_string(stored.element_bytes) +
                  " bytes an element, and wanted with " + std::to_string(wanted.box.start.size()) +
                  " and " + std::to_string(wanted.dataset->element_bytes));
  }
  check_fits_a_message(wanted.box, name);
  std::vector<Request> requests;
  std::vector<Box> missing;
  if (wanted.box.elements() > 0) missing.push_back(wanted.box);
  for (const StoredPiece& piece : stored.pieces) {
    check_fits_a_message(piece.box, name);
    std::vector<Box> left;
    for (const Box& box : missing) {
      if (const auto part = common_part(box, piece.box))
        requests.push_back({piece, *part, &wanted});
      const auto rest = without(box, piece.box);
      left.insert(left.end(), rest.begin(), rest.end());
    }
    missing = std::move(left);
  }
  if (!missing.empty()) {
    throw Failure("dataset '" + name + "': " + std::to_string(missing.front().elements()) +
                  " elements or more of what is wanted are not stored");
  }
  return requests;
}

// Each rank tells the others which of their pieces it wants parts of, and they send those parts in
// that order.
void SharedVersions::exchange(const std::vector<Request>& requests) {
  Numbers wanted(static_cast<std::size_t>(ranks_));
  for (const Request& request : requests) {
    auto& numbers = wanted[static_cast<std::size_t>(request.piece.rank)];
    numbers.push_back(request.piece.number);
    numbers.insert(numbers.end(), request.part.start.begin(), request.part.start.end());
    numbers.insert(numbers.end(), request.part.shape.begin(), request.part.shape.end());
  }
  const std::vector<Delivery> deliveries = deliveries_for(hand_out(comm_, wanted));
  std::map<std::size_t, void*> mapped;
  together(comm_, [&] {
    for (const Delivery& delivery : deliveries) {
      void*& data = mapped[delivery.number];
      if (data == nullptr) data = job_->map(own_[delivery.number].region);
    }
  });
  Messages messages(comm_);
  for (const Request& request : requests) {
    const GlobalDataset& dataset = *request.wanted->dataset;
    messages.receive(request.wanted->data,
                     {request.wanted->box, request.part, dataset.element_bytes},
                     request.piece.rank);
  }
  for (const Delivery& delivery : deliveries) {
    const OwnPiece& piece = own_[delivery.number];
    messages.send(mapped[delivery.number],
                  {piece.box, delivery.part, catalogue_.at(piece.dataset).element_bytes},
                  delivery.rank);
  }
  messages.wait();
  for (const auto& [number, data] : mapped) job_->unmap(data);
}

std::vector<SharedVersions::Delivery> SharedVersions::deliveries_for(
    const std::vector<std::vector<std::uint64_t>>& asked) const {
  std::vector<Delivery> deliveries;
  for (std::size_t rank = 0; rank < asked.size(); ++rank) {
    for (auto next = asked[rank].begin(); next != asked[rank].end();) {
      const std::size_t number = *next++;
      const auto dims = static_cast<std::ptrdiff_t>(own_[number].box.start.size());
      const Box part{{next, next + dims}, {next + dims, next + 2 * dims}};
      next += 2 * dims;
      deliveries.push_back({static_cast<int>(rank), number, part});
    }
  }
  return deliveries;
}

}  // namespace diapause::drop_in
