#include "golden_files.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "codec/block_coder.hpp"
#include "format/checksum.hpp"
#include "format/wire.hpp"

namespace diapause::golden {
namespace {

using namespace diapause::format;

VersionId version_id() {
  VersionId version{3, 1200, {}};
  for (std::uint8_t i = 0; i < 16; ++i)
    version.commit.bytes[i] = static_cast<std::uint8_t>(0xa0 + i);
  return version;
}

void put(ByteVector& bytes, std::size_t offset, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

Region region_of(std::string name, ElementType type, std::uint64_t count) {
  Region region;
  region.name = std::move(name);
  region.type = type;
  region.element_bytes = element_bytes_of(type);
  region.count = count;
  return region;
}

// A file made of `header` (its sizes are filled in here) and of regions with these contents.
ByteVector assemble(ImageHeader header, ImageIndex index, const std::vector<ByteVector>& contents) {
  header.index_offset = lay_out(index).value();
  header.format_version = format_version_of(index);
  ByteVector body(header.index_offset - kHeaderBytes);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    Region& region = index.regions[i];
    std::copy(contents[i].begin(), contents[i].end(),
              body.begin() + (region.offset - kHeaderBytes));
    region.block_checksums = {checksum64(contents[i])};  // each is smaller than a block
  }
  const ByteVector index_bytes = encode_index(index);
  header.index_bytes = index_bytes.size();
  header.index_digest = digest128(index_bytes);
  header.file_bytes = header.index_offset + header.index_bytes;
  ByteVector file = encode_header(header);
  file.insert(file.end(), body.begin(), body.end());
  file.insert(file.end(), index_bytes.begin(), index_bytes.end());
  return file;
}

ByteVector of_next_format_version(ByteVector image) {
  put(image, 8, kImageFormatVersion + 1, 4);
  put(image, kHeaderBytes - 8, checksum64(ByteView(image).first(kHeaderBytes - 8)), 8);
  return image;
}

ByteVector seal(ByteVector bytes) {
  const Digest128 digest = digest128(ByteView(bytes).first(bytes.size() - 16));
  put(bytes, bytes.size() - 16, digest.low, 8);
  put(bytes, bytes.size() - 8, digest.high, 8);
  return bytes;
}

ByteVector of_next_manifest_version(ByteVector manifest) {
  put(manifest, 8, kManifestFormatVersion + 1, 4);
  return seal(std::move(manifest));
}

// Encodes as releases before shared files did: the records of the ranks end before them.
ByteVector of_version_1(const Manifest& manifest) {
  constexpr std::size_t kSharedBytes = 12, kOldRankBytes = 40;
  ByteVector bytes = encode_manifest(manifest);
  std::size_t end = 76 + manifest.job.size();
  for (const std::string& node : manifest.node_names) end += 4 + node.size();
  for (std::size_t rank = 0; rank < manifest.ranks.size(); ++rank) {
    end += kOldRankBytes;
    bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(end),
                bytes.begin() + static_cast<std::ptrdiff_t>(end + kSharedBytes));
  }
  put(bytes, 8, 1, 4);
  put(bytes, 16, bytes.size(), 8);
  return seal(std::move(bytes));
}

// Encodes the processes. Each version has added lists at the end, of which one without items takes
// 8 bytes, as does a number.
ByteVector of_version(std::uint32_t version, std::size_t missing_lists, const process::Job& job) {
  constexpr std::size_t kDigestBytes = 16;
  ByteVector bytes = process::encode_job(job);
  bytes.resize(bytes.size() - 8 * missing_lists);
  put(bytes, 8, version, 4);
  put(bytes, kDigestBytes, bytes.size(), 8);
  return seal(std::move(bytes));
}

ByteVector flipped(ByteVector bytes, std::size_t at) {
  bytes[at] ^= std::byte{0x10};
  return bytes;
}

ByteVector front(const ByteVector& bytes, std::size_t length) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)};
}

// A seed of the index target: where the index lies, then the index (fuzz/image_index_fuzz.cpp).
ByteVector index_seed(const ByteVector& image) {
  const ImageHeader header = decode_header(image).value();
  Writer writer(8 + header.index_bytes);
  writer.u64(header.index_offset | (header.format_version - 1));
  writer.append(ByteView(image).subspan(header.index_offset, header.index_bytes));
  return writer.take();
}

