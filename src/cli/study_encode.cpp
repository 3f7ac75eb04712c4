// `diapause study encode`: encodes one field with all codecs, bounds and clocks, and prints the
// cost of each step as a line of JSON: compressing (with the check of every value), writing to the
// disk, and reading back into values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "cli/collection.hpp"
#include "cli/meters.hpp"
#include "cli/verbs.hpp"
#include "codec/guard.hpp"
#include "codec/region_coder.hpp"
#include "governor/actuators/choice.hpp"
#include "sys/path.hpp"
#include "sys/process.hpp"
#include "sys/tasks.hpp"

namespace diapause::cli {
namespace {

constexpr std::uint64_t kBlockBytes = codec::kMaxBlockBytes;
constexpr const char* kWritten = "study.data";

struct Field {
  ByteVector bytes;
  format::Region region;
};

Result<Field> read_field(const StudyEncodeArguments& arguments) {
  Field field;
  const bool is_double = arguments.type == "float64";
  if (!is_double && arguments.type != "float32")
    return fail(Code::argument, arguments.type + ": no such type");
  field.region.type = is_double ? format::ElementType::float64 : format::ElementType::float32;
  field.region.element_bytes = is_double ? 8 : 4;
  DIAPAUSE_TRY_ASSIGN(const sys::File file,
                      sys::open_existing_file(sys::real_kernel(), arguments.file));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  std::uint64_t left = size / field.region.element_bytes;
  field.region.count = left;
  for (const std::uint64_t dim : arguments.dims) {
    if (dim == 0 || left % dim != 0) left = 0;
    if (left == 0) break;
    left /= dim;
    field.region.place.push_back({dim, dim, 0});
  }
  if (left != 1 || size % field.region.element_bytes != 0) {
    return fail(Code::argument, fmt::format("{}: its {} bytes are not of shape {}", arguments.file,
                                            size, fmt::join(arguments.dims, "x")));
  }
  field.bytes.resize(size);
  DIAPAUSE_TRY(file.read_exact(field.bytes, 0));
  return field;
}

Result<codec::CodecId> codec_of(const std::string& name) {
  using codec::CodecId;
  for (const CodecId id : {CodecId::raw, CodecId::shuffle_lz4, CodecId::shuffle_zstd,
                           CodecId::lattice, CodecId::sz3, CodecId::zfp}) {
    if (name == codec::codec_name(id)) return id;
  }
  return fail(Code::argument, name + ": no such codec");
}

// The number of passes of a step, and their cost.
struct Cost {
  int passes = 0;
  double seconds = 0;    // seconds of all passes
  double scatter_s = 0;  // standard deviation of the time of one pass; 0 for a single one
  energy::Usage energy;
};

// The times of the steps of a dump, which follow one another, and the clocks obtained.
struct DumpTimes {
  double began_s = 0;
  double compress_s = 0, write_s = 0;
  double compress_clock = 1, write_clock = 1;

  double ended_s() const { return began_s + compress_s + write_s; }
};

// Says how far the values that were read back are off.
struct Errors {
  double greatest = 0;
  double rms = 0;    // root mean square over all finite values
  double range = 0;  // the difference of the greatest and the least finite value
};

template <class Value>
Errors errors_between(ByteView before, ByteView after) {
  Errors errors;
  double least = std::numeric_limits<double>::infinity(), most = -least, squares = 0;
  std::uint64_t count = 0;
  for (std::size_t at = 0; at + sizeof(Value) <= before.size(); at += sizeof(Value)) {
    Value value = 0, again = 0;
    std::memcpy(&value, before.data() + at, sizeof value);
    std::memcpy(&again, after.data() + at, sizeof again);
    if (!std::isfinite(value)) continue;
    const double off = static_cast<double>(again) - static_cast<double>(value);
    squares += off * off;
    least = std::min(least, static_cast<double>(value));
    most = std::max(most, static_cast<double>(value));
    ++count;
  }
  if (count == 0) return errors;
  errors.rms = std::sqrt(squares / static_cast<double>(count));
  errors.range = most - least;
  return errors;
}

codec::Workforce one_worker() {
  return {[](std::uint64_t pieces, const auto& piece) {
            for (std::uint64_t i = 0; i < pieces; ++i) piece(i);
          },
          1};
}

// A field as blocks of one method, which is written to the disk and read back.
class Trial {
 public:
  Trial(const Field& field, const codec::Method& method, codec::RegionEncoder encoder)
      : field_(field),
        method_(method),
        plan_(field.region, kBlockBytes),
        encoder_(std::move(encoder)),
        decoder_(one_worker()) {
    stored_.resize(field.bytes.size() + plan_.block_count() * codec::kBlockHeaderBytes);
    decoded_.resize(field.bytes.size());
  }

