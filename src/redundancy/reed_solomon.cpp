#include "redundancy/reed_solomon.hpp"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <string>

namespace diapause::redundancy {
namespace {

constexpr std::uint32_t kMaxChunks = 255;
constexpr std::size_t kTableBytes = 32;  // ISA-L's expansion of one coefficient

// ISA-L takes arrays of pointers to non-const bytes, also for data that it only reads. Arrays on
// the stack keep the hot path free of allocations.
using Pointers = std::array<unsigned char*, kMaxChunks>;

Pointers sources_of(std::span<const std::byte* const> chunks) {
  Pointers pointers;
  std::ranges::transform(chunks, pointers.begin(), [](const std::byte* chunk) {
    return reinterpret_cast<unsigned char*>(const_cast<std::byte*>(chunk));
  });
  return pointers;
}

Pointers targets_of(std::span<std::byte* const> chunks) {
  Pointers pointers;
  std::ranges::transform(chunks, pointers.begin(),
                         [](std::byte* chunk) { return reinterpret_cast<unsigned char*>(chunk); });
  return pointers;
}

int int_of(std::size_t value) {
  assert(value <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(value);
}

// ISA-L only reads the tables, although its prototypes are not const.
unsigned char* writable(const std::vector<std::uint8_t>& tables) {
  return const_cast<unsigned char*>(tables.data());
}

std::vector<std::uint8_t> expand(std::uint32_t k, std::uint32_t rows, std::uint8_t* coefficients) {
  std::vector<std::uint8_t> tables(kTableBytes * k * rows);
  if (rows > 0) ec_init_tables(int_of(k), int_of(rows), coefficients, tables.data());
  return tables;
}

Status check_indices(std::span<const std::uint32_t> indices, std::uint32_t chunks,
                     const char* what) {
  for (const std::uint32_t index : indices) {
    if (index >= chunks) {
      return fail(Code::argument, std::string(what) + " chunk " + std::to_string(index) +
                                      ": the codeword has chunks 0 to " +
                                      std::to_string(chunks - 1));
    }
  }
  return {};
}

}  // namespace

Result<ReedSolomon> ReedSolomon::create(std::uint32_t k, std::uint32_t m) {
  if (k < 1 || m < 1 || k > kMaxChunks || m > kMaxChunks - k) {
    return fail(Code::argument,
                "Reed-Solomon code of " + std::to_string(k) + " data and " + std::to_string(m) +
                    " parity chunks: at least one of each and at most 255 together are possible");
  }
  ReedSolomon code;
  code.k_ = k;
  code.m_ = m;
  code.matrix_.resize(std::size_t{k + m} * k);
  gf_gen_cauchy1_matrix(code.matrix_.data(), int_of(k + m), int_of(k));
  std::uint8_t* const parity_rows = code.matrix_.data() + std::size_t{k} * k;
  code.encode_tables_ = expand(k, m, parity_rows);
  for (std::size_t j = 0; j < m; ++j) code.row_tables_.push_back(expand(k, 1, parity_rows + j * k));
  return code;
}

void ReedSolomon::encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity,
                         std::size_t length) const {
  assert(data.size() == k_ && parity.size() == m_);
  if (length == 0) return;
  Pointers sources = sources_of(data);
  Pointers targets = targets_of(parity);
  ec_encode_data(int_of(length), int_of(k_), int_of(m_), writable(encode_tables_), sources.data(),
                 targets.data());
}

void ReedSolomon::encode_one(std::uint32_t parity_index, std::span<const std::byte* const> data,
                             std::byte* target, std::size_t length) const {
  assert(data.size() == k_ && parity_index < m_);
  if (length == 0) return;
  Pointers sources = sources_of(data);
  auto* destination = reinterpret_cast<unsigned char*>(target);
  ec_encode_data(int_of(length), int_of(k_), 1, writable(row_tables_[parity_index]), sources.data(),
                 &destination);
}

void ReedSolomon::accumulate(std::uint32_t data_index, ByteView chunk,
                             std::span<std::byte* const> parity) const {
  assert(data_index < k_ && parity.size() == m_);
  if (chunk.empty()) return;
  const std::byte* const source = chunk.data();
  Pointers sources = sources_of(std::span(&source, 1));
  Pointers targets = targets_of(parity);
  ec_encode_data_update(int_of(chunk.size()), int_of(k_), int_of(m_), int_of(data_index),
                        writable(encode_tables_), sources[0], targets.data());
}

Result<ReedSolomon::Decoder> ReedSolomon::decoder(
    std::span<const std::uint32_t> available_indices,
    std::span<const std::uint32_t> wanted_indices) const {
  DIAPAUSE_TRY(check_indices(available_indices, k_ + m_, "available"));
  DIAPAUSE_TRY(check_indices(wanted_indices, k_ + m_, "wanted"));
  std::vector<std::uint32_t> different(available_indices.begin(), available_indices.end());
  std::ranges::sort(different);
  different.erase(std::unique(different.begin(), different.end()), different.end());
  if (available_indices.size() != k_ || different.size() != k_ ||
      wanted_indices.size() > kMaxChunks) {
    return fail(Code::argument, "decoding needs " + std::to_string(k_) +
                                    " different chunks and gives at most 255; " +
                                    std::to_string(different.size()) + " different ones of " +
                                    std::to_string(available_indices.size()) + " were named, and " +
                                    std::to_string(wanted_indices.size()) + " are wanted");
  }
  // available = A * data, where A are the available rows of the generator matrix; hence wanted = W
  // * A^-1 * available.
  const std::size_t k = k_;
  std::vector<std::uint8_t> rows(k * k), inverse(k * k);
  for (std::size_t i = 0; i < k; ++i) {
    std::copy_n(matrix_.begin() + static_cast<std::ptrdiff_t>(available_indices[i] * k), k,
                rows.begin() + static_cast<std::ptrdiff_t>(i * k));
  }
  if (gf_invert_matrix(rows.data(), inverse.data(), int_of(k)) != 0) {
    return fail(Code::internal, "the decoding matrix of a Cauchy code turned out to be singular");
  }
  std::vector<std::uint8_t> coefficients(wanted_indices.size() * k);
  for (std::size_t w = 0; w < wanted_indices.size(); ++w) {
    for (std::size_t column = 0; column < k; ++column) {
      std::uint8_t sum = 0;
      for (std::size_t i = 0; i < k; ++i) {
        sum ^= gf_mul(matrix_[wanted_indices[w] * k + i], inverse[i * k + column]);
      }
      coefficients[w * k + column] = sum;
    }
  }
  Decoder decoder;
  decoder.k_ = k_;
  decoder.wanted_ = static_cast<std::uint32_t>(wanted_indices.size());
  decoder.tables_ = expand(decoder.k_, decoder.wanted_, coefficients.data());
  return decoder;
}

void ReedSolomon::Decoder::decode(std::span<const std::byte* const> available,
                                  std::span<std::byte* const> wanted, std::size_t length) const {
  assert(available.size() == k_ && wanted.size() == wanted_);
  if (length == 0 || wanted_ == 0) return;
  Pointers sources = sources_of(available);
  Pointers targets = targets_of(wanted);
  ec_encode_data(int_of(length), int_of(k_), int_of(wanted_), writable(tables_), sources.data(),
                 targets.data());
}

}  // namespace diapause::redundancy
