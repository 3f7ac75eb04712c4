// Computes Reed-Solomon codes over GF(2^8) by ISA-L, with a Cauchy matrix: any k of the k+m chunks
// of a codeword determine the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::redundancy {

class ReedSolomon {
 public:
  // Requires k >= 1 data and m >= 1 parity chunks, k + m <= 255 (Code::argument).
  static Result<ReedSolomon> create(std::uint32_t k, std::uint32_t m);

  std::uint32_t k() const { return k_; }
  std::uint32_t m() const { return m_; }

  // Computes parity[j] = sum over i of c(j,i) * data[i]. All chunks have the same length, at most 2
  // GiB - 1. Pointers need no alignment.
  void encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity,
              std::size_t length) const;

  // Computes a single parity chunk: `target` becomes parity[parity_index] of encode().
  void encode_one(std::uint32_t parity_index, std::span<const std::byte* const> data,
                  std::byte* target, std::size_t length) const;

  // Computes parity[j] += c(j,data_index) * chunk: the same sum, one data chunk at a time, in any
  // order, on parity that begins as zeros.
  void accumulate(std::uint32_t data_index, ByteView chunk,
                  std::span<std::byte* const> parity) const;

  // Computes the `wanted` chunks (indices 0..k+m-1, data first) from k available ones.
  // `available_indices` must have exactly k different indices, or the result is Code::argument.
  class Decoder {
   public:
    void decode(std::span<const std::byte* const> available, std::span<std::byte* const> wanted,
                std::size_t length) const;

   private:
    friend class ReedSolomon;
    std::uint32_t k_ = 0, wanted_ = 0;
    std::vector<std::uint8_t> tables_;
  };
  Result<Decoder> decoder(std::span<const std::uint32_t> available_indices,
                          std::span<const std::uint32_t> wanted_indices) const;

 private:
  std::uint32_t k_ = 0, m_ = 0;
  std::vector<std::uint8_t> matrix_;         // (k+m) x k, identity on top
  std::vector<std::uint8_t> encode_tables_;  // ISA-L's expanded tables of the parity rows
  // The same tables row by row: the layout of tables of several rows is internal to ISA-L and
  // differs by processor.
  std::vector<std::vector<std::uint8_t>> row_tables_;
};

}  // namespace diapause::redundancy
