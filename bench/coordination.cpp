// Measures how long a step of the agents of a launched job takes on many nodes. In a step every
// agent tells its parent that it is ready, and the answer of the first one comes back, either
// through a tree or flat.
//
//   coordination FAN_OUT NODES...
//
// The time that an agent spends on its messages is measured with real connections within this
// machine, with as many as a process may have open. The step on so many nodes is then computed in
// virtual time from these costs, where each agent has a processor of its own. Prints a line for
// each number of nodes with the microseconds of both, and a line of JSON with the pairs of the
// first number.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/mail.hpp"
#include "agent/node_comm.hpp"
#include "measure.hpp"

namespace {

using namespace diapause;

constexpr int kSteps = 9;
constexpr std::uint32_t kMostChildren = 4096;

template <class Value>
Value must(Result<Value> result) {
  if (!result) bench::give_up(result.error().message);
  return std::move(*result);
}
void must(const Status& status) {
  if (!status) bench::give_up(status.error().message);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// An agent with so many others, which are all in this process and connected with it.
class Star {
 public:
  explicit Star(std::uint32_t children) {
    std::vector<std::string> names(children + 1, "a-node-of-a-cluster");
    center_ = open(0, names);
    sys::Listener listener = must(sys::Listener::open());
    for (std::uint32_t child = 1; child <= children; ++child) {
      children_.push_back(child);
      agents_.push_back(open(child, {names[0], names[child]}));
      sys::Stream end = must(sys::Stream::connect("127.0.0.1", listener.port(), 10));
      must(agents_.back()->add_link(0, std::move(end)));
      must(center_->add_link(child, must(listener.accept(10))));
    }
  }

  struct Costs {
    double up_s = 0;      // one of the others: sends
    double gather_s = 0;  // the first one: receives from all, that have sent
    double spread_s = 0;  // sends to all
    double down_s = 0;    // one of the others: receives what has come
  };

  Costs step() {
    Costs costs;
    const std::uint32_t first = 0;
    const agent::Post up{0, {}};
    for (const auto& one : agents_)
      costs.up_s += bench::seconds_of([&] { must(sent(*one, {&up, 1})); });
    costs.gather_s = bench::seconds_of([&] { (void)must(center_->transfer({}, children_)); });
    std::vector<agent::Post> posts;
    for (const std::uint32_t child : children_) posts.push_back({child, {}});
    costs.spread_s = bench::seconds_of([&] { must(sent(*center_, posts)); });
    for (const auto& one : agents_)
      costs.down_s += bench::seconds_of([&] { (void)must(one->transfer({}, {&first, 1})); });
    const auto count = static_cast<double>(children_.size());
    costs.up_s /= count;
    costs.down_s /= count;
    return costs;
  }

 private:
  static std::unique_ptr<agent::Mail> open(std::uint32_t own, std::vector<std::string> names) {
    auto mail = std::make_unique<agent::Mail>(must(agent::Mail::open(own, std::move(names))));
    mail->begin_round(1);
    return mail;
  }
  static Status sent(agent::Mail& mail, std::span<const agent::Post> posts) {
    auto result = mail.transfer(posts, {});
    return result ? Status{} : fail(result.error());
  }

  std::unique_ptr<agent::Mail> center_;
  std::vector<std::unique_ptr<agent::Mail>> agents_;
  std::vector<std::uint32_t> children_;
};

// Seconds of an agent for its messages with so many others, between the numbers that were measured
// and beyond them along a straight line in logarithms.
class Law {
 public:
  void add(double children, double seconds) { points_.emplace_back(children, seconds); }
  double operator()(double children) const {
    std::size_t k = 1;
    while (k + 1 < points_.size() && points_[k].first < children) ++k;
    const auto& [x0, y0] = points_[k - 1];
    const auto& [x1, y1] = points_[k];
    const double slope = std::log(y1 / y0) / std::log(x1 / x0);
    return y0 * std::pow(children / x0, slope);
  }

 private:
  std::vector<std::pair<double, double>> points_;
};

struct Model {
  Law gather, spread;
  double up_s = 0, down_s = 0;
  double way_s = 0;  // from the end of a send until the other end is awake
};

double one_way_s() {
  constexpr int kTimes = 2000;
  sys::Listener listener = must(sys::Listener::open());
  sys::Stream here = must(sys::Stream::connect("127.0.0.1", listener.port(), 10));
  sys::Stream there = must(listener.accept(10));
  std::byte byte{1}, echo{0};
  std::thread other([&] {
    for (int i = 0; i < kTimes; ++i) {
      must(there.receive_all({&echo, 1}, 10));
      must(there.send_all({&echo, 1}, 10));
    }
  });
  std::vector<double> trips;
  for (int i = 0; i < kTimes; ++i) {
    trips.push_back(bench::seconds_of([&] {
      must(here.send_all({&byte, 1}, 10));
      must(here.receive_all({&byte, 1}, 10));
    }));
  }
  other.join();
  return median(trips) / 2;
}

std::uint32_t most_children() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  // Both ends of a connection, and what the other agent waits with.
  return std::min<std::uint32_t>(kMostChildren,
                                 static_cast<std::uint32_t>(files.rlim_cur / 3) - 32);
}

Model measure() {
  Model model;
  model.way_s = one_way_s();
  for (std::uint32_t children = 1; children <= most_children(); children *= 4) {
    Star star(children);
    std::vector<double> up, gather, spread, down;
    for (int i = 0; i < kSteps; ++i) {
      const Star::Costs costs = star.step();
      up.push_back(costs.up_s);
      gather.push_back(costs.gather_s);
      spread.push_back(costs.spread_s);
      down.push_back(costs.down_s);
    }
    model.gather.add(children, median(gather));
    model.spread.add(children, median(spread));
    model.up_s = median(up);
    model.down_s = median(down);
  }
  return model;
}

// Seconds from the moment when all agents are ready until the last one has the answer. An agent
// deals with messages one after the other, in the order in which they come.
class Step {
 public:
  Step(const Model& model, std::uint32_t nodes, std::uint32_t fan_out)
      : model_(model), nodes_(nodes), fan_out_(fan_out) {}

