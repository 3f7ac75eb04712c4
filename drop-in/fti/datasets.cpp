#include "datasets.hpp"

#include <stdexcept>
#include <utility>

namespace diapause::drop_in {
namespace {

std::string called(int id) { return "global dataset " + std::to_string(id); }

void check_lengths(int id, const std::vector<std::uint64_t>& lengths) {
  if (lengths.empty()) throw std::runtime_error(called(id) + " has no dimensions");
}

}  // namespace

void GlobalDatasets::define(int id, GlobalDataset dataset) {
  check_lengths(id, dataset.lengths);
  if (dataset.name.empty()) throw std::runtime_error(called(id) + " has no name");
  for (const auto& [other, known] : datasets_) {
    if (other == id || known.name == dataset.name) {
      throw std::runtime_error(called(id) + " ('" + dataset.name +
                               "'): its number or name is that of another");
    }
  }
  datasets_.emplace(id, std::move(dataset));
}

GlobalDataset& GlobalDatasets::get(int id) {
  const auto found = datasets_.find(id);
  if (found == datasets_.end()) throw std::runtime_error("there is no " + called(id));
  return found->second;
}

void GlobalDatasets::resize(int id, std::vector<std::uint64_t> lengths) {
  check_lengths(id, lengths);
  get(id).lengths = std::move(lengths);
}

void GlobalDatasets::check_dimensions(const Place& place) {
  const std::size_t wanted = get(place.dataset).lengths.size();
  if (place.box.start.size() == wanted) return;
  throw std::runtime_error(called(place.dataset) + " has " + std::to_string(wanted) +
                           " dimensions, and a part of it " +
                           std::to_string(place.box.start.size()));
}

void GlobalDatasets::add(int variable, const Place& place) {
  check_dimensions(place);
  places_.insert_or_assign(variable, place);
}

void GlobalDatasets::move(int variable, const Place& place) {
  check_dimensions(place);
  const auto found = places_.find(variable);
  if (found == places_.end() || found->second.dataset != place.dataset) {
    throw std::runtime_error("variable " + std::to_string(variable) + " is no part of " +
                             called(place.dataset));
  }
  found->second = place;
}

}  // namespace diapause::drop_in