  Status compress() {
    used_ = 0;
    const auto keep = [this](ByteView block) -> Status {
      std::ranges::copy(block, MutableBytes(stored_).subspan(used_).begin());
      used_ += block.size();
      return {};
    };
    DIAPAUSE_TRY_ASSIGN(report_, encoder_.encode(field_.bytes, plan_, keep));
    return {};
  }

  Status write(const sys::Directory& directory) {
    DIAPAUSE_TRY_ASSIGN(const sys::File file, directory.create_file(kWritten));
    DIAPAUSE_TRY(file.write_all(stored(), 0));
    return file.sync();
  }

  Status decompress() { return decoder_.decode(stored(), plan_, decoded_); }

  ByteView stored() const { return ByteView(stored_).first(used_); }

  // Returns the errors of all values that were read back. Fails if one exceeds the bound.
  Result<Errors> errors() const {
    const bool is_double = field_.region.element_bytes == sizeof(double);
    Errors errors = is_double ? errors_between<double>(field_.bytes, decoded_)
                              : errors_between<float>(field_.bytes, decoded_);
    for (std::uint64_t i = 0; i < plan_.block_count(); ++i) {
      const codec::Shape shape = plan_.shape_of(i);
      const auto part = [&](ByteView all) {
        return all.subspan(plan_.offset_of(i), shape.bytes());
      };
      const auto error =
          codec::greatest_error(part(field_.bytes), part(decoded_), shape, method_.bound);
      if (!error)
        return fail(Code::corrupt,
                    std::string(codec::codec_name(method_.codec)) + " broke its bound");
      errors.greatest = std::max(errors.greatest, *error);
    }
    return errors;
  }

  std::string sizes_json() const {
    return fmt::format(
        R"("codec":"{}","bound":{},"raw_bytes":{},"stored_bytes":{},"blocks":{},"lossless_blocks":{})",
        codec::codec_name(method_.codec), method_.bound, report_.raw_bytes, report_.stored_bytes,
        report_.blocks, report_.fallen_back());
  }

 private:
  const Field& field_;
  codec::Method method_;
  codec::BlockPlan plan_;
  codec::RegionEncoder encoder_;
  codec::RegionDecoder decoder_;
  ByteVector stored_, decoded_;
  std::uint64_t used_ = 0;  // bytes of stored_ in use
  codec::RegionReport report_;
};

class Study {
 public:
  explicit Study(const StudyEncodeArguments& arguments) : arguments_(arguments) {}

  Status run() {
    DIAPAUSE_TRY_ASSIGN(field_, read_field(arguments_));
    DIAPAUSE_TRY_ASSIGN(directory_,
                        sys::Directory::make_private(sys::real_kernel(), arguments_.directory));
    DIAPAUSE_TRY_ASSIGN(sampler_, start_sampler({}, Unless::automatic));
    DIAPAUSE_TRY(find_actuator());
    Status done = arguments_.dump_bytes > 0 ? all_methods() : at_all_clocks();
    DIAPAUSE_TRY(directory_.remove_file(kWritten));
    return done;
  }

 private:
  Status find_actuator() {
    if (arguments_.actuator == "none") return {};
    DIAPAUSE_TRY_ASSIGN(const config::Settings configured, read_settings(""));
    config::GovernorSettings settings = configured.governor;
    const bool is_real = arguments_.actuator == "cpufreq";
    settings.actuator = is_real ? config::ActuatorKind::cpufreq : config::ActuatorKind::emulated;
    settings.watchdog = sys::own_program();
    const governor::ActuatorPlaces places{sys::real_kernel(), "/sys", standard_error_sink()};
    where_ = {sys::usable_cpus(), {sys::thread_id()}};
    DIAPAUSE_TRY_ASSIGN(parts_, governor::make_actuator(settings, places, where_));
    return {};
  }

