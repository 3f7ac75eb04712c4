// FTI's global datasets: arrays of all ranks together, and the variables that are parts of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "boxes.hpp"
#include "diapause/diapause.h"

namespace diapause::drop_in {

struct GlobalDataset {
  std::string name;                    // with those of its groups before it: "group/name"
  std::vector<std::uint64_t> lengths;  // of the slowest dimension first
  std::uint64_t element_bytes = 1;
  diapause_type type = DIAPAUSE_BYTES;
  std::vector<std::int64_t> told = {};  // the lengths, as FTI_GetDatasetSpan gives them out
};

// A part of a dataset, and the memory where it lies whole and in order.
struct DatasetPart {
  const GlobalDataset* dataset;
  Box box;
  std::byte* data;
};

// All functions throw std::runtime_error, which names what is wrong.
class GlobalDatasets {
 public:
  struct Place {
    int dataset;
    Box box;
  };

  void define(int id, GlobalDataset dataset);
  GlobalDataset& get(int id);
  void resize(int id, std::vector<std::uint64_t> lengths);

  // `variable` is the part of this dataset; a variable is part of one dataset.
  void add(int variable, const Place& place);
  // Does the same for a variable that is a part of it already.
  void move(int variable, const Place& place);
  const std::map<int, Place>& places() const { return places_; }  // by variable

 private:
  void check_dimensions(const Place& place);

  std::map<int, GlobalDataset> datasets_;
  std::map<int, Place> places_;
};

}  // namespace diapause::drop_in