void add_broken_files(std::map<std::string, ByteVector>& files) {
  const std::string folder = "tests/golden/files/";
  const ByteVector header = front(data_image(), kHeaderBytes), sound = encode_manifest(manifest());
  ByteVector other_magic = header, other_manifest_magic = sound;
  put(other_magic, 0, 0x4745504a, 4);
  put(other_manifest_magic, 0, 0x4745504a, 4);
  files[folder + "broken-image-truncated.bin"] = front(header, 1000);
  files[folder + "broken-image-flipped.bin"] = flipped(header, 56);
  files[folder + "broken-image-magic.bin"] = other_magic;
  files[folder + "broken-image-future.bin"] = of_next_format_version(header);
  files[folder + "broken-manifest-truncated.bin"] = front(sound, sound.size() - 1);
  files[folder + "broken-manifest-flipped.bin"] = flipped(sound, 100);
  files[folder + "broken-manifest-magic.bin"] = other_manifest_magic;
  const ByteVector job = encode_identity(identity());
  ByteVector other_identity_magic = job, future_identity = job;
  put(other_identity_magic, 0, 0x4745504a, 4);
  put(future_identity, 8, kIdentityFormatVersion + 1, 4);
  files[folder + "broken-identity-truncated.bin"] = front(job, job.size() - 1);
  files[folder + "broken-identity-flipped.bin"] = flipped(job, 20);
  files[folder + "broken-identity-magic.bin"] = other_identity_magic;
  files[folder + "broken-identity-future.bin"] = seal(future_identity);
  const ByteVector list = encode_starts(starts());
  ByteVector other_starts_magic = list, future_starts = list;
  put(other_starts_magic, 0, 0x4745504a, 4);
  put(future_starts, 8, kStartsFormatVersion + 1, 4);
  files[folder + "broken-starts-truncated.bin"] = front(list, list.size() - 1);
  files[folder + "broken-starts-flipped.bin"] = flipped(list, 30);
  files[folder + "broken-starts-magic.bin"] = other_starts_magic;
  files[folder + "broken-starts-future.bin"] = seal(future_starts);
  files[folder + "broken-manifest-future.bin"] = of_next_manifest_version(sound);
}

// A seed of the payload target: which codec, type and shape (fuzz/payload_fuzz.cpp), then what
// `lattice` makes of a wave in that shape.
ByteVector payload_seed() {
  const codec::Shape shape{ElementType::float64, {1, 1, 20, 17}};
  ByteVector raw(shape.bytes()), payload(shape.bytes());
  for (std::uint64_t i = 0; i < shape.count(); ++i) {
    const std::uint64_t step =
        i % 17 * (i % 17) + i / 17;  // no functions that differ in their last bits
    put(raw, 8 * i, std::bit_cast<std::uint64_t>(static_cast<double>(step * step * 37 % 101) / 300),
        8);
  }
  const auto lattice = codec::make_codec(codec::CodecId::lattice).value();
  payload.resize(lattice->encode(raw, shape, {codec::CodecId::lattice, 1e-3}, payload).value());
  payload.insert(payload.begin(), std::byte{1 + 2 * 2});
  return payload;
}

