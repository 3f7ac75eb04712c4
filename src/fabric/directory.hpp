// Who is who: from the numbers that programs know to those of the adapters, and back.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/control.hpp"

namespace diapause::fabric {

// The address of a port: its GID, or, where there is none, its LID.
struct Address {
  bool is_by_gid = false;
  Gid gid{};
  std::uint32_t lid = 0;
  auto operator<=>(const Address&) const = default;
};

// A directory is made once from the records of all processes, and does not change. A number that it
// does not know has stayed the same.
class Directory {
 public:
  Directory() = default;
  explicit Directory(std::span<const Record> records);

  bool is_trivial() const { return is_trivial_; }

  // The queue pair that a program knows as `number` at `address`.
  const Record* find_pair(const Address& address, std::uint32_t number) const;
  // The address as adapters know it now. Several processes may have had one address and have others
  // now: `home` and `port` choose, if they are known.
  Address real_address(const Address& shown, std::uint64_t home, std::uint32_t port) const;
  Address shown_address(const Address& real) const;
  std::uint32_t shown_pair(const Address& real, std::uint32_t number) const;
  std::uint32_t real_key(std::uint64_t home, std::uint32_t shown) const;

  // Numbers that new objects must not have, because programs know others by them.
  bool has_pair(std::uint32_t number) const { return pair_numbers_.contains(number); }
  bool has_key(std::uint32_t number) const { return key_numbers_.contains(number); }

 private:
  using PortName = std::pair<std::uint64_t, std::uint32_t>;  // the home and the port
  void add_address(const Address& shown, const Address& real, const PortName& port);

  bool is_trivial_ = true;
  std::vector<Record> records_;
  std::map<std::pair<Address, PortName>, Address> real_of_;
  std::map<Address, Address> any_real_of_, shown_of_;
  // A place is a port, by whichever of its addresses.
  struct Places {
    std::map<Address, std::uint32_t> of;
    std::map<PortName, std::uint32_t> of_port;
    void add(const Address& address, const PortName& port);
  };
  Places shown_places_, real_places_;
  // Place and shown number: index.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs_;
  // Place and real number: shown one.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs_real_;
  // The real key for a home and a shown key.
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> keys_;
  std::set<std::uint32_t> pair_numbers_, key_numbers_;
};

// A table of numbers for the way of every message.
class Numbers {
 public:
  void add(std::uint32_t shown, std::uint32_t real) { table_[shown] = real; }
  bool is_empty() const { return table_.empty(); }
  bool has(std::uint32_t shown) const { return table_.contains(shown); }
  std::uint32_t real(std::uint32_t shown) const {
    const auto found = table_.find(shown);
    return found == table_.end() ? shown : found->second;
  }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> table_;
};

}  // namespace diapause::fabric
