// Tests that one build reads what another has written, and that both write the same.
//
//   exchange write|read FOLDER
//
// It is built twice: as the library is, and with the flags of a site that tunes for its processors
// (CMakeLists.txt).
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "codec/block_coder.hpp"
#include "codec/test_samples.hpp"

namespace {

using namespace diapause;
using namespace diapause::codec;
using format::ElementType;

void put_file(const std::filesystem::path& path, ByteView bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

ByteVector get_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const ByteView bytes = as_byte_view(text);
  return {bytes.begin(), bytes.end()};
}

// Returns nothing, or what is wrong. The raw data come along: functions like sin may differ, too.
std::string exchange(bool writes, const std::string& stem, const Method& method, const Shape& shape,
                     test::Kind kind) {
  const ByteVector raw = writes ? test::data_of(kind, shape) : get_file(stem + ".raw");
  auto encoder = BlockEncoder::create(method).value();
  const auto report = encoder.encode(raw, shape);
  if (!report) return report.error().message;
  if (writes) {
    put_file(stem + ".raw", raw);
    put_file(stem + ".block", encoder.block());
    return {};
  }
  const ByteVector block = get_file(stem + ".block");
  ByteVector back(raw.size());
  const Status decoded = BlockDecoder().decode(block, shape, back);
  if (!decoded) return decoded.error().message;
  return std::ranges::equal(block, encoder.block())
             ? ""
             : "this build makes another block of the same data";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool writes = std::string(argv[1]) == "write";
  std::filesystem::create_directories(argv[2]);
  int wrong = 0, number = 0;
  for (const CodecId codec :
       {CodecId::shuffle_lz4, CodecId::shuffle_zstd, CodecId::lattice, CodecId::zfp}) {
    const Method method{codec, is_lossy(codec) ? 1e-3 : 0};
    if (!make_codec(codec)) continue;
    for (const ElementType type : {ElementType::float32, ElementType::float64}) {
      for (const test::Kind kind : test::kKinds) {
        const std::string stem = std::string(argv[2]) + "/" + std::to_string(number++);
        const std::string problem = exchange(writes, stem, method, {type, {1, 5, 40, 61}}, kind);
        if (problem.empty()) continue;
        std::fprintf(stderr, "%s, kind %d: %s\n", codec_name(codec), static_cast<int>(kind),
                     problem.c_str());
        ++wrong;
      }
    }
  }
  return wrong == 0 ? 0 : 1;
}
