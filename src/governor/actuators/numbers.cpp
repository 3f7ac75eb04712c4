#include "governor/actuators/numbers.hpp"

#include <algorithm>
#include <charconv>

#include "sys/value_file.hpp"

namespace diapause::governor {
namespace {

template <class Number>
std::optional<std::vector<Number>> parse(const std::string& text) {
  std::vector<Number> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    Number number{};
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (stop != end && *stop != ' ')) return std::nullopt;
    numbers.push_back(number);
    at = std::find_if(stop, end, [](char c) { return c != ' '; });
  }
  return numbers;
}

template <class Number>
std::vector<Number> read(sys::Kernel& kernel, const std::string& path) {
  const auto text = sys::read_value(kernel, path);
  if (!text) return {};
  return parse<Number>(*text).value_or(std::vector<Number>());
}

}  // namespace

std::optional<double> number_at(sys::Kernel& kernel, const std::string& path) {
  const auto number = sys::read_number(kernel, path);
  if (!number) return std::nullopt;
  return static_cast<double>(*number);
}

std::vector<double> read_numbers(sys::Kernel& kernel, const std::string& path) {
  return read<double>(kernel, path);
}

std::vector<std::uint32_t> read_cpus(sys::Kernel& kernel, const std::string& path) {
  auto cpus = read<std::uint32_t>(kernel, path);
  std::ranges::sort(cpus);
  return cpus;
}

std::optional<std::uint32_t> cpu_of(const std::string& name) {
  if (!name.starts_with("cpu")) return std::nullopt;
  const auto numbers = parse<std::uint32_t>(name.substr(3));
  if (!numbers || numbers->size() != 1) return std::nullopt;
  return numbers->front();
}

}  // namespace diapause::governor