void add_processes(std::map<std::string, ByteVector>& files) {
  const std::string folder = "tests/golden/files/";
  const ByteVector first = of_version(1, 25, processes_of_version_1()),
                   second = of_version(2, 23, processes_of_version_2()),
                   third = of_version(3, 22, processes_of_version_3()),
                   fourth = of_version(4, 21, processes_of_version_4()),
                   fifth = of_version(5, 19, processes_of_version_5()),
                   sixth = of_version(6, 9, processes_of_version_6()),
                   seventh = of_version(7, 8, processes_of_version_7()),
                   eighth = of_version(8, 5, processes_of_version_8()),
                   ninth = of_version(9, 4, processes_of_version_9());
  const ByteVector sound = process::encode_job(processes());
  ByteVector future = sound;
  put(future, 8, process::kProcessesFormatVersion + 1, 4);
  files[folder + "processes-v1.bin"] = first;
  files[folder + "processes-v2.bin"] = second;
  files[folder + "processes-v3.bin"] = third;
  files[folder + "processes-v4.bin"] = fourth;
  files[folder + "processes-v5.bin"] = fifth;
  files[folder + "processes-v6.bin"] = sixth;
  files[folder + "processes-v7.bin"] = seventh;
  files[folder + "processes-v8.bin"] = eighth;
  files[folder + "processes-v9.bin"] = ninth;
  files[folder + "processes-v10.bin"] = sound;
  files[folder + "broken-processes-truncated.bin"] = front(second, second.size() - 1);
  files[folder + "broken-processes-flipped.bin"] = flipped(second, 100);
  files[folder + "broken-processes-future.bin"] = seal(future);
  files["fuzz/corpus/processes/version-1"] = first;
  files["fuzz/corpus/processes/version-2"] = second;
  files["fuzz/corpus/processes/version-3"] = third;
  files["fuzz/corpus/processes/version-4"] = fourth;
  files["fuzz/corpus/processes/version-5"] = fifth;
  files["fuzz/corpus/processes/version-6"] = sixth;
  files["fuzz/corpus/processes/version-7"] = seventh;
  files["fuzz/corpus/processes/version-8"] = eighth;
  files["fuzz/corpus/processes/version-9"] = ninth;
  files["fuzz/corpus/processes/version-10"] = sound;
}

void add_fuzz_seeds(std::map<std::string, ByteVector>& files) {
  constexpr std::size_t kHeaderFields = 96;  // the rest of the page is zeros
  files["fuzz/corpus/image_header/data"] = front(data_image(), kHeaderFields);
  files["fuzz/corpus/image_header/parity"] = front(parity_image(), kHeaderFields);
  files["fuzz/corpus/image_header/future"] =
      front(of_next_format_version(data_image()), kHeaderFields);
  files["fuzz/corpus/image_index/data"] = index_seed(data_image());
  files["fuzz/corpus/image_index/compressed"] = index_seed(compressed_image());
  files["fuzz/corpus/image_index/packed"] = index_seed(packed_image());
  files["fuzz/corpus/image_index/parity"] = index_seed(parity_image());
  files["fuzz/corpus/block/lattice"] = front(lattice_block(), codec::kBlockHeaderBytes);
  files["fuzz/corpus/payload/lattice"] = payload_seed();
  files["fuzz/corpus/manifest/groups"] = encode_manifest(manifest());
  files["fuzz/corpus/manifest/version-1"] = of_version_1(manifest());
  files["fuzz/corpus/manifest/shared"] = encode_manifest(shared_manifest());
  files["fuzz/corpus/manifest/compressed"] = encode_manifest(compressed_manifest());
  files["fuzz/corpus/identity/home"] = encode_identity(identity());
  files["fuzz/corpus/starts/three"] = encode_starts(starts());
  Manifest plain = manifest();
  plain.groups.clear();
  files["fuzz/corpus/manifest/plain"] = encode_manifest(plain);
}

}  // namespace

process::Job processes_of_version_1() {
  process::Job job;
  job.machine = "x86_64";
  job.command = 7;
  job.monotonic_ns = 1'200'000'000;
  process::Process& program = job.processes.emplace_back();
  program.id = program.group = program.session = 7;
  program.parent = 1;
  program.program = "/usr/bin/program";
  program.directory = "/home";
  program.actions[9] = {0x401000, 4, 0x402000, 1};
  process::Thread& leader = program.threads.emplace_back();
  leader.id = 7;
  leader.name = "program";
  leader.registers = ByteVector(27 * 8, std::byte{3});
  program.areas.push_back(
      {0x400000, 0x402000, 5, process::AreaKind::memory, 0, process::kNone, 0, "", 0});
  program.descriptors.push_back({0, 0, false});
  process::Description& standard = job.descriptions.emplace_back();
  standard.kind = process::DescriptionKind::standard;
  return job;
}

