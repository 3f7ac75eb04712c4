// Protects what C++ programs hold, takes a checkpoint, destroys it, restores it and looks; then
// calls what must be refused. Says what is wrong, and ends with 1 then.
#include <array>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "diapause/diapause.hpp"

namespace {

struct Particle {
  double x[3];
  int cell;
  bool operator==(const Particle& other) const { return cell == other.cell && x[2] == other.x[2]; }
};

enum class Phase : unsigned char { first, second };

int wrong = 0;

void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  ++wrong;
}

template <class Call>
void refused(const char* word, Call call) {
  try {
    call();
    expect(false, word);
  } catch (const diapause::Failure& failure) {
    expect(std::string(failure.what()).find(word) != std::string::npos, failure.what());
  }
}

void values_come_back() {
  std::vector<double> field = {1, 2, 3, 4, 5, 6};
  std::vector<Particle> particles = {{{1, 2, 3}, 4}, {{5, 6, 7}, 8}};
  std::vector<std::uint16_t> grown = {1};
  std::array<float, 3> triple = {0.5F, 1.5F, 2.5F};
  const auto owned = std::make_unique<long long[]>(4);
  const std::span<long long> numbers(owned.get(), 4);
  const std::span<double, 2> fixed(field.data() + 4, 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = -static_cast<long long>(i);
  Phase phase = Phase::second;
  std::string text = "seven bytes";

  diapause::Instance run("cpp_types");
  run.protect("front", std::span(field).first(4));
  run.protect("fixed", fixed);
  run.protect("particles", particles);
  run.protect("grown", grown);
  run.protect("triple", triple);
  run.protect("numbers", numbers);
  run.protect("phase", &phase);
  run.protect("text", text);
  grown.assign(1000, 7);
  run.checkpoint(1);

  field.assign(6, 0);
  particles.clear();
  grown.clear();
  triple = {};
  for (long long& number : numbers) number = 0;
  phase = Phase::first;
  text.assign(11, '.');
  const auto restarted = run.restart();
  expect(restarted && restarted->version == 1, "the version");
  expect(field == std::vector<double>({1, 2, 3, 4, 5, 6}), "spans of a vector");
  expect(particles == std::vector<Particle>({{{1, 2, 3}, 4}, {{5, 6, 7}, 8}}), "structs");
  expect(grown == std::vector<std::uint16_t>(1000, 7), "a vector that has grown");
  expect(triple == std::array<float, 3>{0.5F, 1.5F, 2.5F}, "an array");
  expect(numbers[1] == -1 && numbers[3] == -3, "a span of memory of its own");
  expect(phase == Phase::second && text == "seven bytes", "a single value, and a text");
  run.finish();
}

void be_refused() {
  std::vector<double> block(6);
  const std::vector<std::uint64_t> shape = {2, 3}, smaller = {1, 3}, start = {0, 0}, line = {0};
  const std::vector<std::string> none;
  diapause::Instance run("refused");
  run.protect_block("block", block, shape, shape, start);
  refused("do not agree", [&] { run.protect_block("block", block, shape, shape, line); });
  refused("region 'block': dimension 0",
          [&] { run.protect_block("block", block, shape, smaller, start); });
  refused("at least one region", [&] { run.restore(none); });
  refused("not protected", [&] { run.unprotect("nothing"); });
  refused("levels are 1 to 4", [&] { run.checkpoint(1, 7); });
  run.close();
}

}  // namespace

int main() {
  try {
    values_come_back();
    be_refused();
  } catch (const diapause::Failure& failure) {
    std::fprintf(stderr, "cpp_types: %s\n", failure.what());
    return 2;
  }
  return wrong > 0 ? 1 : 0;
}