  Status at_all_clocks() {
    for (const double clock : arguments_.clocks) {
      DIAPAUSE_TRY(slow_to(clock));
      const Status done = all_methods();
      if (parts_) {
        DIAPAUSE_TRY(parts_->actuator->restore());
      }
      DIAPAUSE_TRY(done);
    }
    return {};
  }

  Status all_methods() {
    for (const std::string& name : arguments_.codecs) {
      DIAPAUSE_TRY_ASSIGN(const codec::CodecId id, codec_of(name));
      for (const double bound : codec::is_lossy(id) ? arguments_.bounds : std::vector<double>{0}) {
        const codec::Method method{id, bound};
        DIAPAUSE_TRY_ASSIGN(codec::RegionEncoder encoder,
                            codec::RegionEncoder::create(method, one_worker()));
        Trial trial(field_, method, std::move(encoder));
        DIAPAUSE_TRY(one(trial));
      }
    }
    return {};
  }

  Status one(Trial& trial) {
    // The first pass of a step finds its memory and the page cache cold, and does not count.
    DIAPAUSE_TRY(trial.compress());
    if (arguments_.dump_bytes > 0) return dump(trial);
    DIAPAUSE_TRY(trial.write(directory_));
    DIAPAUSE_TRY_ASSIGN(const Cost compress, cost_of([&] { return trial.compress(); }));
    DIAPAUSE_TRY_ASSIGN(const Cost write, cost_of([&] { return trial.write(directory_); }));
    DIAPAUSE_TRY_ASSIGN(const Cost decompress, cost_of([&] { return trial.decompress(); }));
    DIAPAUSE_TRY_ASSIGN(const Errors errors, trial.errors());
    print(trial, "compress", compress, errors);
    print(trial, "write", write, errors);
    print(trial, "decompress", decompress, errors);
    return {};
  }

  // Compresses the field until that were so many bytes, and writes as many copies to one file,
  // which is synced at its end. The two clocks are those of compressing and of writing.
  Status dump(Trial& trial) {
    DIAPAUSE_TRY_ASSIGN(const sys::File file, directory_.create_file(kWritten));
    const std::uint64_t size = field_.bytes.size();
    const std::uint64_t copies = (arguments_.dump_bytes + size - 1) / size;
    DumpTimes times;
    times.began_s = sys::monotonic_s();
    const Status done = write_copies(trial, file, copies, times);
    if (parts_) {
      DIAPAUSE_TRY(parts_->actuator->restore());
    }
    DIAPAUSE_TRY(done);
    const energy::Usage used = sampler_->between(times.began_s, times.ended_s());
    fmt::print(R"({{"step":"dump",{},"copies":{},"compress_s":{},"compress_clock":{},)"
               R"("write_s":{},"write_clock":{},{}}})"
               "\n",
               trial.sizes_json(), copies, times.compress_s, times.compress_clock, times.write_s,
               times.write_clock, joules_json(used, 1.0));
    std::fflush(stdout);
    return {};
  }

  // Each step is done for all copies at once: an emulated clock slows nothing that is shorter than
  // its period. All copies are alike, so the last one that was compressed is the one written.
  Status write_copies(Trial& trial, const sys::File& file, std::uint64_t copies, DumpTimes& times) {
    DIAPAUSE_TRY(slow_to(arguments_.clocks.front()));
    times.compress_clock = obtained_;
    for (std::uint64_t i = 0; i < copies; ++i) {
      DIAPAUSE_TRY(trial.compress());
    }
    times.compress_s = sys::monotonic_s() - times.ended_s();
    DIAPAUSE_TRY(slow_to(arguments_.clocks.back()));
    times.write_clock = obtained_;
    for (std::uint64_t i = 0; i < copies; ++i) {
      DIAPAUSE_TRY(file.write_all(trial.stored(), i * trial.stored().size()));
    }
    DIAPAUSE_TRY(file.sync());
    times.write_s = sys::monotonic_s() - times.ended_s();
    return {};
  }

  Status slow_to(double clock) {
    asked_ = obtained_ = clock;
    if (parts_) {
      DIAPAUSE_TRY_ASSIGN(obtained_, parts_->actuator->slow(where_, clock));
    }
    return {};
  }

