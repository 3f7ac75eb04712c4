// VELOC's C++ interface: what serializers write comes back, and observers hear of checkpoints. The
// first argument is the configuration.
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "expect.hpp"
#include "veloc.hpp"

int main(int, char** argv) {
  try {
    std::unique_ptr<veloc::client_t>(veloc::get_client(0U, "there/is/no/such/file"));
    expect(false, "a client without a configuration is refused");
  } catch (const std::runtime_error&) {
  }
  const std::unique_ptr<veloc::client_t> client(veloc::get_client(0U, argv[1]));
  std::vector<int> list = {1, 2, 3};
  int number = 7;
  int heard = -1;
  client->register_observer(VELOC_OBSERVE_CKPT_END,
                            [&](const std::string&, int version) { heard = version; });
  expect(client->mem_protect(0, &number, 1, sizeof number), "memory is protected");
  const auto write = [&](std::ostream& out) {
    for (const int value : list) out << value << ' ';
  };
  const auto read = [&](std::istream& in) {
    list.clear();
    for (int value = 0; in >> value;) list.push_back(value);
    return true;
  };
  expect(client->mem_protect(1, write, read), "a list is protected");
  expect(client->checkpoint("objects", 1), "a checkpoint is taken");
  expect(heard == 1, "the observer heard of it");
  list.assign(100, 4);
  expect(client->checkpoint("objects", 2), "of a longer list too");
  list.clear();
  number = 0;
  expect(client->restart_test("objects", 0) == 2, "the newest is found");
  expect(!client->restart("objects", 1, 3), "another rank's data is refused");
  expect(client->restart("objects", 1), "the first comes back");
  expect(list == std::vector<int>({1, 2, 3}) && number == 7, "with its values");
  expect(client->restart("objects", 2, 0) && list == std::vector<int>(100, 4),
         "and the second with its own");
  expect(client->checkpoint_wait(), "all is where it is to be");
}