  double seconds() const { return answered(0, gathered(0)); }

 private:
  std::vector<std::uint32_t> children(std::uint32_t agent) const {
    return agent::Branch{agent, nodes_, fan_out_}.children();
  }
  double gathered(std::uint32_t agent) const {
    std::vector<double> come;
    for (const std::uint32_t child : children(agent))
      come.push_back(gathered(child) + model_.up_s + model_.way_s);
    if (come.empty()) return 0;
    std::ranges::sort(come);
    const double each_s =
        model_.gather(static_cast<double>(come.size())) / static_cast<double>(come.size());
    double at_s = 0;
    for (const double arrival_s : come) at_s = std::max(at_s, arrival_s) + each_s;
    return at_s;
  }
  double answered(std::uint32_t agent, double at_s) const {
    const std::vector<std::uint32_t> below = children(agent);
    if (below.empty()) return at_s;
    const double each_s =
        model_.spread(static_cast<double>(below.size())) / static_cast<double>(below.size());
    double last_s = 0, sent_s = at_s;
    for (const std::uint32_t child : below) {
      sent_s += each_s;
      last_s = std::max(last_s, answered(child, sent_s + model_.way_s + model_.down_s));
    }
    return last_s;
  }

  const Model& model_;
  std::uint32_t nodes_, fan_out_;
};

std::uint32_t number(const char* text) {
  return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) bench::give_up("usage: coordination FAN_OUT NODES...");
  const std::uint32_t fan_out = number(argv[1]);
  const Model model = measure();
  std::fprintf(stderr, "a message: %.1f us to send, %.1f us to receive, %.1f us on its way\n",
               1e6 * model.up_s, 1e6 * model.down_s, 1e6 * model.way_s);
  std::fprintf(stderr, "%10s %12s %12s\n", "nodes", "tree us", "flat us");
  bench::Pairs pairs;
  for (int i = 2; i < argc; ++i) {
    const std::uint32_t nodes = number(argv[i]);
    const double tree_s = Step(model, nodes, fan_out).seconds();
    const double flat_s = Step(model, nodes, nodes).seconds();
    std::fprintf(stderr, "%10u %12.0f %12.0f\n", nodes, 1e6 * tree_s, 1e6 * flat_s);
    pairs.emplace_back(tree_s, flat_s);
  }
  bench::print_json(pairs);
}