  // Repeats a step until it has lasted long enough for a counter to measure, and often enough to
  // tell its scatter.
  template <class Step>
  Result<Cost> cost_of(Step step) {
    Cost cost;
    const double begin_s = sys::monotonic_s();
    double end_s = begin_s;
    double squares = 0;
    do {
      const double pass_began_s = end_s;
      DIAPAUSE_TRY(step());
      ++cost.passes;
      end_s = sys::monotonic_s();
      squares += (end_s - pass_began_s) * (end_s - pass_began_s);
    } while (end_s - begin_s < arguments_.seconds || cost.passes < arguments_.repetitions);
    cost.seconds = end_s - begin_s;
    const double mean_s = cost.seconds / cost.passes;
    if (cost.passes > 1) {
      cost.scatter_s =
          std::sqrt(std::max(0.0, squares - cost.passes * mean_s * mean_s) / (cost.passes - 1));
    }
    cost.energy = sampler_->between(begin_s, end_s);
    return cost;
  }

  void print(const Trial& trial, const char* step, const Cost& cost, const Errors& errors) const {
    const double times = 1.0 / cost.passes;
    fmt::print(
        R"({{"step":"{}","asked":{},"obtained":{},{},"greatest_error":{},"rms_error":{},"value_range":{},)"
        R"("passes":{},"seconds":{},"seconds_scatter":{},{},{}}})"
        "\n",
        step, asked_, obtained_, trial.sizes_json(), errors.greatest, errors.rms, errors.range,
        cost.passes, cost.seconds * times, cost.scatter_s, joules_json(cost.energy, times),
        joules_by_domain(cost));
    std::fflush(stdout);
  }

  std::string joules_json(const energy::Usage& used, double times) const {
    const energy::Amount& amount = used.total;
    const bool is_known = amount.covered_s > 0;
    const energy::Total& total = sampler_->total();
    return fmt::format(
        R"("joules":{},"uncertainty":{},"covered_s":{},"energy_of":"{}","energy_kind":"{}")",
        is_known ? fmt::format("{}", amount.joules * times) : "null",
        is_known ? uncertainty_json(amount, times) : "null", amount.covered_s * times, total.name,
        is_known ? energy::kind_name(total) : "");
  }

  // All that the node used meanwhile is charged to the step. Nobody knows what was used in a gap.
  static std::string uncertainty_json(const energy::Amount& amount, double times) {
    const energy::Uncertainty& off = amount.off;
    return fmt::format(
        R"({{"sampling_j":{},"sensor_j":{},"attribution_j":{}}})", off.sampling_j * times,
        off.is_bounded && !amount.has_gap() ? fmt::format("{}", off.sensor_j * times) : "null",
        off.attribution_j * times);
  }

  // Returns the joules of one pass, and how far they may be off. Parts of a domain are added; a
  // domain with an unknown part is left out.
  std::string joules_by_domain(const Cost& cost) const {
    std::map<std::string_view, std::optional<energy::Amount>> sums;
    for (std::size_t i = 0; i < cost.energy.domains.size(); ++i) {
      const energy::Amount& amount = cost.energy.domains[i];
      auto& sum =
          sums.try_emplace(energy::domain_name(sampler_->domains()[i].domain), energy::Amount())
              .first->second;
      if (amount.covered_s <= 0) sum.reset();
      if (!sum) continue;
      sum->joules += amount.joules;
      sum->off.add(amount.off);
      sum->gap_s = std::max(sum->gap_s, amount.gap_s);
    }
    std::string joules, off;
    for (const auto& [domain, sum] : sums) {
      if (!sum) continue;
      const char* const comma = joules.empty() ? "" : ",";
      joules += fmt::format("{}\"{}\":{}", comma, domain, sum->joules / cost.passes);
      off += fmt::format("{}\"{}\":{}", comma, domain, uncertainty_json(*sum, 1.0 / cost.passes));
    }
    return fmt::format(R"("joules_of":{{{}}},"uncertainty_of":{{{}}})", joules, off);
  }

  const StudyEncodeArguments& arguments_;
  Field field_;
  sys::Directory directory_;
  std::unique_ptr<energy::Sampler> sampler_;
  governor::Where where_;
  std::unique_ptr<governor::ActuatorParts> parts_;
  double asked_ = 1, obtained_ = 1;
};

}  // namespace

int study_encode(const StudyEncodeArguments& arguments) {
  const Status done = Study(arguments).run();
  return done ? kDone : complain(done.error());
}

}  // namespace diapause::cli
