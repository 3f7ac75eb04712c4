#include "fabric/directory.hpp"

namespace diapause::fabric {

void Directory::Places::add(const Address& address, const PortName& port) {
  const auto known = of.find(address);
  const auto own = of_port.find(port);
  const auto next = static_cast<std::uint32_t>(of_port.size());
  const std::uint32_t place = own != of_port.end() ? own->second
                              : known != of.end()  ? known->second
                                                   : next;
  of_port.emplace(port, place);
  of.emplace(address, place);
}

void Directory::add_address(const Address& shown, const Address& real, const PortName& port) {
  is_trivial_ = is_trivial_ && shown == real;
  shown_places_.add(shown, port);
  real_places_.add(real, port);
  real_of_.emplace(std::pair(shown, port), real);
  any_real_of_.emplace(shown, real);
  shown_of_.emplace(real, shown);
}

Directory::Directory(std::span<const Record> records) : records_(records.begin(), records.end()) {
  for (const Record& one : records_) {
    const PortName port{one.home, one.port};
    if (one.kind == RecordKind::gid)
      add_address({true, one.shown_gid, 0}, {true, one.real_gid, 0}, port);
    if (one.kind == RecordKind::port && one.shown != 0)
      add_address({false, {}, one.shown}, {false, {}, one.real}, port);
  }
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const Record& one = records_[i];
    const bool is_numbered = one.kind == RecordKind::pair || one.kind == RecordKind::key;
    if (is_numbered) is_trivial_ = is_trivial_ && one.shown == one.real;
    if (one.kind == RecordKind::key) {
      keys_[{one.home, one.shown}] = one.real;
      key_numbers_.insert(one.shown);
    }
    if (one.kind != RecordKind::pair) continue;
    pair_numbers_.insert(one.shown);
    const PortName port{one.home, one.port};
    const auto shown = shown_places_.of_port.find(port);
    const auto real = real_places_.of_port.find(port);
    if (shown != shown_places_.of_port.end()) pairs_[{shown->second, one.shown}] = i;
    if (real != real_places_.of_port.end()) pairs_real_[{real->second, one.real}] = one.shown;
  }
}

const Record* Directory::find_pair(const Address& address, std::uint32_t number) const {
  const auto place = shown_places_.of.find(address);
  if (place == shown_places_.of.end()) return nullptr;
  const auto found = pairs_.find({place->second, number});
  return found == pairs_.end() ? nullptr : &records_[found->second];
}

Address Directory::real_address(const Address& shown, std::uint64_t home,
                                std::uint32_t port) const {
  const auto own = real_of_.find({shown, {home, port}});
  if (own != real_of_.end()) return own->second;
  const auto any = any_real_of_.find(shown);
  return any == any_real_of_.end() ? shown : any->second;
}

Address Directory::shown_address(const Address& real) const {
  const auto found = shown_of_.find(real);
  return found == shown_of_.end() ? real : found->second;
}

std::uint32_t Directory::shown_pair(const Address& real, std::uint32_t number) const {
  const auto place = real_places_.of.find(real);
  if (place == real_places_.of.end()) return number;
  const auto found = pairs_real_.find({place->second, number});
  return found == pairs_real_.end() ? number : found->second;
}

std::uint32_t Directory::real_key(std::uint64_t home, std::uint32_t shown) const {
  const auto found = keys_.find({home, shown});
  return found == keys_.end() ? shown : found->second;
}

}  // namespace diapause::fabric