process::Job processes_of_version_2() {
  process::Job job = processes_of_version_1();
  process::Socket end;
  end.family = 2;
  end.type = 1;
  end.protocol = 6;
  end.state = process::SocketState::connected;
  end.local = end.remote = ByteVector(16, std::byte{2});
  end.options.push_back({6, 1, ByteVector(4, std::byte{1})});
  job.sockets = {end, end};
  job.sockets[0].peer = 1;
  job.sockets[1].peer = 0;
  const ByteView left = as_byte_view("left");
  job.sockets[1].waiting.emplace_back(left.begin(), left.end());
  process::Terminal& terminal = job.terminals.emplace_back();
  terminal.settings = ByteVector(60);
  terminal.size = ByteVector(8, std::byte{24});
  terminal.output = job.sockets[1].waiting.front();
  for (std::uint32_t i = 0; i < 2; ++i) {
    process::Description& one = job.descriptions.emplace_back();
    one.kind = process::DescriptionKind::socket;
    one.which = i;
    job.processes[0].descriptors.push_back({i + 3, i + 1, false});
  }
  return job;
}

process::Job processes_of_version_3() {
  process::Job job = processes_of_version_2();
  job.locks = {{7, 0, process::LockKind::process, true, 5, 10},
               {7, 3, process::LockKind::description, false, 7, 0},
               {7, 4, process::LockKind::whole_description, true, 0, 0}};
  return job;
}

process::Job processes_of_version_4() {
  process::Job job = processes_of_version_3();
  process::SharedMemory library;
  library.kind = process::SharedKind::file_pages;
  library.path = "/usr/lib/library.so";
  library.bytes = 0x3200;
  process::SharedMemory deleted = library;
  deleted.path = "";
  deleted.is_stored = true;
  job.memories = {library, deleted};
  std::vector<process::Area>& areas = job.processes[0].areas;
  areas.push_back(
      {0x500000, 0x503000, 5, process::AreaKind::memory, 0, 0, 0x1000, "/usr/lib/library.so", 0});
  areas.push_back(
      {0x600000, 0x601000, 1, process::AreaKind::memory, 0, 1, 0, "/home/x (deleted)", 0});
  job.file_parts = {{0, 0x1000, 0x1000, 0x0123456789abcdef},
                    {0, 0x3000, 0x200, 0xfedcba9876543210}};
  return job;
}

process::Job processes_of_version_5() {
  process::Job job = processes_of_version_4();
  ByteVector policy(48), processors(8);
  policy[0] = std::byte{48};
  policy[4] = std::byte{3};  // SCHED_BATCH
  processors[0] = std::byte{6};
  job.schedules = {{7, processors, policy, 15, 0x4006}};
  job.guards = {{7, 0x401000, 0x1000}};
  return job;
}

