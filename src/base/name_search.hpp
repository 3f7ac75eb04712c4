// Finds items by their names, at once where they lie where they are expected.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace diapause {

// Over items with a member `name`, which are not changed meanwhile and of which no two have the
// same name. All names are looked at only if one lies elsewhere.
template <class Item>
class NameSearch {
 public:
  explicit NameSearch(const std::vector<Item>& items) : items_(items) {}

  // The index of the item of that name, which is probably `expected`.
  std::optional<std::size_t> find(const std::string& name, std::size_t expected) {
    if (expected < items_.size() && items_[expected].name == name) return expected;
    if (by_name_.empty()) {
      for (std::size_t i = 0; i < items_.size(); ++i) by_name_.emplace(items_[i].name, i);
    }
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  const std::vector<Item>& items_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

}  // namespace diapause
