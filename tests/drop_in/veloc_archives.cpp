// VELOC's headers for cereal, Boost.Serialization and cached files: veloc_archives CONFIGURATION
// FILE.
#include <fcntl.h>

#include <boost/serialization/vector.hpp>
#include <cereal/types/map.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "expect.hpp"
#include "veloc.hpp"
#include "veloc/boost.hpp"
#include "veloc/cache.hpp"
#include "veloc/cereal.hpp"

namespace {

void protect_by_both(veloc::client_t& client) {
  std::map<int, int> map = {{1, 2}, {30, 40}};
  std::vector<int> list = {7, 8};
  int number = 5;
  client.mem_protect(0, &number, 1, sizeof number, "all");
  client.mem_protect(1, veloc::cereal::serializer(map), veloc::cereal::deserializer(map), "all");
  client.mem_protect(2, veloc::boost::serializer(list), veloc::boost::deserializer(list), "all");
  expect(client.checkpoint("all", 1), "a checkpoint is taken");
  map = {{9, 9}};
  list.clear();
  number = 0;
  expect(client.restart("all", 1), "it comes back");
  expect(map == std::map<int, int>({{1, 2}, {30, 40}}) && list == std::vector<int>({7, 8}) &&
             number == 5,
         "with its values");

  client.mem_protect(1, veloc::boost::serializer(number), veloc::boost::deserializer(list), "all");
  expect(!client.restart("all", 1), "what Boost cannot read is told");
  expect(client.restart_end(false), "and the restart is given up");
  client.mem_protect(0, veloc::cereal::serializer(map), veloc::cereal::deserializer(map), "all");
  expect(!client.restart("all", 1), "and what cereal cannot");
  expect(client.restart_end(false), "as before");
}

void use_the_rest(veloc::client_t& client) {
  expect(client.checkpoint_wait() && client.checkpoint_finished(), "nothing is in flight");
  client.mem_clear("all");
  expect(!client.mem_unprotect(0, "all"), "nothing is protected any more");
  expect(client.route_file("state").empty(), "there is no place for files yet");
  expect(client.checkpoint_begin("files", 1), "a checkpoint is begun");
  expect(!client.route_file("state").empty(), "now there is");
  expect(client.checkpoint_end(false) == false, "its file is no good");
  expect(client.cleanup("all"), "checkpoints are given up");
}

void write_cached(const std::string& path) {
  veloc::cached_file_t file("/there/is/no/such/directory");
  char read[4] = {};
  expect(!file.pread(read, 1, 0) && !file.open(path + "/none/such", O_RDONLY, 0),
         "no file is open");
  expect(file.open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), "a file is opened");
  expect(!file.open(path, O_RDWR, 0600), "and no other one beside it");
  expect(file.pwrite("abcdef", 6, 0) && file.pwrite("xy", 2, 2), "it is written");
  expect(file.pread(read, 4, 1) && std::string(read, 4) == "bxye", "and read");
  expect(!file.pread(read, 4, 4), "it has no more bytes");
  expect(veloc::cached_file_t::flush(), "all is written");
  file.close();
  expect(file.open(path, O_RDONLY, 0) && !file.pwrite("z", 1, 0), "it cannot be written");
  expect(!veloc::cached_file_t::flush() && veloc::cached_file_t::flush(), "which is told once");
  veloc::cached_file_t::shutdown();
}

}  // namespace

int main(int, char** argv) {
  const std::unique_ptr<veloc::client_t> client(veloc::get_client(0U, argv[1]));
  protect_by_both(*client);
  use_the_rest(*client);
  write_cached(argv[2]);
}