process::Job processes_of_version_6() {
  process::Job job = processes_of_version_5();
  process::Socket& end = job.sockets.emplace_back();
  end.family = 2;
  end.type = 1;
  end.protocol = 6;
  end.state = process::SocketState::connected;
  end.local = end.remote = ByteVector(16, std::byte{2});
  end.waiting = {ByteVector(3, std::byte{9})};
  job.far_ends = {{static_cast<std::uint32_t>(job.sockets.size() - 1), 1, 0}};
  const ByteVector word = {std::byte{'o'}, std::byte{'k'}};
  process::Description& notifications = job.descriptions.emplace_back();
  notifications.kind = process::DescriptionKind::notifications;
  const auto watching = static_cast<std::uint32_t>(job.descriptions.size() - 1);
  job.timers = {{7, 2, 1, 4, 34, 7, 0x123456789, 250'000'000, 1'000'000'000}};
  job.semaphores = {{3, 0x5eed, 0600, {1, 0, 7}}};
  job.queues = {{32769, 0, 0640, 16384, {{5, word}, {1, {}}}}};
  job.stopped = {{7, true}};
  job.owners = {{0, 1, 7, 34}};
  job.seals = {{1, 14}};
  job.watches = {{watching, 3, 0x102, "/etc"}};
  job.typed = {{0, true, word}, {0, false, word}};
  job.privileges = {{7, 1, 0x1ff, 2, 8}};
  return job;
}

process::Job processes_of_version_7() {
  process::Job job = processes_of_version_6();
  job.addresses = {"192.0.2.7", "2001:db8::7"};
  return job;
}

process::Job processes_of_version_8() {
  process::Job job = processes_of_version_7();
  process::SharedMemory log;
  log.kind = process::SharedKind::job_file;
  log.path = "/home/log";
  log.bytes = 5;
  log.mode = 0640;
  log.is_stored = log.is_writable = true;
  job.unix_ns = 1'700'000'000'123'456'789;
  job.file_patterns = {"/home/*", "/scratch"};
  job.files = {
      {"/home/log", static_cast<std::uint32_t>(job.memories.size()), 1'600'000'000'000'000'001},
      {"/scratch/elsewhere", process::kNone, 7}};
  job.memories.push_back(log);
  return job;
}

process::Job processes_of_version_9() {
  process::Job job = processes_of_version_8();
  process::Process& child = job.processes.emplace_back();
  child.id = 8;
  child.parent = 7;
  child.has_ended = true;
  child.threads.emplace_back().id = 8;
  job.end_signals = {{8, 34}};
  return job;
}

process::Job processes() {
  process::Job job = processes_of_version_9();
  job.instructions = {"sse4_2", "avx2"};
  job.register_parts = {{2, 576, 256}, {9, 2688, 8}};
  job.since_boot_ns = 98'765'432'100;
  for (int i = 0; i < 32; ++i) job.kernel_code.push_back(static_cast<std::byte>(i));
  return job;
}

ByteVector data_image() {
  Writer block(48), step(8);
  for (int i = 0; i < 6; ++i) block.u64(std::bit_cast<std::uint64_t>(i * 0.5));
  step.u64(1200);
  Region temperature = region_of("temperature", ElementType::float64, 6);
  temperature.place = {{2, 4, 2}, {3, 9, 6}};
  ImageHeader header;
  header.version = version_id();
  header.owner = 2;
  header.rank_count = 5;
  return assemble(header, {{temperature, region_of("step", ElementType::uint64, 1)}},
                  {block.take(), step.take()});
}

ByteVector parity_image() {
  ByteVector chunk(kPageBytes);
  for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = static_cast<std::byte>(i * 7 % 256);
  ImageHeader header;
  header.kind = ImageKind::parity;
  header.version = version_id();
  header.owner = 1;
  header.rank_count = 5;
  return assemble(header, {{region_of("parity", ElementType::uint8, kPageBytes)}}, {chunk});
}

ByteVector packed_image() {
  ImageIndex index;
  std::vector<ByteVector> contents;
  for (std::uint64_t i = 0; i < kPackedFrom; ++i) {
    Writer value(8);
    value.u64(1200 + i);
    contents.push_back(value.take());
    index.regions.push_back(region_of("step" + std::to_string(i), ElementType::uint64, 1));
  }
  ImageHeader header;
  header.version = version_id();
  header.owner = 2;
  header.rank_count = 5;
  return assemble(header, std::move(index), contents);
}

namespace {

// Encodes 2 x 8 doubles with a bound of 0.01; the block is the encoder's.
codec::BlockReport encode_sample(codec::BlockEncoder& encoder) {
  const codec::Shape shape{ElementType::float64, {1, 1, 2, 8}};
  Writer raw(shape.bytes());
  for (int i = 0; i < 16; ++i) raw.u64(std::bit_cast<std::uint64_t>((200 + i * i) / 10.0));
  return encoder.encode(raw.written(), shape).value();
}

}  // namespace

ByteVector lattice_block() {
  auto encoder = codec::BlockEncoder::create({codec::CodecId::lattice, 0.01}).value();
  (void)encode_sample(encoder);
  return {encoder.block().begin(), encoder.block().end()};
}

ByteVector compressed_image() {
  auto encoder = codec::BlockEncoder::create({codec::CodecId::lattice, 0.01}).value();
  const codec::BlockReport report = encode_sample(encoder);
  const ByteVector block(encoder.block().begin(), encoder.block().end());
  Region temperature = region_of("temperature", ElementType::float64, 16);
  temperature.place = {{2, 2, 0}, {8, 8, 0}};
  temperature.encoding = Encoding::blocks;
  temperature.compression = {static_cast<std::uint32_t>(codec::CodecId::lattice), 0.01};
  temperature.encoded = {{block.size()}, 1, 0, report.greatest_error};
  temperature.stored_bytes = block.size();
  Writer step(8);
  step.u64(1200);
  ImageHeader header;
  header.version = version_id();
  header.owner = 2;
  header.rank_count = 5;
  return assemble(header, {{temperature, region_of("step", ElementType::uint64, 1)}},
                  {block, step.take()});
}

Manifest manifest() {
  Manifest manifest;
  manifest.job = "heat";
  manifest.version = version_id();
  manifest.levels = 1u << 1 | 1u << 2 | 1u << 3;
  manifest.created_unix_ns = 1767225600'000000000;  // 1 January 2026, 00:00 UTC
  manifest.node_names = {"node-0", "node-1", "node-2"};
  const auto image = [](std::uint64_t seed) {
    return ImageRecord{12495, {seed, seed * 0x9e3779b97f4a7c15}};
  };
  const std::uint32_t nodes[] = {0, 0, 1, 1, 2}, partners[] = {2, 3, 4, 4, 0};
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    manifest.ranks.push_back({image(rank + 1), 56, nodes[rank], partners[rank]});
  }
  manifest.groups.push_back({{0, 2, 4}, {0, 1, 2}, 1, 8192, {image(11), image(12), image(13)}});
  manifest.groups.push_back(
      {{1, 3, kNoRank}, {0, 1, 2}, 1, 8192, {image(14), image(15), image(16)}});
  return manifest;
}

Manifest shared_manifest() {
  Manifest shared = manifest();
  shared.levels = 1u << 1 | 1u << 4;
  shared.groups.clear();
  std::uint64_t end = 0;
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    RankRecord& record = shared.ranks[rank];
    if (rank == 3) end = 0;
    record.partner = kNoRank;
    record.shared_file = rank < 3 ? 0 : 1;
    record.shared_offset = end;
    end += round_up(record.image.file_bytes, kPageBytes);
  }
  return shared;
}

JobIdentity identity() {
  JobIdentity identity;
  for (std::uint8_t i = 0; i < 16; ++i) identity.id.bytes[i] = static_cast<std::uint8_t>(0x10 + i);
  identity.created_unix_ns = 1767225600'000000000;  // 1 January 2026, 00:00 UTC
  identity.job = "heat";
  identity.key = "heat-10111213";
  identity.home = "/scratch/diapause";
  return identity;
}

Starts starts() {
  Starts starts;
  starts.list.push_back({1, 1767225600'000000000, std::nullopt, true, "a b"});
  starts.list.push_back({2, 1767312000'000000000, std::nullopt, true, "c d"});
  VersionId from = version_id();
  from.incarnation = 2;
  starts.list.push_back({3, 1767398400'000000000, from, false, "a b"});
  return starts;
}

Manifest compressed_manifest() {
  Manifest compressed = manifest();
  compressed.levels |= 1u << 4;
  compressed.lossy_restarts = 1;
  compressed.lossy_in_a_row = 3;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    compressed.ranks[rank].encoded = {8400 + rank, {rank + 21, rank + 31}};
    compressed.ranks[rank].greatest_error = 0.25 * rank;
  }
  return compressed;
}

std::map<std::string, ByteVector> all_files() {
  std::map<std::string, ByteVector> files;
  files["tests/golden/files/image-v1.bin"] = data_image();
  files["tests/golden/files/image-v2.bin"] = compressed_image();
  files["tests/golden/files/image-v3.bin"] = packed_image();
  files["tests/golden/files/parity-v1.bin"] = parity_image();
  files["tests/golden/files/block-v1.bin"] = lattice_block();
  files["tests/golden/files/manifest-v1.bin"] = of_version_1(manifest());
  files["tests/golden/files/manifest-v2.bin"] = encode_manifest(manifest());
  files["tests/golden/files/manifest-v2-shared.bin"] = encode_manifest(shared_manifest());
  files["tests/golden/files/manifest-v3.bin"] = encode_manifest(compressed_manifest());
  files["tests/golden/files/identity-v1.bin"] = encode_identity(identity());
  files["tests/golden/files/starts-v1.bin"] = encode_starts(starts());
  add_broken_files(files);
  add_processes(files);
  add_fuzz_seeds(files);
  return files;
}

}  // namespace diapause::golden
